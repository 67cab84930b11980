"""Models between pretraining and task: pulled together on linked words, or gone on with the text of one language."""


rule adjust_model:
    input:
        unpack(lambda wildcards: pulled_inputs(wildcards.base, adapted_at(wildcards).adaptation)),
    output:
        **model_outputs("{base}+{adaptation}/seed{seed}"),
    log:
        f"{LOGS}/adjust_model/{{base}}+{{adaptation}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/adjust_model/{{base}}+{{adaptation}}-seed{{seed}}.tsv"
    wildcard_constraints:
        adaptation=r"adjust-[a-z]+-\w+-[a-z]+-[a-z]+",
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=growing(16000),
        runtime=growing(120),
    params:
        program=program("adjust.py"),
        recipe=code("adjust.py"),
        options=lambda wildcards: adjustment_options(config, adapted_at(wildcards)),
        base=lambda wildcards, input: str(Path(input.original).parent),
        out=lambda wildcards, output: str(Path(output.training).parent),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{adapted_at(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --model {params.base:q} --bitext {input.bitext:q} --links {input.links:q}"
        " {params.options} --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.recipe}"
        " > {log:q} 2>&1"


rule adapt_to_text:
    input:
        original=lambda wildcards: model_file(Base(wildcards.base)),
        texts=lambda wildcards: text_files(adapted_at(wildcards)),
        dev=lambda wildcards: text_files(adapted_at(wildcards), "dev"),
    output:
        **model_outputs("{base}+{adaptation}/seed{seed}"),
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
        mem_mb=growing(16000),
        runtime=growing(480),
    params:
        program=program("pretrain.py"),
        recipe=code("pretrain.py"),
        options=mlm_options(config),
        texts=lambda wildcards, input: named_texts(input.texts),
        dev=lambda wildcards, input: named_texts(input.dev),
        base=lambda wildcards, input: str(Path(input.original).parent),
        out=lambda wildcards, output: str(Path(output.training).parent),
        checkpoints=lambda wildcards, output: f"{RESULTS}/checkpoints/{adapted_at(wildcards).path()}",
    shell:
        "OMP_NUM_THREADS={threads} exec {params.program} --init {params.base:q} --texts {params.texts} --dev {params.dev} {params.options}"
        " --seed {wildcards.seed} --out {params.out:q} --checkpoints {params.checkpoints:q} --recipe {params.recipe}"
        " > {log:q} 2>&1"
