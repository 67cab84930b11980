"""Vocabularies and models from scratch, as the section `pretrain` of the config describes them."""

import re

ONE_LANGUAGE = r"mono-[a-z]{2,3}(\.latn)?"


rule train_vocabulary:
    input:
        unpack(reads(f"{RESULTS}/vocabularies/{{trained}}/tokenizer.json")),
    output:
        f"{RESULTS}/vocabularies/{{trained}}/tokenizer.json",
    log:
        f"{LOGS}/train_vocabulary/{{trained}}.log",
    wildcard_constraints:
        trained="|".join([ONE_LANGUAGE, *map(re.escape, trained_vocabularies(config))]),
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        program=program("train_vocabulary.py"),
        code_hash=code("train_vocabulary.py"),
        settings=lambda wildcards: vocabulary_settings(config, wildcards.trained),
        texts=lambda wildcards, input: named_texts(input.texts),
        letters=lambda wildcards, input: letters_option(input),
    shell:
        "{params.program} --texts {params.texts} {params.letters} --settings {params.settings:q}"
        " --up-to --out {output:q} > {log:q} 2>&1"


rule pretrain:
    input:
        unpack(reads(f"{RESULTS}/models/{{trained}}/training.json")),
    output:
        **model_files(f"{RESULTS}/models/{{trained}}"),
    log:
        f"{LOGS}/pretrain/{{trained}}.log",
    benchmark:
        f"{BENCHMARKS}/pretrain/{{trained}}.tsv"
    wildcard_constraints:
        trained="|".join([rf"{ONE_LANGUAGE}(\.stage\d+)?", *map(re.escape, trained_models(config))]),
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=lambda wildcards, attempt: (32000 if is_long(config, wildcards.trained) else 16000) * attempt,
        runtime=lambda wildcards, attempt: (2880 if is_long(config, wildcards.trained) else 480) * attempt,
    params:
        program=program("pretrain.py"),
        code_hash=code("pretrain.py"),
        options=lambda wildcards: options(seed=trained_model(config, wildcards.trained)["seed"], **rehearsed(config)),
        settings=lambda wildcards: pretrain_settings(config, wildcards.trained),
        texts=lambda wildcards, input: named_texts(input.texts),
        dev=lambda wildcards, input: named_texts(input.dev),
        start=lambda wildcards, input: start_option(input),
        out=lambda wildcards, output: parent(output.training),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/models/{wildcards.trained}",
        # Models of one vocabulary read the same texts: they are encoded once. File names tell both.
        tokens=lambda wildcards, output: f"{RESULTS}/tokens",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} {params.start} --texts {params.texts} --dev {params.dev}"
        " --tokens {params.tokens:q} --settings {params.settings:q} {params.options} --out {params.out:q}"
        " --checkpoints {params.checkpoints:q} --code-hash {params.code_hash} > {log:q} 2>&1"


# The demo's own models are tracked. One whose folder was deleted is made again.
if DELETED := deleted_models(config):
    DEMO_MODELS = tracked(config["models"])

    rule make_demo_model:
        input:
            lambda wildcards: [f"{DEMO_MODELS}/{name}/model.safetensors" for name in [DELETED[wildcards.model]] if name],
        output:
            **model_files(f"{DEMO_MODELS}/{{model}}"),
        log:
            f"{LOGS}/make_demo_model/{{model}}.log",
        wildcard_constraints:
            model="|".join(map(re.escape, DELETED)),
        conda:
            "../envs/torch.yaml"
        resources:
            mem_mb=times_attempt(16000),
            runtime=times_attempt(480),
        params:
            program=program("make_demo_model.py"),
            settings=tracked(config["world"]),
            folder=lambda wildcards, output: parent(output.training),
            work=f"{RESULTS}/checkpoints/demo-models",
        shell:
            "exec {params.program} --model {wildcards.model:q} --settings {params.settings:q} --out {params.folder:q}"
            " --work {params.work:q} > {log:q} 2>&1"
