"""Score a tuned model that is kept on all its test sets at once; one that is not is scored by its training."""


rule evaluate:
    input:
        model=of("model"),
        sets=of("sets"),
        weights=f"{RESULTS}/{{address}}/model/model.safetensors",
        config=f"{RESULTS}/{{address}}/model/config.json",
    output:
        **score_files(f"{RESULTS}/{{address}}"),
    log:
        f"{LOGS}/{{address}}/evaluate.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}/evaluate.tsv"
    wildcard_constraints:
        address=KEPT,
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(30),
    params:
        base=folder("model"),
        tuned=folder("config"),
        code=code("evaluate.py"),
    shell:
        'OMP_NUM_THREADS={threads} python "$SCRIPTS"/evaluate.py --tuned {params.tuned:q} --base {params.base:q}'
        ' --sets {input.sets:q} --out {output.scores:q} --predictions {output.predictions:q} --tokens "$RESULTS"/tokens'
        " --code-hash {params.code} > {log:q} 2>&1"
