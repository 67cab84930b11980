"""Sentence vectors of every layer: one job per model and corpus, all languages in it; and how vocabularies cut words."""


rule embed_sentences:
    input:
        model=of("model"),
        tuned=of("tuned"),
        text=of("text"),
    output:
        # Large and quickly made again, so they go once their similarities are there.
        temp(directory(f"{RESULTS}/{{address}}")),
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address=r"embeddings/(models|tuned)/.+/(?!words)[a-z0-9]+",
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(60),
    params:
        model=folder("model"),
        tuned=folder("tuned"),
        code=code("embed_sentences.py"),
        settings=of("settings"),
    shell:
        'OMP_NUM_THREADS={threads} python "$SCRIPTS"/embed_sentences.py --model {params.model:q} --tuned {params.tuned:q}'
        " --text {input.text:q} --settings {params.settings:q} --out {output:q} > {log:q} 2>&1"


rule embed_words:
    input:
        model=of("model"),
        tuned=of("tuned"),
        pool=of("pool"),
        links=of("links"),
    output:
        related=temp(f"{RESULTS}/{{address}}-related.npy"),
        unrelated=temp(f"{RESULTS}/{{address}}-unrelated.npy"),
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address="embeddings/.+/words/[a-z]+",
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        model=folder("model"),
        tuned=folder("tuned"),
        code=code("embed_words.py"),
        settings=of("settings"),
    shell:
        'OMP_NUM_THREADS={threads} python "$SCRIPTS"/embed_words.py --model {params.model:q} --tuned {params.tuned:q}'
        " --pool {input.pool:q} --links {input.links:q} --settings {params.settings:q} --related {output.related:q}"
        " --unrelated {output.unrelated:q} > {log:q} 2>&1"


rule audit_coverage:
    input:
        model=of("model", "coverage"),
        texts=of("texts", "coverage"),
    output:
        f"{RESULTS}/coverage.csv",
    log:
        f"{LOGS}/coverage.log",
    conda:
        "../envs/torch.yaml"
    params:
        model=folder("model"),
        code=code("audit_coverage.py", address="coverage"),
    shell:
        'python "$SCRIPTS"/audit_coverage.py --model {params.model:q} --texts {input.texts:q} --out {output:q} > {log:q} 2>&1'
