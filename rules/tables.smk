"""Tables as CSV, LaTeX, HTML and, for the page, JSON, each beside what the paper printed."""


rule make_table:
    input:
        lambda wildcards: item_inputs(f"{wildcards.paper}/{wildcards.item}"),
        printed=lambda wildcards: printed_numbers(f"{wildcards.paper}/{wildcards.item}"),
        templates=[tracked(f"resources/report/{name}") for name in ("table.html", "table_file.html")],
    output:
        csv=f"{RESULTS}/tables/{{paper}}/{{item}}.csv",
        tex=f"{RESULTS}/tables/{{paper}}/{{item}}.tex",
        html=report(
            f"{RESULTS}/tables/{{paper}}/{{item}}.html",
            caption="../resources/captions/table.rst",
            category=lambda wildcards: category_of(wildcards.paper),
            subcategory="tables",
            labels=lambda wildcards: labels_of(f"{wildcards.paper}/{wildcards.item}", CLAIMS_FILE),
        ),
        json=f"{RESULTS}/tables/{{paper}}/{{item}}.json",
    log:
        f"{LOGS}/make_table/{{paper}}-{{item}}.log",
    wildcard_constraints:
        paper="align-predict|anc|adjust|talk",
        item=r"table\d+",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_table.py"),
        recipe=code("make_table.py"),
        settings=lambda wildcards: item_settings(wildcards.paper),
        # For the report alone, and derived from the output: another title or verdict makes nothing again.
        caption=lambda wildcards, output: caption_of(f"{wildcards.paper}/{wildcards.item}", CLAIMS_FILE),
        config=lambda wildcards, output: f"{RESULTS}/config.json",
        results=lambda wildcards, output: RESULTS,
    shell:
        "{params.program} --item {wildcards.paper}/{wildcards.item} --config {params.config:q} --results {params.results:q}"
        " --out-csv {output.csv:q} --out-tex {output.tex:q} --out-html {output.html:q}"
        " --out-json {output.json:q} > {log:q} 2>&1"
