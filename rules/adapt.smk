"""Models between pretraining and task: pulled together on linked words, or gone on with the text of one language."""


rule adjust_model:
    input:
        unpack(reads(f"{ADAPTED}/training.json")),
    output:
        **model_files(ADAPTED),
    log:
        f"{LOGS}/adjust_model/{{base}}+{{adaptation}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/adjust_model/{{base}}+{{adaptation}}-seed{{seed}}.tsv"
    wildcard_constraints:
        adaptation=r"adjust-[a-z]+-\w+-[a-z]+-[a-z]+",
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(120),
    params:
        program=program("adjust.py"),
        code_hash=code("adjust.py"),
        options=lambda wildcards: adjustment_options(config, adapted_at(wildcards)),
        base=lambda wildcards, input: parent(input.original),
        out=lambda wildcards, output: parent(output.training),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{adapted_at(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --model {params.base:q} --bitext {input.bitext:q} --links {input.links:q}"
        " {params.options} --out {params.out:q} --checkpoints {params.checkpoints:q} --code-hash {params.code_hash}"
        " > {log:q} 2>&1"


rule adapt_to_text:
    input:
        unpack(reads(f"{ADAPTED}/training.json")),
    output:
        **model_files(ADAPTED),
    log:
        f"{LOGS}/adapt_to_text/{{base}}+{{adaptation}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/adapt_to_text/{{base}}+{{adaptation}}-seed{{seed}}.tsv"
    wildcard_constraints:
        adaptation=rf"mlm-{SET}",
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(480),
    params:
        program=program("pretrain.py"),
        code_hash=code("pretrain.py"),
        options=mlm_options(config),
        texts=lambda wildcards, input: named_texts(input.texts),
        dev=lambda wildcards, input: named_texts(input.dev),
        base=lambda wildcards, input: parent(input.original),
        out=lambda wildcards, output: parent(output.training),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{adapted_at(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --init {params.base:q} --texts {params.texts} --dev {params.dev} {params.options}"
        " --seed {wildcards.seed} --out {params.out:q} --checkpoints {params.checkpoints:q} --code-hash {params.code_hash}"
        " > {log:q} 2>&1"
