"""Score a tuned model that is kept on all its test sets at once; one that is not is scored by its training."""


rule evaluate:
    input:
        unpack(reads(f"{TUNED}/scores.json")),
    output:
        **score_files(TUNED),
    log:
        f"{LOGS}/evaluate/{{model}}/{{preset}}-{{source}}/{{init}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{model}}/{{preset}}-{{source}}/{{init}}-seed{{seed}}.tsv"
    wildcard_constraints:
        init={"all": INIT, "ref": f"ref|{CONTINUAL}", "none": "(?!)"}[config["keep_models"]],
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
        tokens=lambda wildcards, output: f"{RESULTS}/tokens",
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --tuned {params.tuned:q} --base {params.base:q} --sets {params.sets}"
        " --out {output.scores:q} --predictions {output.predictions:q} --tokens {params.tokens:q}"
        " --code-hash {params.code_hash} > {log:q} 2>&1"
