"""Vocabularies and models from scratch, as the section `pretrain` of the config describes them."""


rule train_vocabulary:
    input:
        texts=of("texts"),
        letters=of("letters"),
    output:
        f"{RESULTS}/{{address}}/tokenizer.json",
    log:
        f"{LOGS}/{{address}}.log",
    wildcard_constraints:
        address="vocabularies/[^/]+",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=times_attempt(8000),
        runtime=times_attempt(60),
    params:
        code=code("train_vocabulary.py"),
        settings=of("settings"),
    shell:
        'python "$SCRIPTS"/train_vocabulary.py --texts {input.texts:q} --letters {input.letters:q} --up-to --out {output:q}'
        " --settings {params.settings:q} > {log:q} 2>&1"


rule pretrain:
    input:
        original=of("original"),  # a model to go on from, or
        vocabulary=of("vocabulary"),
        texts=of("texts"),
        dev=of("dev"),
    output:
        **model_files(f"{RESULTS}/{{address}}"),
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address="models/[^/+]+",
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000, long=32000),
        runtime=times_attempt(480, long=2880),
    params:
        start=folder("original"),
        tokenizer=folder("vocabulary"),
        code=code("pretrain.py"),
        settings=of("settings"),
        out=lambda wildcards, output: parent(output.training),
    shell:
        'OMP_NUM_THREADS={threads} exec python "$SCRIPTS"/pretrain.py --init {params.start:q} --tokenizer {params.tokenizer:q}'
        ' --texts {input.texts:q} --dev {input.dev:q} --tokens "$RESULTS"/tokens --out {params.out:q} --settings {params.settings:q}'
        ' --checkpoints "$RESULTS"/checkpoints/{wildcards.address:q} --code-hash {params.code} > {log:q} 2>&1'


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
            settings=tracked(config["world"]),
            folder=lambda wildcards, output: parent(output.training),
        shell:
            'exec python "$SCRIPTS"/make_demo_model.py --model {wildcards.model:q} --settings {params.settings:q}'
            ' --out {params.folder:q} --work "$RESULTS"/checkpoints/demo-models > {log:q} 2>&1'
