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
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        program=program("compare.py"),
        recipe=recipe("compare.py"),
        languages=lambda wildcards: [lang for lang in corpus_languages(wildcards.corpus) if lang != "en"],
        indexes=lambda wildcards: similarity_indexes(wildcards.corpus),
        directions=config["similarity"]["svcca_directions"],
    shell:
        "OMP_NUM_THREADS={threads} {params.program} --embeddings {input:q} --reference en --languages {params.languages}"
        " --indexes {params.indexes} --svcca-directions {params.directions} --out {output:q} > {log:q} 2>&1"
