"""Tables as CSV, LaTeX, HTML and, for the page, JSON, each beside what the paper printed."""


rule make_table:
    input:
        unpack(reads(f"{RESULTS}/tables/{{paper}}/{{item}}.csv")),
    output:
        csv=f"{RESULTS}/tables/{{paper}}/{{item}}.csv",
        tex=f"{RESULTS}/tables/{{paper}}/{{item}}.tex",
        html=report(
            f"{RESULTS}/tables/{{paper}}/{{item}}.html",
            caption="../resources/captions/table.rst",
            category=lambda wildcards: category_of(wildcards.paper),
            subcategory="tables",
            labels=lambda wildcards: labels_of(f"{wildcards.paper}/{wildcards.item}"),
        ),
        json=f"{RESULTS}/tables/{{paper}}/{{item}}.json",
    log:
        f"{LOGS}/make_table/{{paper}}-{{item}}.log",
    wildcard_constraints:
        item=r"table\d+",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_table.py"),
        code_hash=paper_code("make_table.py", "tables"),
        settings=lambda wildcards: item_settings(config, wildcards.paper),
        # For the report alone, and derived from the output: another title or verdict makes nothing again.
        caption=lambda wildcards, output: caption_of(f"{wildcards.paper}/{wildcards.item}"),
        results=lambda wildcards, input: parent(input.config),
    shell:
        "{params.program} --item {wildcards.paper}/{wildcards.item} --config {input.config:q} --results {params.results:q}"
        " --out-csv {output.csv:q} --out-tex {output.tex:q} --out-html {output.html:q}"
        " --out-json {output.json:q} > {log:q} 2>&1"
