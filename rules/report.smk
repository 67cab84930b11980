"""What all tables and figures say together: verdicts on numbers and claims, and the page that people open."""


rule write_config:
    output:
        INPUTS.config_file,
    log:
        f"{LOGS}/write_config.log",
    priority: 2  # programs that look at a run that is not done yet read it
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        config=WRITTEN,  # a config may be longer than a command line
    shell:
        "cp {params.config:q} {output:q} 2> {log:q}"


rule make_verdicts:
    input:
        unpack(reads(INPUTS.verdicts["numbers"])),
    output:
        **INPUTS.verdicts,
    log:
        f"{LOGS}/make_verdicts.log",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_verdicts.py"),
        code_hash=claims_code("make_verdicts.py"),
        reasons=config.get("reasons") or {},
        stand_ins=sorted(stand_ins(config)),  # claims about them are not judged
        results=lambda wildcards, input: parent(input.config),
    shell:
        "{params.program} --config {input.config:q} --results {params.results:q} --out {output.numbers:q}"
        " --claims {output.claims:q} > {log:q} 2>&1"


rule make_report:
    input:
        unpack(reads(INPUTS.page["page"])),
    output:
        page=report(
            INPUTS.page["page"],
            caption="../resources/captions/page.rst",
            category=PAGE,
            labels={"item": "The page", "title": "All tables, figures, claims and settings"},
        ),
        provenance=INPUTS.page["provenance"],
    log:
        f"{LOGS}/make_report.log",
    conda:
        "../envs/data.yaml"
    params:
        program=program("make_report.py"),
        code_hash=code("make_report.py"),
        # What the page alone shows of the config.
        shown={name: config.get(name) or {} for name in ("skip", "replaced")},
        results=lambda wildcards, input: parent(input.config),
    shell:
        "{params.program} --config {input.config:q} --results {params.results:q} --out {output.page:q} > {log:q} 2>&1"
