"""Fine-tune one model on one task with one seed; the BiLSTM baselines are trained and scored in one go."""

# What stays on disk is a choice, and a file is temporary or not for a whole rule: hence one rule for models with random
# layers and one for the others, alike but for that.
for name, inits, kept in (
    ("finetune", f"ref|{CONTINUAL}", config["keep_models"] != "none"),
    ("finetune_random", "(random|grid)-.+", config["keep_models"] == "all"),
):

    rule:
        name:
            name
        input:
            unpack(finetune_inputs),
        output:
            weights=f"{TUNED}/model/model.safetensors" if kept else temp(f"{TUNED}/model/model.safetensors"),
            config=f"{TUNED}/model/config.json" if kept else temp(f"{TUNED}/model/config.json"),
            training=f"{TUNED}/training.json",
        log:
            f"{LOGS}/finetune/{{model}}/{{recipe}}-{{source}}/{{init}}-seed{{seed}}.log",
        benchmark:
            f"{BENCHMARKS}/finetune/{{model}}/{{recipe}}-{{source}}/{{init}}-seed{{seed}}.tsv"
        wildcard_constraints:
            init=inits,
        conda:
            "../envs/torch.yaml"
        resources:
            gpu=1,
            mem_mb=growing(16000),
            runtime=growing(120),
        params:
            program=program("finetune.py"),
            recipe=task_code("finetune.py"),
            options=lambda wildcards: finetune_options(config, tuned_of(wildcards)),
            trials=trial_files,
            continual=continual_files,
            dev=lambda wildcards, input: options(dev=input.get("dev")),
            base=lambda wildcards, input: str(Path(input.model).parent),
            out=lambda wildcards, output: str(Path(output.training).parent),
            # Not an output: Snakemake deletes the outputs of a killed job, and a killed job must find its checkpoints.
            checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{tuned_of(wildcards).path()}",
        shell:
            "OMP_NUM_THREADS={threads} exec {params.program} --model {params.base:q} --train {input.train:q} {params.dev}"
            " {params.options} {params.trials} {params.continual} --out {params.out:q} --checkpoints {params.checkpoints:q}"
            " --recipe {params.recipe} > {log:q} 2>&1"


rule train_bilstm:
    input:
        unpack(bilstm_inputs),
    output:
        scores=f"{BILSTM}/scores.json",
        predictions=f"{BILSTM}/predictions.jsonl.gz",
        training=f"{BILSTM}/training.json",
        weights=f"{BILSTM}/model/model.safetensors",
        config=f"{BILSTM}/model/config.json",
    log:
        f"{LOGS}/train_bilstm/{{recipe}}-{{source}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/train_bilstm/{{recipe}}-{{source}}-seed{{seed}}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=growing(8000),
        runtime=growing(120),
    params:
        program=program("train_bilstm.py"),
        recipe=code("train_bilstm.py"),
        options=lambda wildcards: bilstm_options(config, bilstm_at(wildcards)),
        sets=lambda wildcards: named_sets(bilstm_at(wildcards)),
        out=lambda wildcards, output: str(Path(output.training).parent),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{bilstm_at(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --train {input.train:q} --dev {input.dev:q} --sets {params.sets}"
        " {params.options} --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.recipe}"
        " > {log:q} 2>&1"
