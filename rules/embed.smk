"""Sentence vectors of every layer: one job per model and corpus, all languages in it; and how vocabularies cut words."""


rule embed_sentences:
    input:
        unpack(reads(f"{RESULTS}/embeddings/{{address}}/{{corpus}}")),
    output:
        # Large and quickly made again, so they go once their similarities are there.
        temp(directory(f"{RESULTS}/embeddings/{{address}}/{{corpus}}")),
    log:
        f"{LOGS}/embed_sentences/{{address}}-{{corpus}}.log",
    benchmark:
        f"{BENCHMARKS}/embed_sentences/{{address}}-{{corpus}}.tsv"
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(60),
    params:
        program=program("embed_sentences.py"),
        code_hash=code("embed_sentences.py"),
        options=lambda wildcards: embed_options(wildcards.corpus, run_at(wildcards.address)),
        model=lambda wildcards, input: embed_model(config, run_at(wildcards.address), input),
        text=lambda wildcards, input: named_languages(input.text),
    shell:
        "OMP_NUM_THREADS={threads} {params.program} {params.model} --text {params.text} {params.options}"
        " --out {output:q} > {log:q} 2>&1"


rule audit_tokenizer:
    input:
        unpack(reads(f"{RESULTS}/tokenizers/{{base}}.csv")),
    output:
        f"{RESULTS}/tokenizers/{{base}}.csv",
    log:
        f"{LOGS}/audit_tokenizer/{{base}}.log",
    conda:
        "../envs/torch.yaml"
    params:
        program=program("audit_tokenizer.py"),
        code_hash=code("audit_tokenizer.py"),
        model=lambda wildcards, input: parent(input.model),
        treebanks=lambda wildcards, input: named_treebanks(input.treebanks),
    shell:
        "{params.program} --model {params.model:q} --treebanks {params.treebanks} --out {output:q} > {log:q} 2>&1"


rule audit_coverage:
    input:
        unpack(reads(INPUTS.coverage)),
    output:
        INPUTS.coverage,
    log:
        f"{LOGS}/audit_coverage.log",
    conda:
        "../envs/torch.yaml"
    params:
        program=program("audit_coverage.py"),
        code_hash=code("audit_coverage.py"),
        model=lambda wildcards, input: parent(input.model),
        texts=lambda wildcards, input: named_texts(input.texts),
    shell:
        "{params.program} --model {params.model:q} --texts {params.texts} --out {output:q} > {log:q} 2>&1"


rule embed_words:
    input:
        unpack(reads(f"{RESULTS}/embeddings/{{address}}/words/{{lang}}-related.npy")),
    output:
        related=temp(f"{RESULTS}/embeddings/{{address}}/words/{{lang}}-related.npy"),
        unrelated=temp(f"{RESULTS}/embeddings/{{address}}/words/{{lang}}-unrelated.npy"),
    log:
        f"{LOGS}/embed_words/{{address}}-{{lang}}.log",
    benchmark:
        f"{BENCHMARKS}/embed_words/{{address}}-{{lang}}.tsv"
    priority: 1  # before new trainings: what it reads is deleted after its last use
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        program=program("embed_words.py"),
        code_hash=code("embed_words.py"),
        model=lambda wildcards, input: embed_model(config, run_at(wildcards.address), input),
        options=distance_options(config),
    shell:
        "OMP_NUM_THREADS={threads} {params.program} {params.model} --pool {input.pool:q} --links {input.links:q}"
        " {params.options} --related {output.related:q} --unrelated {output.unrelated:q} > {log:q} 2>&1"
