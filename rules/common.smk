"""The checked config, the sheets of what is to be done, and the few functions that rules look into them with. No rules."""

import re
import sys
from pathlib import Path

# The library lies beside the Snakefile, wherever the workflow is called from.
SCRIPTS = Path(workflow.basedir) / "scripts"
sys.path.insert(0, str(SCRIPTS))

from crossalign.catalog.addresses import CONTINUAL, INIT, MODEL, PRESET, SET
from crossalign.catalog.demo_models import deleted_models
from crossalign.catalog.downloads import file_settings, split_settings, way_settings
from crossalign.catalog.labelled import registered_files
from crossalign.catalog.layers import bases
from crossalign.catalog.outputs import model_files, score_files, tracked, tuned_files
from crossalign.catalog.sheets import PAPER_TARGETS, as_json
from crossalign.catalog.studied import known_models
from crossalign.plan.start import check_all, start_run
from crossalign.report.captions import PAGE, caption_of, category_of, item_of, labels_of
from crossalign.runtime.errors import UserError
from snakemake.exceptions import WorkflowError

try:
    EXTENDED = bases(workflow.overwrite_configfiles)
except UserError as error:
    raise WorkflowError(str(error)) from None

# Snakemake lays the files of the command line over each.
for file in EXTENDED:

    configfile: file


try:
    SHEETS = check_all(workflow, config, logger.warning)
except UserError as error:
    raise WorkflowError(str(error)) from None

DATASETS, MODELS = registered_files(), known_models(config)
RESULTS, DOWNLOADS = SHEETS.results, SHEETS.downloads
LOGS, BENCHMARKS = f"{RESULTS}/logs", f"{RESULTS}/benchmarks"
WRITTEN = f"{LOGS}/config.json"
# The fine-tuned models that stay on disk (keep_models), and the others, as parts of addresses.
KEEP = {"all": INIT, "ref": f"ref|{CONTINUAL}", "none": "(?!)"}[config["keep_models"]]
KEPT = rf"tuned/(?!bilstm/){MODEL}/{PRESET}-{SET}/(?:{KEEP})/seed\d+"
NOT_KEPT = rf"tuned/(?!bilstm/){MODEL}/{PRESET}-{SET}/(?!(?:{KEEP})/)(?:{INIT})/seed\d+"


def of(column, address=None):
    """What stands in a column of a sheet, in the row whose address is in the output's path."""

    def look_up(wildcards):
        try:
            found = SHEETS.of(address or wildcards.address, column)
        except UserError as error:
            raise WorkflowError(str(error)) from None
        return list(map(flagged, found)) if isinstance(found, list) else flagged(found)

    return look_up


def flagged(file):
    """A cell; of files, what is not a result is never taken from remote storage, and params say which keys matter."""
    if not isinstance(file, str) or "/" not in file or file.startswith((f"{DOWNLOADS}/", f"{RESULTS}/")):
        return ancient(file) if file == SHEETS.config_file else file
    return local(file)


def settings(wildcards):
    """The settings of a job, for its program."""
    return as_json(SHEETS.of(wildcards.address, "settings"))


def code(*programs, address=""):
    """The hash of programs and of what they load for the job alone: its task, the module of its paper."""
    return lambda wildcards: SHEETS.code(getattr(wildcards, "address", address), *programs)


def folder(name):
    """The folder of an input, or of the first of several: a model is named by its folder."""
    return lambda wildcards, input: parent(input[name]) if input.get(name) else []


def parent(files):
    return str(Path(files if isinstance(files, str) else next(iter(files))).parent)


def times_attempt(number, long=None):
    """A resource that grows with the attempt; `long`: for a training that sees billions of tokens."""
    chosen = lambda wildcards: long if long and SHEETS.of(wildcards.address, "long") else number
    return lambda wildcards, attempt: chosen(wildcards) * attempt
