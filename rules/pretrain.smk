"""Models from scratch: of one language (`talk`), of one norm scheme where no checkpoint is to be taken (`anc`), and those
that a config describes (`own_models`)."""

import re


rule train_vocabulary:
    input:
        unpack(reads(f"{RESULTS}/vocabularies/mono-{{text}}/tokenizer.json")),
    output:
        f"{RESULTS}/vocabularies/mono-{{text}}/tokenizer.json",
    log:
        f"{LOGS}/train_vocabulary/mono-{{text}}.log",
    wildcard_constraints:
        text=r"[a-z]{2,3}(\.latn)?",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        program=program("train_vocabulary.py"),
        code_hash=code("train_vocabulary.py"),
        size=config["mlm"]["monolingual"]["vocabulary"],
        texts=lambda wildcards, input: named_texts(input.texts),
    shell:
        "{params.program} --texts {params.texts} --size {params.size} --up-to --out {output:q} > {log:q} 2>&1"


rule pretrain_monolingual:
    input:
        unpack(reads(f"{RESULTS}/models/mono-{{text}}/training.json")),
    output:
        **model_files(f"{RESULTS}/models/mono-{{text}}"),
    log:
        f"{LOGS}/pretrain_monolingual/mono-{{text}}.log",
    benchmark:
        f"{BENCHMARKS}/pretrain_monolingual/mono-{{text}}.tsv"
    wildcard_constraints:
        text=r"[a-z]{2,3}(\.latn)?",
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(480),
    params:
        program=program("pretrain.py"),
        code_hash=code("pretrain.py"),
        options=monolingual_options(config),
        texts=lambda wildcards, input: named_texts(input.texts),
        dev=lambda wildcards, input: named_texts(input.dev),
        out=lambda wildcards, output: parent(output.training),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/models/mono-{wildcards.text}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --tokenizer {input.tokenizer:q} --texts {params.texts} --dev {params.dev} {params.options}"
        " --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.code_hash} > {log:q} 2>&1"


rule pretrain_norm_scheme:
    input:
        unpack(reads(f"{RESULTS}/models/scale-{{scheme}}/training.json")),
    output:
        **model_files(f"{RESULTS}/models/scale-{{scheme}}"),
    log:
        f"{LOGS}/pretrain_norm_scheme/scale-{{scheme}}.log",
    benchmark:
        f"{BENCHMARKS}/pretrain_norm_scheme/scale-{{scheme}}.tsv"
    wildcard_constraints:
        # A model that the config describes under `own_models` is none of this rule's.
        scheme="".join(f"(?!{re.escape(name.removeprefix('scale-'))}/)" for name in OWN_MODELS)
        + "(post|pre|normformer)(-v2)?",
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=config["pretraining"]["gpus"],
        mem_mb=times_attempt(32000),
        runtime=times_attempt(2880),
    params:
        program=program("pretrain.py", processes=config["pretraining"]["gpus"]),
        code_hash=code("pretrain.py"),
        options=lambda wildcards: pretraining_options(config, f"scale-{wildcards.scheme}"),
        texts=lambda wildcards, input: named_texts(input.texts),
        dev=lambda wildcards, input: named_texts(input.dev),
        tokenizer=lambda wildcards, input: f"{parent(input.vocabulary)}/tokenizer.json",
        out=lambda wildcards, output: parent(output.training),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/models/scale-{wildcards.scheme}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --tokenizer {params.tokenizer:q} --texts {params.texts} --dev {params.dev} {params.options}"
        " --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.code_hash} > {log:q} 2>&1"


if OWN_VOCABULARIES:

    rule train_own_vocabulary:
        input:
            unpack(reads(f"{RESULTS}/vocabularies/{{own}}/tokenizer.json")),
        output:
            f"{RESULTS}/vocabularies/{{own}}/tokenizer.json",
        log:
            f"{LOGS}/train_own_vocabulary/{{own}}.log",
        wildcard_constraints:
            own="|".join(map(re.escape, OWN_VOCABULARIES)),
        conda:
            "../envs/torch.yaml"
        resources:
            mem_mb=times_attempt(8000),
            runtime=times_attempt(60),
        params:
            program=program("train_vocabulary.py"),
            code_hash=code("train_vocabulary.py"),
            options=lambda wildcards: vocabulary_options(config, wildcards.own),
            texts=lambda wildcards, input: named_texts(input.texts),
        shell:
            "{params.program} --texts {params.texts} {params.options} --up-to --out {output:q} > {log:q} 2>&1"


if OWN_MODELS:

    rule pretrain_own:
        input:
            unpack(reads(f"{RESULTS}/models/{{own}}/training.json")),
        output:
            **model_files(f"{RESULTS}/models/{{own}}"),
        log:
            f"{LOGS}/pretrain_own/{{own}}.log",
        benchmark:
            f"{BENCHMARKS}/pretrain_own/{{own}}.tsv"
        wildcard_constraints:
            own="|".join(map(re.escape, OWN_MODELS)),
        conda:
            "../envs/torch.yaml"
        resources:
            gpu=1,
            mem_mb=times_attempt(16000),
            runtime=times_attempt(480),
        params:
            program=program("pretrain.py"),
            code_hash=code("pretrain.py"),
            options=lambda wildcards: own_model_options(config, wildcards.own),
            texts=lambda wildcards, input: named_texts(input.texts),
            dev=lambda wildcards, input: named_texts(input.dev),
            out=lambda wildcards, output: parent(output.training),
            checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/models/{wildcards.own}",
            # Models of one vocabulary read the same texts: they are encoded once. File names tell both.
            tokens=lambda wildcards, output: f"{RESULTS}/tokens",
        shell:
            "OMP_NUM_THREADS={threads} exec {params.program} --tokenizer {input.tokenizer:q} --texts {params.texts} --dev {params.dev}"
            " --tokens {params.tokens:q} {params.options} --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.code_hash} > {log:q} 2>&1"
