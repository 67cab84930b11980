"""Link the words, or the word pieces, of parallel sentences."""


rule align_bitext:
    input:
        pool=of("pool"),
        model=of("model"),  # of `.pieces` (`adjust`, table 6): every piece of its vocabulary is a unit of its own
    output:
        f"{RESULTS}/{{address}}.pharaoh",
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address=r"links/[^/]+/[a-z]+(\.pieces)?",
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    conda:
        "../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        pieces=folder("model"),
        code=code("align_bitext.py"),
        settings=of("settings"),
    shell:
        'python "$SCRIPTS"/align_bitext.py {input.pool:q} --out {output:q} --pieces {params.pieces:q} --threads {threads}'
        " --settings {params.settings:q} > {log:q} 2>&1"
