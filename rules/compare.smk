"""Similarity of English with the other languages, layer by layer."""


rule compare_languages:
    input:
        f"{RESULTS}/embeddings/{{address}}/{{corpus}}",
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
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        program=program("compare.py"),
        recipe=code("compare.py"),
        languages=lambda wildcards: compared_languages(wildcards),
        indexes=lambda wildcards: compared_indexes(wildcards),
        directions=lambda wildcards: directions_option(wildcards),
        control=lambda wildcards: control_option(wildcards),
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --embeddings {input:q} --reference en --languages {params.languages}"
        " --indexes {params.indexes} {params.directions} {params.control} --out {output:q} > {log:q} 2>&1"


rule measure_distances:
    input:
        related=f"{RESULTS}/embeddings/{{address}}/words/{{lang}}-related.npy",
        unrelated=f"{RESULTS}/embeddings/{{address}}/words/{{lang}}-unrelated.npy",
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
        recipe=code("measure_distances.py"),
    shell:
        "{params.program} --related {input.related:q} --unrelated {input.unrelated:q} --out {output.histogram:q}"
        " --summary {output.summary:q} > {log:q} 2>&1"
