"""Link the words, or the word pieces, of parallel sentences."""


rule align_bitext:
    input:
        unpack(reads(f"{RESULTS}/links/{{name}}/{{split}}.pharaoh")),
    output:
        f"{RESULTS}/links/{{name}}/{{split}}.pharaoh",
    log:
        f"{LOGS}/align_bitext/{{name}}-{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/align_bitext/{{name}}-{{split}}.tsv"
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    conda:
        "../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        program=program("align_bitext.py"),
        code_hash=code("align_bitext.py"),
        options=aligner_options(config),
    shell:
        "{params.program} {input.pool:q} --out {output:q} {params.options} --threads {threads} > {log:q} 2>&1"


rule align_pieces:
    input:
        unpack(reads(f"{RESULTS}/links/{{name}}/{{split}}.pieces.pharaoh")),
    output:
        f"{RESULTS}/links/{{name}}/{{split}}.pieces.pharaoh",
    log:
        f"{LOGS}/align_pieces/{{name}}-{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/align_pieces/{{name}}-{{split}}.tsv"
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    conda:
        "../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        program=program("align_bitext.py"),
        code_hash=code("align_bitext.py"),
        options=aligner_options(config),
        # Sub-word alignment (`adjust`, table 6): every piece of the model's vocabulary is a unit of its own.
        tokenizer=lambda wildcards, input: f"{parent(input.model)}/tokenizer.json",
    shell:
        "{params.program} {input.pool:q} --out {output:q} {params.options} --pieces {params.tokenizer:q}"
        " --threads {threads} > {log:q} 2>&1"
