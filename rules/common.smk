"""The checked config and the catalog, which the rules ask. No rules."""

import os
import sys
from functools import cache, partial
from pathlib import Path

# The library lies beside the Snakefile, wherever the workflow is called from.
sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from crossalign.catalog.addresses import CONTINUAL, INIT, MODEL, PRESET, SET, WORD
from crossalign.catalog.addresses import parse as run_at
from crossalign.catalog.commands import (
    adjustment_options,
    bilstm_options,
    file_options,
    finetune_options,
    mlm_options,
    options,
    prepare_options,
    pretrain_options,
    split_options,
    vocabulary_options,
    way_options,
)
from crossalign.catalog.config import check
from crossalign.catalog.demo_models import deleted_models
from crossalign.catalog.inputs import (
    PAPER_TARGETS,
    Inputs,
    model_files,
    score_files,
    set_files,
    tracked,
    tuned_files,
)
from crossalign.catalog.labelled import hub_split, labelled, registered_files
from crossalign.catalog.layers import bases
from crossalign.catalog.params import (
    aligner_options,
    code,
    compare_options,
    continual_files,
    distance_options,
    embed_model,
    embed_options,
    item_settings,
    letters_option,
    named_languages,
    named_treebanks,
    named_sets,
    named_texts,
    parent,
    prepare_code,
    program,
    start_option,
    task_code,
    then_evaluate,
    times_attempt,
    trial_files,
)
from crossalign.catalog.sets import DataSet
from crossalign.catalog.studied import known_models
from crossalign.catalog.trained_models import is_long, stand_ins, trained_model, trained_models, trained_vocabularies
from crossalign.fetch.listing import licence_summary, missing_message
from crossalign.papers import claims_code, paper_code
from crossalign.papers.all_items import catalog_of
from crossalign.report.captions import PAGE, caption_of, category_of, labels_of
from crossalign.runtime.cluster import end_earlier_jobs, left_behind, note_run
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json
from crossalign.runtime.gpus import choices, jobs_per_gpu, share_by_mps
from crossalign.runtime.workarounds import (
    mend_status_queries,
    needed_jobs,
    run_side_by_side,
    share_gpus_as_told,
    submits_as,
    submitted_before,
    survive_second_sigterm,
    use_one_timer,
)
from snakemake.exceptions import WorkflowError

SHIMS = Path(workflow.basedir) / "profiles" / "slurm" / "bin"
if "SLURM_JOB_ID" in os.environ:
    mend_status_queries(SHIMS, logger.warning)
survive_second_sigterm(logger.warning)

try:
    EXTENDED = bases(workflow.overwrite_configfiles)
except UserError as error:
    raise WorkflowError(str(error)) from None

# Snakemake lays the files of the command line over each.
for file in EXTENDED:

    configfile: file


config.pop("extends", None)

try:
    check(config)
    jobs_per_gpu(os.environ)
    CATALOG = catalog_of(config)
    DATASETS = registered_files()
    MODELS = known_models(config)
    if unlisted := [path for path in CATALOG.files() if path not in DATASETS]:
        raise UserError(f"resources/datasets.tsv lacks files that the config asks for: {', '.join(unlisted)}")
except UserError as error:
    raise WorkflowError(str(error)) from None

INPUTS = Inputs(CATALOG)
RESULTS = INPUTS.results
DOWNLOADS = INPUTS.downloads
LOGS = f"{RESULTS}/logs"
WRITTEN = f"{LOGS}/config.json"
BENCHMARKS = f"{RESULTS}/benchmarks"
ADAPTED = f"{RESULTS}/models/{{base}}+{{adaptation}}/seed{{seed}}"
TUNED = f"{RESULTS}/tuned/{{model}}/{{preset}}-{{source}}/{{init}}/seed{{seed}}"
BILSTM = f"{RESULTS}/tuned/bilstm/{{preset}}-{{source}}/ref/seed{{seed}}"

# Those of a SLURM job share its GPU if they run at the same time (profiles/packed).
share_gpus_as_told(workflow)
if run_side_by_side(workflow, logger.warning) and jobs_per_gpu(os.environ) > 1:
    share_by_mps(os.environ)


wildcard_constraints:
    kind="trees|ner|nli|qa|bitext|text|parallel",
    name=r"[a-z0-9]+(_[a-z0-9]+)*(\+[a-z0-9]+)*",
    split=r"[a-z]+",
    lang=r"[a-z]{2,3}",
    model=rf"(?!bilstm/){MODEL}",
    base=WORD,
    preset=PRESET,
    source=SET,
    init=INIT,
    seed=r"\d+",
    address=r"(models|tuned)/.+",
    corpus="pud|xnliext",
    paper="|".join(PAPER_TARGETS.values()),


def reads(file):
    """An input function: what the job reads that makes a file. The file's wildcards are those of the rule."""

    def inputs(wildcards):
        found = INPUTS.job(file.format(**wildcards)).inputs.items()
        return {name: flagged(files) if isinstance(files, str) else list(map(flagged, files)) for name, files in found}

    return inputs


@cache
def flagged(file):
    """An input. Params say which keys of the config matter; what is not a result is never taken from remote storage."""
    if file == INPUTS.config_file:
        return ancient(file)
    stored = file.startswith((f"{RESULTS}/", f"{DOWNLOADS}/")) and not file.startswith(f"{RESULTS}/mirror/")
    return file if stored else local(file)


def subject(file):
    """What the job is about that makes a file, as a function of the file's wildcards."""
    return lambda wildcards: INPUTS.job(file.format(**wildcards)).subject


adapted_at = subject(f"{ADAPTED}/training.json")
tuned_at = subject(f"{TUNED}/training.json")
bilstm_at = subject(f"{BILSTM}/training.json")


def to_fetch():
    """The registers' rows of what jobs are going to fetch."""
    rows = {
        "download_file": lambda job: DATASETS[job.path],
        "download_labelled": lambda job: hub_split(config, job.name, job.split),
        "download_model": lambda job: MODELS[job.model],
    }
    return [rows[job.rule.name](job.wildcards) for job in needed_jobs(workflow) if job.rule.name in rows]


def start_run():
    """What comes before the first job."""
    downloads = config["downloads"]
    # A mirror may have what is not there yet.
    if downloads["offline"] and not downloads["mirror"] and (message := missing_message(to_fetch(), DOWNLOADS)):
        raise WorkflowError(message)
    invented = config.get("world") or config.get("rehearsal")
    if not invented and (fetched := to_fetch()):
        logger.warning(f"Licences of what is going to be downloaded:\n{licence_summary(fetched)}")
    # A job copies the first one, since Snakemake warns of outputs that are there before their job.
    for file in (WRITTEN, *filter(os.path.exists, [INPUTS.config_file])):
        write_json(file, config, sort_keys=True)
    if config.get("rehearsal"):
        from crossalign.plan.rehearsal import DISK, watch_disk

        watch_disk(Path.cwd(), Path(RESULTS) / DISK)
    use_one_timer(workflow.scheduler, logger.warning)
    planned = submitted_before(workflow)
    if workflow.executor_plugin.name == "slurm":
        mend_status_queries(SHIMS, logger.warning)
    elif not workflow.remote_exec and any(job.resources.get("gpu") for job in needed_jobs(workflow)):
        if gpus := choices(os.environ):
            share = jobs_per_gpu(os.environ)
            mps = "" if share == 1 else " with MPS" if share_by_mps(os.environ) else " without MPS: they take turns"
            logger.warning(f"{len(gpus)} GPU{'s' * (len(gpus) > 1)}, jobs on each: {share}{mps}")
    # A machine may have SLURM's programs and no scheduler that answers: a local run does not ask, unless jobs are known.
    if planned or workflow.executor_plugin.name == "slurm":
        try:
            # Without a note of the name that its jobs carry, other runs would have to ask the user.
            if run := submits_as(workflow.scheduler):
                note_run(Path.cwd(), run)
            end_earlier_jobs(left_behind(Path.cwd(), planned))
        except UserError as error:
            raise WorkflowError(str(error)) from None


def set_at(kind, wildcards):
    """The set that a job prepares."""
    return DataSet(kind, wildcards.name, wildcards.get("split", "train"))


def prepare_options_at(kind, wildcards):
    """The options of the program that prepares a set."""
    return prepare_options(config, set_at(kind, wildcards))


def prepare_code_at(kind, script, wildcards):
    """What makes a prepared set out of date besides its files and options."""
    return prepare_code(script, set_at(kind, wildcards))


def prepares(kind, usual, tables):
    """The params of a job that prepares a set: the program of its kind, or that of tables for a set of `datasets`."""

    def script(wildcards):
        return tables if labelled(config, set_at(kind, wildcards)) else usual

    return {
        "program": lambda wildcards, output: program(script(wildcards))(wildcards, output),
        "code_hash": lambda wildcards: prepare_code_at(kind, script(wildcards), wildcards),
        "options": partial(prepare_options_at, kind),
    }
