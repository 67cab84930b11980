"""Figures as SVG, PDF and PNG, with their data beside them."""


rule make_figure:
    input:
        results=of("results"),
        printed=of("printed"),
        config=of("config"),
    output:
        svg=f"{RESULTS}/{{address}}.svg",
        pdf=f"{RESULTS}/{{address}}.pdf",
        png=report(
            f"{RESULTS}/{{address}}.png",
            caption="../resources/captions/figure.rst",
            category=lambda wildcards: category_of(item_of(wildcards)),
            subcategory="figures",
            labels=lambda wildcards: labels_of(item_of(wildcards)),
        ),
        csv=f"{RESULTS}/{{address}}.csv",
    log:
        f"{LOGS}/{{address}}.log",
    wildcard_constraints:
        address=r"figures/.+",
    conda:
        "../envs/data.yaml"
    params:
        code=code("make_figure.py"),
        results=folder("config"),
        settings=of("settings"),
        caption=lambda wildcards, output: caption_of(item_of(wildcards)),
        item=lambda wildcards, output: item_of(wildcards),
    shell:
        'python "$SCRIPTS"/make_figure.py --item {params.item:q} --config {input.config:q} --results {params.results:q}'
        " --out-svg {output.svg:q} --out-pdf {output.pdf:q} --out-png {output.png:q} --out-csv {output.csv:q} > {log:q} 2>&1"
