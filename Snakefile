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


rule align_predict:
    input:
        SHEETS.target("align_predict"),


rule anc:
    input:
        SHEETS.target("anc"),


rule adjust:
    input:
        SHEETS.target("adjust"),


rule talk:
    input:
        SHEETS.target("talk"),


rule data:
    input:
        SHEETS.target("data"),


rule download:
    input:
        SHEETS.target("download"),
