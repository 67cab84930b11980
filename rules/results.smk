"""All scores and similarities of a run as tidy files, for those who ask questions of their own (docs/analysis.md).

Tables and figures read the files of their own models, not these: a new score of one paper makes no table of another
paper again.
"""


rule gather_results:
    input:
        lambda wildcards: measured_files(),
    output:
        expand(f"{RESULTS}/{{name}}.{{form}}", name=["scores", "similarity"], form=["csv", "parquet"]),
    log:
        f"{LOGS}/gather_results.log",
    conda:
        "../envs/data.yaml"
    params:
        program=program("gather_results.py"),
        recipe=code("gather_results.py"),
        config=lambda wildcards, output: f"{RESULTS}/config.json",
        results=lambda wildcards, output: RESULTS,
    shell:
        "{params.program} --config {params.config:q} --results {params.results:q} --out {params.results:q} > {log:q} 2>&1"
