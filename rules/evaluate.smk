"""Score a tuned model on all its test sets at once."""


rule evaluate:
    input:
        unpack(evaluate_inputs),
        weights=f"{TUNED}/model/model.safetensors",
        config=f"{TUNED}/model/config.json",
    output:
        scores=f"{TUNED}/scores.json",
        predictions=f"{TUNED}/predictions.jsonl.gz",
    log:
        f"{LOGS}/evaluate/{{model}}/{{recipe}}-{{source}}/{{init}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{model}}/{{recipe}}-{{source}}/{{init}}-seed{{seed}}.tsv"
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=growing(16000),
        runtime=growing(30),
    params:
        program=program("evaluate.py"),
        recipe=task_code("evaluate.py"),
        base=lambda wildcards, input: str(Path(input.model).parent),
        tuned=lambda wildcards, input: str(Path(input.config).parent),
        sets=lambda wildcards: named_sets(tuned_of(wildcards)),
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --tuned {params.tuned:q} --base {params.base:q} --sets {params.sets}"
        " --out {output.scores:q} --predictions {output.predictions:q} > {log:q} 2>&1"
