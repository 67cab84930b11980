"""Fetch raw files and models, checked. Only these rules touch the network; run `snakemake download` where there is one."""

# Stands for its folder, which downloads read here: it is for this machine alone.
MIRROR = [local(f"{RESULTS}/mirror/SHA256SUMS")] if config.get("world") else []
if MIRROR:

    rule make_world:
        input:
            settings=local(tracked(config["world"])),
        output:
            MIRROR,
        log:
            f"{LOGS}/make_world.log",
        benchmark:
            f"{BENCHMARKS}/make_world.tsv"
        conda:
            "../envs/data.yaml"
        threads: 2
        params:
            code=code("make_world.py", address=None),
            folder=lambda wildcards, output: parent(output),
        shell:
            'python "$SCRIPTS"/make_world.py --settings {input.settings:q} --out {params.folder:q} --jobs {threads} > {log:q} 2>&1'


rule download_file:
    input:
        MIRROR,
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
        # What the register says of a file itself: when that changes the file is another one.
        settings=lambda wildcards: as_json(file_settings(DATASETS[wildcards.path])),
        # Derived from the output: another mirror or another number of attempts does not make the file another one.
        way=lambda wildcards, output: as_json(way_settings(config, DATASETS[wildcards.path])),
        downloads=lambda wildcards, output: output[0][: -len(wildcards.path) - 1],
    shell:
        'python "$SCRIPTS"/download_file.py --path {wildcards.path:q} --settings {params.settings:q} {params.way:q}'
        " --downloads {params.downloads:q} > {log:q} 2>&1"


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
        settings=lambda wildcards: as_json(split_settings(config, wildcards.name, wildcards.split)),
        way=lambda wildcards, output: as_json(way_settings(config)),
        downloads=lambda wildcards, output: str(Path(output[0]).parents[3]),
    shell:
        'python "$SCRIPTS"/download_labelled.py --settings {params.settings:q} {params.way:q}'
        " --downloads {params.downloads:q} > {log:q} 2>&1"


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
        hub=lambda wildcards: MODELS[wildcards.model].hub,
        revision=lambda wildcards: MODELS[wildcards.model].revision,
        way=lambda wildcards, output: as_json(way_settings(config, model=MODELS[wildcards.model])),
        downloads=lambda wildcards, output: str(Path(output[0]).parents[2]),
    shell:
        'python "$SCRIPTS"/download_model.py --name {wildcards.model:q} --hub {params.hub:q} --revision {params.revision:q}'
        " --settings {params.way:q} --downloads {params.downloads:q} > {log:q} 2>&1"
