"""The checked config, the sheets of what is to be done, and the few functions that rules look into them with. No rules."""

import os
import re
import sys
from pathlib import Path

# The library lies beside the Snakefile, wherever the workflow is called from.
SCRIPTS = Path(workflow.basedir) / "scripts"
sys.path.insert(0, str(SCRIPTS))

from crossalign.catalog.demo_models import deleted_models
from crossalign.catalog.downloads import file_settings, split_settings, way_settings
from crossalign.catalog.labelled import registered_files
from crossalign.catalog.layers import bases
from crossalign.catalog.outputs import kept_or_not, model_files, score_files, tracked, tuned_files
from crossalign.catalog.sheets import as_json
from crossalign.catalog.studied import known_models
from crossalign.plan.start import check_all, start_run
from crossalign.report.captions import PAGE, caption_of, category_of, item_of, labels_of
from crossalign.runtime.workarounds import in_a_sentence

with in_a_sentence():
    EXTENDED = bases(workflow.overwrite_configfiles)

# Snakemake lays the files of the command line over each.
for file in EXTENDED:

    configfile: file


with in_a_sentence():
    SHEETS = check_all(workflow, config, logger.warning)

DATASETS, MODELS = registered_files(), known_models(config)
RESULTS, DOWNLOADS = SHEETS.results, SHEETS.downloads
LOGS, BENCHMARKS = f"{RESULTS}/logs", f"{RESULTS}/benchmarks"
# For the shell commands: where the programs lie, and the folder of the run.
os.environ |= {"SCRIPTS": str(SCRIPTS), "RESULTS": RESULTS}
KEPT, NOT_KEPT = kept_or_not(config)


def of(column, address=None):
    """What stands in a column of a sheet, in the row whose address is in the output's path; settings as JSON."""

    def look_up(wildcards):
        with in_a_sentence():
            found = SHEETS.of(address or wildcards.address, column)
        return as_json(found) if column == "settings" else flagged(found)

    return look_up


def flagged(found):
    """Of files, what is not a result is never taken from remote storage; params say which keys of the config matter."""
    if isinstance(found, list):
        return list(map(flagged, found))
    if not isinstance(found, str) or os.sep not in found or found.startswith((f"{DOWNLOADS}/", f"{RESULTS}/")):
        return ancient(found) if found == SHEETS.config_file else found
    return local(found)


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
    return lambda wildcards, attempt: attempt * (long if long and SHEETS.of(wildcards.address, "long") else number)
