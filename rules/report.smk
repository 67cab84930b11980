"""What all results say together: tidy files, verdicts on printed numbers and on findings, the page that people open."""


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


rule make_verdicts:
    input:
        made=of("made", "verdicts"),
        config=of("config", "verdicts"),
    output:
        f"{RESULTS}/verdicts.csv",
    log:
        f"{LOGS}/make_verdicts.log",
    conda:
        "../envs/data.yaml"
    params:
        code=code("make_verdicts.py", address="verdicts"),
        results=folder("config"),
    shell:
        'python "$SCRIPTS"/make_verdicts.py --config {input.config:q} --results {params.results:q} --out {output:q} > {log:q} 2>&1'


rule make_findings:
    input:
        frames=of("frames", "findings"),
        printed=of("printed", "findings"),
        config=of("config", "findings"),
    output:
        multiext(f"{RESULTS}/findings", ".csv", ".json"),
    log:
        f"{LOGS}/make_findings.log",
    conda:
        "../envs/data.yaml"
    params:
        code=code("make_findings.py", address="findings"),
        results=folder("config"),
        settings=of("settings", "findings"),
    shell:
        'python "$SCRIPTS"/make_findings.py --config {input.config:q} --results {params.results:q} > {log:q} 2>&1'


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
            labels={"item": "The page", "title": "All findings, tables, figures and settings"},
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
