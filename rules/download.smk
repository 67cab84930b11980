"""Fetch raw files and models, checked. Only these rules touch the network; run `snakemake download` where there is one."""

import re

if config.get("world"):

    rule make_world:
        input:
            unpack(reads(f"{RESULTS}/mirror/SHA256SUMS")),
        output:
            # Stands for its folder, which downloads read here: it is for this machine alone.
            local(f"{RESULTS}/mirror/SHA256SUMS"),
        log:
            f"{LOGS}/make_world.log",
        benchmark:
            f"{BENCHMARKS}/make_world.tsv"
        conda:
            "../envs/data.yaml"
        threads: 2
        params:
            program=program("make_world.py"),
            code_hash=code("make_world.py"),
            folder=lambda wildcards, output: parent(output),
        shell:
            "{params.program} --settings {input.settings:q} --out {params.folder:q} --jobs {threads} > {log:q} 2>&1"


rule download_file:
    input:
        unpack(reads(f"{DOWNLOADS}/{{path}}")),
    output:
        f"{DOWNLOADS}/{{path}}",
    log:
        f"{LOGS}/download_file/{{path}}.log",
    wildcard_constraints:
        path="|".join(map(re.escape, sorted(DATASETS))),
    priority: 2  # as what is prepared from it
    localrule: True
    conda:
        "../envs/data.yaml"
    resources:
        transfers=1,
    params:
        program=program("download_file.py"),
        row=lambda wildcards: file_options(DATASETS[wildcards.path]),
        # Derived from the output: another mirror or another number of attempts does not make the file another one.
        way=lambda wildcards, output: way_options(config["downloads"], output[0], wildcards.path),
        source=lambda wildcards, output: options(
            mirror=DATASETS[wildcards.path].mirror, licence=DATASETS[wildcards.path].licence
        ),
    shell:
        "{params.program} --path {wildcards.path:q} {params.row} {params.way} {params.source} > {log:q} 2>&1"


rule download_labelled:
    output:
        f"{DOWNLOADS}/datasets/{{name}}/{{split}}/complete.json",
    log:
        f"{LOGS}/download_labelled/{{name}}-{{split}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    resources:
        transfers=1,
    params:
        program=program("download_labelled.py"),
        source=lambda wildcards: split_options(hub_split(config, wildcards.name, wildcards.split)),
        way=lambda wildcards, output: way_options(
            config["downloads"], output[0], f"datasets/{wildcards.name}/{wildcards.split}/complete.json"
        ),
    shell:
        "{params.program} {params.source} {params.way} > {log:q} 2>&1"


rule download_model:
    output:
        f"{DOWNLOADS}/models/{{model}}/complete.json",
    log:
        f"{LOGS}/download_model/{{model}}.log",
    wildcard_constraints:
        model="|".join(map(re.escape, sorted(MODELS))),
    localrule: True
    conda:
        "../envs/data.yaml"
    resources:
        transfers=1,
    params:
        program=program("download_model.py"),
        hub=lambda wildcards: MODELS[wildcards.model].hub,
        revision=lambda wildcards: MODELS[wildcards.model].revision,
        way=lambda wildcards, output: way_options(
            config["downloads"], output[0], f"models/{wildcards.model}/complete.json"
        ),
    shell:
        "{params.program} --name {wildcards.model:q} --hub {params.hub:q}"
        " --revision {params.revision:q} {params.way} > {log:q} 2>&1"
