"""Models between pretraining and task: pulled together on linked words, or gone on with the text of one language."""


rule adjust_model:
    input:
        original=of("original"),
        bitext=of("bitext"),
        links=of("links"),
    output:
        **model_files(f"{RESULTS}/{{address}}"),
    log:
        f"{LOGS}/{{address}}.log",
    benchmark:
        f"{BENCHMARKS}/{{address}}.tsv"
    wildcard_constraints:
        address=r"models/[^/+]+\+adjust-[^/]+/seed\d+",
    priority: 1  # before fine-tunings: left for the end, it and the many jobs that wait for it would follow one another
    conda:
        "../envs/torch.yaml"
    resources:
        gpu=1,
        mem_mb=times_attempt(16000),
        runtime=times_attempt(120),
    params:
        original=folder("original"),
        code=code("adjust.py"),
        settings=of("settings"),
        out=lambda wildcards, output: parent(output.training),
    shell:
        'OMP_NUM_THREADS={threads} exec python "$SCRIPTS"/adjust.py --model {params.original:q} --bitext {input.bitext:q}'
        " --links {input.links:q} --out {params.out:q} --settings {params.settings:q}"
        ' --checkpoints "$RESULTS"/checkpoints/{wildcards.address:q} --code-hash {params.code} > {log:q} 2>&1'


# As a pretraining, from a model that is there.
use rule pretrain as adapt_to_text with:
    wildcard_constraints:
        address=r"models/[^/+]+\+mlm-[^/]+/seed\d+",
