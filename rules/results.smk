"""All scores and similarities of a run as tidy files, for those who ask questions of their own (docs/use/analysis.md)."""


rule gather_results:
    input:
        results=of("results", "gathered"),
        config=of("config", "gathered"),
    output:
        [f"{RESULTS}/{name}.{form}" for name in ("scores", "similarity", "distances") for form in ("csv", "parquet")],
    log:
        f"{LOGS}/gather_results.log",
    conda:
        "../envs/data.yaml"
    params:
        code=code("gather_results.py", address="gathered"),
        results=folder("config"),
    shell:
        'python "$SCRIPTS"/gather_results.py --config {input.config:q} --results {params.results:q} --out {params.results:q} > {log:q} 2>&1'
