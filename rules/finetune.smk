"""Fine-tune one model on one task with one seed; what is not kept, and the BiLSTM, is trained and scored in one go."""


rule finetune:
    input:
        model=of("model"),
        train=of("train"),
        dev=of("dev"),
        trials=of("trials"),  # of a search: their best batch size and learning rate are taken
        bitext=of("bitext"),  # these three for continual learning
        links=of("links"),
        original=of("original"),
        sets=[],
    output:
        **tuned_files(f"{RESULTS}/{{address}}"),
    log:
        f"{LOGS}/{{address}}/finetune.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}/finetune.tsv"
    wildcard_constraints:
        address=KEPT,
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(120),
    params:
        model=folder("model"),
        original=folder("original"),
        code=code("finetune.py"),
        settings=of("settings"),
        test_code=[],
        out=lambda wildcards, output: parent(output.training),
    shell:
        'OMP_NUM_THREADS={threads} exec python "$SCRIPTS"/finetune.py --model {params.model:q} --train {input.train:q}'
        " --dev {input.dev:q} --trials {input.trials:q} --continual-bitext {input.bitext:q} --continual-links {input.links:q}"
        ' --continual-reference {params.original:q} --settings {params.settings:q} --out {params.out:q} --tokens "$RESULTS"/tokens'
        ' --checkpoints "$RESULTS"/checkpoints/{wildcards.address:q} --code-hash {params.code}'
        " --test-code {params.test_code:q} --sets {input.sets:q} > {log:q} 2>&1"


# What stays on disk is a choice (keep_models), and a file is temporary or not for a whole rule. A model that does not
# stay is tested by the process of its training.
use rule finetune as finetune_and_test with:
    input:
        model=of("model"),
        train=of("train"),
        dev=of("dev"),
        trials=of("trials"),
        sets=of("sets"),
        bitext=of("bitext"),
        links=of("links"),
        original=of("original"),
    output:
        **score_files(f"{RESULTS}/{{address}}"),
        training=f"{RESULTS}/{{address}}/training.json",
        weights=temp(f"{RESULTS}/{{address}}/model/model.safetensors"),
        config=temp(f"{RESULTS}/{{address}}/model/config.json"),
    wildcard_constraints:
        address=NOT_KEPT,
    params:
        test_code=code("evaluate.py"),


rule train_bilstm:
    input:
        train=of("train"),
        dev=of("dev"),
        sets=of("sets"),
    output:
        **score_files(f"{RESULTS}/{{address}}"),
        **tuned_files(f"{RESULTS}/{{address}}"),
    log:
        f"{LOGS}/{{address}}/train_bilstm.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}/train_bilstm.tsv"
    wildcard_constraints:
        address="tuned/bilstm/.+",
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(8000),
        runtime=times_attempt(120),
    params:
        code=code("train_bilstm.py"),
        settings=of("settings"),
        out=lambda wildcards, output: parent(output.training),
    shell:
        'OMP_NUM_THREADS={threads} exec python "$SCRIPTS"/train_bilstm.py --train {input.train:q} --dev {input.dev:q}'
        " --sets {input.sets:q} --settings {params.settings:q} --out {params.out:q}"
        ' --checkpoints "$RESULTS"/checkpoints/{wildcards.address:q} --code-hash {params.code} > {log:q} 2>&1'
