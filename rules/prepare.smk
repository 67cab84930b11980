"""Turn raw files into one plain form per task. Every prepared set has a report beside it: read, kept, dropped and why."""


rule prepare_trees:
    input:
        sources=of("sources"),
    output:
        data=f"{RESULTS}/{{address}}.conllu",
        report=f"{RESULTS}/{{address}}.report.json",
    log:
        f"{LOGS}/{{address}}.log",
    wildcard_constraints:
        address="data/trees/.+",
    priority: 2  # before all training: a model is tested in the process that trained it, if its sets are there
    conda:
        "../envs/data.yaml"
    params:
        program=of("program"),
        code=code(),
        settings=of("settings"),
    shell:
        'python "$SCRIPTS"/{params.program} --source {input.sources:q} --out {output.data:q} --report {output.report:q}'
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule prepare_trees as prepare_ner with:
    output:
        data=f"{RESULTS}/{{address}}.jsonl",
        report=f"{RESULTS}/{{address}}.report.json",
    wildcard_constraints:
        address="data/ner/.+",


use rule prepare_ner as prepare_nli with:
    wildcard_constraints:
        address="data/nli/.+",


use rule prepare_ner as prepare_qa with:
    wildcard_constraints:
        address="data/qa/.+",


use rule prepare_trees as prepare_parallel with:
    output:
        data=f"{RESULTS}/{{address}}.txt",
        report=f"{RESULTS}/{{address}}.report.json",
    wildcard_constraints:
        address="data/parallel/.+",


use rule prepare_trees as prepare_bitext with:
    output:
        data=f"{RESULTS}/{{address}}.tsv",
        report=f"{RESULTS}/{{address}}.report.json",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address="data/bitext/.+",
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(120),


rule prepare_text:
    input:
        sources=of("sources"),
        apart=of("apart"),
    output:
        train=f"{RESULTS}/{{address}}/train.txt",
        dev=f"{RESULTS}/{{address}}/dev.txt",
        reports=[f"{RESULTS}/{{address}}/train.report.json", f"{RESULTS}/{{address}}/dev.report.json"],
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address="data/text/[^/]+",
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(240),
    params:
        code=code("prepare_text.py"),
        settings=of("settings"),
    shell:
        'python "$SCRIPTS"/prepare_text.py --source {input.sources:q} --apart {input.apart:q} --out-train {output.train:q}'
        " --out-dev {output.dev:q} --settings {params.settings:q} > {log:q} 2>&1"
