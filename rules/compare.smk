"""Similarity of English with the other languages, layer by layer; and distances of linked words."""


rule compare_languages:
    input:
        vectors=of("vectors"),
    output:
        f"{RESULTS}/{{address}}.csv",
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address="similarity/.+",
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        code=code("compare.py"),
        settings=of("settings"),
    shell:
        'OMP_NUM_THREADS={threads} python "$SCRIPTS"/compare.py --embeddings {input.vectors:q}'
        " --settings {params.settings:q} --out {output:q} > {log:q} 2>&1"


rule measure_distances:
    input:
        related=of("related"),
        unrelated=of("unrelated"),
    output:
        histogram=f"{RESULTS}/{{address}}.csv",
        summary=f"{RESULTS}/{{address}}.json",
    log:
        f"{LOGS}/{{address}}.log",
    wildcard_constraints:
        address="distances/.+",
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    params:
        code=code("measure_distances.py"),
    shell:
        'python "$SCRIPTS"/measure_distances.py --related {input.related:q} --unrelated {input.unrelated:q}'
        " --out {output.histogram:q} --summary {output.summary:q} > {log:q} 2>&1"
