"""Link the words, or the word pieces, of parallel sentences."""


rule align_bitext:
    input:
        f"{RESULTS}/data/bitext/{{name}}/{{split}}.tsv",
    output:
        f"{RESULTS}/links/{{name}}/{{split}}.pharaoh",
    log:
        f"{LOGS}/align_bitext/{{name}}-{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/align_bitext/{{name}}-{{split}}.tsv"
    conda:
        "../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        program=program("align_bitext.py"),
        recipe=code("align_bitext.py", "fast_align.py"),
        options=aligner_options(),
    shell:
        "{params.program} {input:q} --out {output:q} {params.options} --threads {threads} > {log:q} 2>&1"


rule align_pieces:
    input:
        pool=f"{RESULTS}/data/bitext/{{name}}/{{split}}.tsv",
        model=vocabulary_file(config["adjust"]["base"]),
    output:
        f"{RESULTS}/links/{{name}}/{{split}}.pieces.pharaoh",
    log:
        f"{LOGS}/align_pieces/{{name}}-{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/align_pieces/{{name}}-{{split}}.tsv"
    conda:
        "../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        program=program("align_bitext.py"),
        recipe=code("align_bitext.py", "fast_align.py"),
        options=aligner_options(),
        # Sub-word alignment (`adjust`, table 6): every piece of the model's vocabulary is a unit of its own.
        tokenizer=lambda wildcards, input: f"{Path(input.model).parent}/tokenizer.json",
    shell:
        "{params.program} {input.pool:q} --out {output:q} {params.options} --pieces {params.tokenizer:q}"
        " --threads {threads} > {log:q} 2>&1"
