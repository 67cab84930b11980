"""Fine-tune one model on one task with one seed."""


rule finetune:
    input:
        unpack(finetune_inputs),
    output:
        weights=f"{TUNED}/model/model.safetensors",
        config=f"{TUNED}/model/config.json",
        training=f"{TUNED}/training.json",
    log:
        f"{LOGS}/finetune/{{model}}/{{recipe}}-{{source}}/{{init}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/finetune/{{model}}/{{recipe}}-{{source}}/{{init}}-seed{{seed}}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=16000,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        program=program("finetune.py"),
        recipe=recipe("finetune.py"),
        options=lambda wildcards: finetune_options(config, tuned_of(wildcards)),
        dev=lambda wildcards, input: options(dev=input.get("dev")),
        base=lambda wildcards, input: str(Path(input.model).parent),
        out=lambda wildcards, output: str(Path(output.training).parent),
        # Not an output: Snakemake deletes the outputs of a killed job, and a killed job must find its checkpoints again.
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{tuned_of(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --model {params.base:q} --train {input.train:q} {params.dev}"
        " {params.options} --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.recipe}"
        " > {log:q} 2>&1"
