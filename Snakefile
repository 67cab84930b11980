"""Rebuild every table and figure of the papers named in config.yaml."""

from snakemake.utils import min_version

min_version("9.27.1")  # as pinned: no older one was tested, and in a newer one workarounds are off


configfile: f"{workflow.basedir}/config.yaml"


report: "resources/captions/workflow.rst"


include: "rules/common.smk"
include: "rules/download.smk"
include: "rules/prepare.smk"
include: "rules/align.smk"
include: "rules/pretrain.smk"
include: "rules/adapt.smk"
include: "rules/finetune.smk"
include: "rules/evaluate.smk"
include: "rules/embed.smk"
include: "rules/compare.smk"
include: "rules/results.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/report.smk"


# Only the last `onstart` of a workflow counts, so this is the only one.
onstart:
    with in_a_sentence():
        start_run(workflow, config, SHEETS, logger.warning)


rule all:
    default_target: True
    input:
        SHEETS.target("all"),


# One for each folder of papers (align_predict, anc, adjust, talk), so that a new paper has its own; and of all:
# the grid search, models pretrained here, prepared data, downloads.
for target in (*PAPER_TARGETS, "grid", "pretrained", "data", "download"):

    rule:
        name:
            target
        input:
            SHEETS.target(target),
