"""Turn raw files into one plain form per task. Every prepared set has a report beside it: read, kept, dropped and why."""

for kind in ("trees", "ner", "nli", "qa", "parallel"):

    rule:
        name:
            f"prepare_{kind}"
        input:
            unpack(reads(f"{RESULTS}/data/{kind}/{{name}}/{{split}}.report.json")),
        output:
            **set_files(RESULTS, kind, "{name}", "{split}"),
        log:
            f"{LOGS}/prepare_{kind}/{{name}}-{{split}}.log",
        priority: 2  # before all training: a model is tested in the process that trained it, if its sets are there
        conda:
            "../envs/data.yaml"
        params:
            **prepares(kind, f"prepare_{kind}.py", "prepare_labelled.py"),
        shell:
            "{params.program} --source {input.source:q} --out {output.data:q}"
            " --report {output.report:q} {params.options} > {log:q} 2>&1"


rule prepare_bitext:
    input:
        unpack(reads(f"{RESULTS}/data/bitext/{{name}}/{{split}}.report.json")),
    output:
        **set_files(RESULTS, "bitext", "{name}", "{split}"),
    log:
        f"{LOGS}/prepare_bitext/{{name}}-{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/prepare_bitext/{{name}}-{{split}}.tsv"
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(120),
    params:
        program=program("prepare_bitext.py"),
        code_hash=partial(prepare_code_at, "bitext", "prepare_bitext.py"),
        options=partial(prepare_options_at, "bitext"),
    shell:
        "{params.program} --source {input.source:q} --out {output.data:q} --report {output.report:q}"
        " {params.options} > {log:q} 2>&1"


rule prepare_text:
    input:
        unpack(reads(f"{RESULTS}/data/text/{{name}}/train.report.json")),
    output:
        **set_files(RESULTS, "text", "{name}", "train"),
    log:
        f"{LOGS}/prepare_text/{{name}}.log",
    benchmark:
        f"{BENCHMARKS}/prepare_text/{{name}}.tsv"
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(240),
    params:
        program=program("prepare_text.py"),
        code_hash=partial(prepare_code_at, "text", "prepare_text.py"),
        options=partial(prepare_options_at, "text"),
        apart=lambda wildcards, input: options(apart=list(input.get("apart", []))),
    shell:
        "{params.program} --source {input.source:q} --out-train {output.train:q} --out-dev {output.dev:q}"
        " {params.options} {params.apart} > {log:q} 2>&1"
