"""Tables as CSV, LaTeX, HTML and, for the page, JSON, each beside what the paper printed."""


rule make_table:
    input:
        results=of("results"),
        printed=of("printed"),
        templates=of("templates"),
        config=of("config"),
    output:
        csv=f"{RESULTS}/{{address}}.csv",
        tex=f"{RESULTS}/{{address}}.tex",
        html=report(
            f"{RESULTS}/{{address}}.html",
            caption="../resources/captions/table.rst",
            category=lambda wildcards: category_of(item_of(wildcards)),
            subcategory="tables",
            labels=lambda wildcards: labels_of(item_of(wildcards)),
        ),
        json=f"{RESULTS}/{{address}}.json",
    log:
        f"{LOGS}/{{address}}.log",
    wildcard_constraints:
        address=r"tables/.+",
    conda:
        "../envs/data.yaml"
    params:
        code=code("make_table.py"),
        results=folder("config"),
        settings=of("settings"),
        # For the report alone, and derived from the output: another title or verdict makes nothing again.
        caption=lambda wildcards, output: caption_of(item_of(wildcards)),
        item=lambda wildcards, output: item_of(wildcards),
    shell:
        'python "$SCRIPTS"/make_table.py --item {params.item:q} --config {input.config:q} --results {params.results:q}'
        " --out-csv {output.csv:q} --out-tex {output.tex:q} --out-html {output.html:q}"
        " --out-json {output.json:q} > {log:q} 2>&1"
