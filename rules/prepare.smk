"""Turn raw files into one plain form per task. Every prepared set has a report beside it: read, kept, dropped and why."""

for kind in ("trees", "ner", "nli", "qa", "parallel"):

    rule:
        name:
            f"prepare_{kind}"
        input:
            sources_of(kind),
        output:
            data=f"{RESULTS}/data/{kind}/{{name}}/{{split}}.{EXTENSIONS[kind]}",
            report=f"{RESULTS}/data/{kind}/{{name}}/{{split}}.report.json",
        log:
            f"{LOGS}/prepare_{kind}/{{name}}-{{split}}.log",
        conda:
            "../envs/data.yaml"
        params:
            program=program(f"prepare_{kind}.py"),
            recipe=code(f"prepare_{kind}.py"),
            options=prepare_options_of(kind),
        shell:
            "{params.program} --source {input:q} --out {output.data:q}"
            " --report {output.report:q} {params.options} > {log:q} 2>&1"


rule prepare_bitext:
    input:
        sources_of("bitext"),
    output:
        data=f"{RESULTS}/data/bitext/{{name}}/{{split}}.tsv",
        report=f"{RESULTS}/data/bitext/{{name}}/{{split}}.report.json",
    log:
        f"{LOGS}/prepare_bitext/{{name}}-{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/prepare_bitext/{{name}}-{{split}}.tsv"
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
    params:
        program=program("prepare_bitext.py"),
        recipe=code("prepare_bitext.py"),
        options=prepare_options_of("bitext"),
    shell:
        "{params.program} --source {input:q} --out {output.data:q} --report {output.report:q}"
        " {params.options} > {log:q} 2>&1"


rule prepare_text:
    input:
        sources_of("text"),
    output:
        train=f"{RESULTS}/data/text/{{name}}/train.txt",
        dev=f"{RESULTS}/data/text/{{name}}/dev.txt",
        train_report=f"{RESULTS}/data/text/{{name}}/train.report.json",
        dev_report=f"{RESULTS}/data/text/{{name}}/dev.report.json",
    log:
        f"{LOGS}/prepare_text/{{name}}.log",
    benchmark:
        f"{BENCHMARKS}/prepare_text/{{name}}.tsv"
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        program=program("prepare_text.py"),
        recipe=code("prepare_text.py"),
        options=prepare_options_of("text"),
    shell:
        "{params.program} --source {input:q} --out-train {output.train:q} --out-dev {output.dev:q}"
        " {params.options} > {log:q} 2>&1"
