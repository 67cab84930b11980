"""Figures as SVG, PDF and PNG, with their data beside them."""


rule make_figure:
    input:
        unpack(reads(f"{RESULTS}/figures/{{paper}}/{{item}}.csv")),
    output:
        svg=f"{RESULTS}/figures/{{paper}}/{{item}}.svg",
        pdf=f"{RESULTS}/figures/{{paper}}/{{item}}.pdf",
        png=report(
            f"{RESULTS}/figures/{{paper}}/{{item}}.png",
            caption="../resources/captions/figure.rst",
            category=lambda wildcards: category_of(wildcards.paper),
            subcategory="figures",
            labels=lambda wildcards: labels_of(f"{wildcards.paper}/{wildcards.item}"),
        ),
        csv=f"{RESULTS}/figures/{{paper}}/{{item}}.csv",
    log:
        f"{LOGS}/make_figure/{{paper}}-{{item}}.log",
    wildcard_constraints:
        item=r"figure\d+",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_figure.py"),
        code_hash=paper_code("make_figure.py", "figures"),
        settings=lambda wildcards: item_settings(config, wildcards.paper),
        draw_control=config["similarity"].get("draw_control", False),
        # For the report alone, and derived from the output: another title or verdict makes nothing again.
        caption=lambda wildcards, output: caption_of(f"{wildcards.paper}/{wildcards.item}"),
        results=lambda wildcards, input: parent(input.config),
    shell:
        "{params.program} --item {wildcards.paper}/{wildcards.item} --config {input.config:q} --results {params.results:q}"
        " --out-svg {output.svg:q} --out-pdf {output.pdf:q} --out-png {output.png:q} --out-csv {output.csv:q} > {log:q} 2>&1"
