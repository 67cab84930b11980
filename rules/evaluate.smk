"""Score a tuned model on all its test sets at once, or take the scores that the process of its training has left."""


rule evaluate:
    input:
        unpack(reads(f"{TUNED}/scores.json")),
    output:
        **score_files(TUNED),
    log:
        f"{LOGS}/evaluate/{{model}}/{{preset}}-{{source}}/{{init}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{model}}/{{preset}}-{{source}}/{{init}}-seed{{seed}}.tsv"
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(30),
    params:
        program=program("evaluate.py"),
        code_hash=task_code("evaluate.py", tuned_at),
        base=lambda wildcards, input: parent(input.model),
        tuned=lambda wildcards, input: parent(input.config),
        sets=lambda wildcards, input: named_sets(input.sets),
        kept=lambda wildcards, output: kept_options(INPUTS, tuned_at(wildcards)),
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --tuned {params.tuned:q} --base {params.base:q} --sets {params.sets}"
        " --out {output.scores:q} --predictions {output.predictions:q} {params.kept} > {log:q} 2>&1"
