"""Fine-tune one model on one task with one seed; what is not kept, and the BiLSTM, is trained and scored in one go."""

# What stays on disk is a choice, and a file is temporary or not for a whole rule: hence one rule for models with random
# layers and one for the others, alike but for that. A model that does not stay is tested by the process of its training.
for name, inits, kept in (
    ("finetune", f"ref|{CONTINUAL}", config["keep_models"] != "none"),
    ("finetune_random", "(random|grid)-.+", config["keep_models"] == "all"),
):

    rule:
        name:
            name
        input:
            unpack(reads(f"{TUNED}/training.json")),
        output:
            **{file: path if kept or file == "training" else temp(path) for file, path in tuned_files(TUNED).items()},
            **{} if kept else score_files(TUNED),
        log:
            f"{LOGS}/finetune/{{model}}/{{preset}}-{{source}}/{{init}}-seed{{seed}}.log",
        benchmark:
            f"{BENCHMARKS}/finetune/{{model}}/{{preset}}-{{source}}/{{init}}-seed{{seed}}.tsv"
        wildcard_constraints:
            init=inits,
        conda:
            "../envs/torch.yaml"
        resources:
            gpu=1,
            mem_mb=times_attempt(16000),
            runtime=times_attempt(120),
        params:
            program=program("finetune.py"),
            code_hash=task_code("finetune.py", tuned_at),
            options=lambda wildcards: run_options(config, tuned_at(wildcards)),
            settings=lambda wildcards: finetune_settings(config, tuned_at(wildcards)),
            trials=lambda wildcards, input: trial_files(input),
            continual=lambda wildcards, input: continual_files(config, tuned_at(wildcards), input),
            dev=lambda wildcards, input: options(dev=input.get("dev")),
            base=lambda wildcards, input: parent(input.model),
            out=lambda wildcards, output: parent(output.training),
            # Not an output: Snakemake deletes the outputs of a killed job, and a killed job must find its checkpoints.
            checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{tuned_at(wildcards).path()}",
            tokens=lambda wildcards, output: f"{RESULTS}/tokens",
            test_code="" if kept else task_code("evaluate.py", tuned_at),
            then=(
                ""
                if kept
                else (lambda wildcards, input, output: then_evaluate(INPUTS, tuned_at(wildcards), input, output))
            ),
        shell:
            "OMP_NUM_THREADS={threads} exec {params.program} --model {params.base:q} --train {input.train:q} {params.dev}"
            " --settings {params.settings:q} {params.options} {params.trials} {params.continual} --out {params.out:q} --checkpoints {params.checkpoints:q}"
            " --tokens {params.tokens:q} --code-hash {params.code_hash} {params.then} > {log:q} 2>&1"


rule train_bilstm:
    input:
        unpack(reads(f"{BILSTM}/training.json")),
    output:
        **score_files(BILSTM),
        **tuned_files(BILSTM),
    log:
        f"{LOGS}/train_bilstm/{{preset}}-{{source}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/train_bilstm/{{preset}}-{{source}}-seed{{seed}}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(8000),
        runtime=times_attempt(120),
    params:
        program=program("train_bilstm.py"),
        code_hash=code("train_bilstm.py"),
        options=lambda wildcards: run_options(config, bilstm_at(wildcards)),
        settings=lambda wildcards: bilstm_settings(config),
        sets=lambda wildcards, input: named_sets(input.sets),
        out=lambda wildcards, output: parent(output.training),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{bilstm_at(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --train {input.train:q} --dev {input.dev:q} --sets {params.sets}"
        " --settings {params.settings:q} {params.options} --out {params.out:q} --checkpoints {params.checkpoints:q} --code-hash {params.code_hash}"
        " > {log:q} 2>&1"
