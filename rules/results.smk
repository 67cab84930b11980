"""All scores and similarities of a run as tidy files, for those who ask questions of their own (docs/use/analysis.md).

Tables and figures read the files of their own models, not these: a new score of one paper makes no table of another
paper again.
"""


rule gather_results:
    input:
        unpack(reads(INPUTS.gathered[0])),
    output:
        INPUTS.gathered,
    log:
        f"{LOGS}/gather_results.log",
    conda:
        "../envs/data.yaml"
    params:
        program=program("gather_results.py"),
        code_hash=code("gather_results.py"),
        results=lambda wildcards, input: parent(input.config),
        out=lambda wildcards, output: parent(output),
    shell:
        "{params.program} --config {input.config:q} --results {params.results:q} --out {params.out:q} > {log:q} 2>&1"
