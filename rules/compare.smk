"""Similarity of English with the other languages, layer by layer."""


rule compare_languages:
    input:
        unpack(reads(f"{RESULTS}/similarity/{{address}}/{{corpus}}.csv")),
    output:
        f"{RESULTS}/similarity/{{address}}/{{corpus}}.csv",
    log:
        f"{LOGS}/compare_languages/{{address}}-{{corpus}}.log",
    benchmark:
        f"{BENCHMARKS}/compare_languages/{{address}}-{{corpus}}.tsv"
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        program=program("compare.py"),
        code_hash=code("compare.py"),
        options=lambda wildcards: compare_options(CATALOG, run_at(wildcards.address), wildcards.corpus),
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --embeddings {input.vectors:q} --reference en"
        " {params.options} --out {output:q} > {log:q} 2>&1"


rule measure_distances:
    input:
        unpack(reads(f"{RESULTS}/distances/{{address}}/{{lang}}.csv")),
    output:
        histogram=f"{RESULTS}/distances/{{address}}/{{lang}}.csv",
        summary=f"{RESULTS}/distances/{{address}}/{{lang}}.json",
    log:
        f"{LOGS}/measure_distances/{{address}}-{{lang}}.log",
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    params:
        program=program("measure_distances.py"),
        code_hash=code("measure_distances.py"),
    shell:
        "{params.program} --related {input.related:q} --unrelated {input.unrelated:q} --out {output.histogram:q}"
        " --summary {output.summary:q} > {log:q} 2>&1"
