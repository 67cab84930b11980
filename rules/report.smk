"""What all tables and figures say together: verdicts on numbers and claims, and the page that people open."""


rule make_verdicts:
    input:
        [file for item in items_of() for file in outputs_of(item) if file.endswith(".csv")],
        tolerances=tracked("resources/papers/tolerances.yaml"),
        claims=[tracked(f"resources/papers/{paper}/claims.csv") for paper in config["papers"]],
    output:
        numbers=f"{RESULTS}/verdicts.csv",
        claims=f"{RESULTS}/claims.csv",
        details=f"{RESULTS}/claims.json",
    log:
        f"{LOGS}/make_verdicts.log",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_verdicts.py"),
        recipe=code("make_verdicts.py"),
        config=lambda wildcards, output: f"{RESULTS}/config.json",
        results=lambda wildcards, output: RESULTS,
    shell:
        "{params.program} --config {params.config:q} --results {params.results:q} --out {output.numbers:q}"
        " --claims {output.claims:q} > {log:q} 2>&1"


rule make_report:
    input:
        [file for item in items_of() for file in outputs_of(item)],
        numbers=f"{RESULTS}/verdicts.csv",
        claims=f"{RESULTS}/claims.csv",
        details=f"{RESULTS}/claims.json",
        assets=[tracked(f"resources/report/{name}") for name in REPORT_ASSETS],
        differences=tracked("docs/differences.md"),
    output:
        page=report(
            f"{RESULTS}/report/index.html",
            caption="../resources/captions/page.rst",
            category=PAGE,
            labels={"item": "The page", "title": "All tables, figures, claims and settings"},
        ),
        provenance=f"{RESULTS}/report/provenance.json",
    log:
        f"{LOGS}/make_report.log",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_report.py"),
        recipe=code("make_report.py"),
        config=lambda wildcards, output: f"{RESULTS}/config.json",
        results=lambda wildcards, output: RESULTS,
    shell:
        "{params.program} --config {params.config:q} --results {params.results:q} --out {output.page:q} > {log:q} 2>&1"
