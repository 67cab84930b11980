"""What all tables and figures say together: verdicts on numbers and claims, and the page that people open."""


rule write_config:
    output:
        f"{RESULTS}/config.json",
    log:
        f"{LOGS}/write_config.log",
    priority: 2  # programs that look at a run that is not done yet read it
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        config=f"{LOGS}/config.json",  # a config may be longer than a command line
    shell:
        "cp {params.config:q} {output:q} 2> {log:q}"


rule make_verdicts:
    input:
        made=of("made", "verdicts"),
        reports=of("reports", "verdicts"),
        texts=of("texts", "verdicts"),
        distances=of("distances", "verdicts"),
        tolerances=of("tolerances", "verdicts"),
        claims=of("claims", "verdicts"),
        config=of("config", "verdicts"),
    output:
        numbers=f"{RESULTS}/verdicts.csv",
        claims=f"{RESULTS}/claims.csv",
        details=f"{RESULTS}/claims.json",
    log:
        f"{LOGS}/make_verdicts.log",
    conda:
        "../envs/data.yaml"
    params:
        code=code("make_verdicts.py", address="verdicts"),
        results=folder("config"),
        settings=of("settings", "verdicts"),
    shell:
        'python "$SCRIPTS"/make_verdicts.py --config {input.config:q} --results {params.results:q} --out {output.numbers:q}'
        " --claims {output.claims:q} > {log:q} 2>&1"


rule make_report:
    input:
        verdicts=of("verdicts", "report"),
        made=of("made", "report"),
        results=of("results", "report"),
        training=of("training", "report"),
        assets=of("assets", "report"),
        differences=of("differences", "report"),
        coverage=of("coverage", "report"),
        config=of("config", "report"),
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
        code=code("make_report.py", address="report"),
        results=folder("config"),
        settings=of("settings", "report"),
    shell:
        'python "$SCRIPTS"/make_report.py --config {input.config:q} --results {params.results:q} --out {output.page:q} > {log:q} 2>&1'
