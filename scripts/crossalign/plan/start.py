"""What happens before the first job: the config is checked, the sheets are written, and the machine is looked at."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crossalign.catalog.config import check
from crossalign.catalog.labelled import hub_split, registered_files
from crossalign.catalog.layers import read_told
from crossalign.catalog.remake import base_command
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.studied import known_models
from crossalign.fetch.listing import licence_summary, missing_message
from crossalign.papers.all_items import catalog_of
from crossalign.plan.rehearsal import DISK, watch_disk
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

Tell = Callable[[str], Any]


def check_all(workflow: Any, config: dict, tell: Tell) -> Sheets:
    """At every parse: faults of Snakemake are mended, the config is checked, the sheets are written."""
    if "SLURM_JOB_ID" in os.environ:
        mend_status_queries(_shims(workflow), tell)
    survive_second_sigterm(tell)
    config.pop("extends", None)
    read_told(config)
    check(config)
    sheets = Sheets(catalog_of(config))
    files = registered_files()
    if unlisted := [path for path in sheets.catalog.files() if path not in files]:
        raise UserError(f"resources/datasets.tsv lacks files that the config asks for: {', '.join(unlisted)}")
    _refuse_earlier_layout(sheets)
    sheets.write(Path(sheets.at("plan")))
    # Those of a SLURM job share its GPU if they run at the same time (profiles/packed).
    share_gpus_as_told(workflow)
    share = jobs_per_gpu(os.environ)
    if run_side_by_side(workflow, tell) and share > 1:
        share_by_mps(os.environ)
    return sheets


def _refuse_earlier_layout(sheets: Sheets) -> None:
    """Before the sheets jobs had other params: Snakemake would make all results of such a folder again."""
    old = Path(sheets.config_file).is_file() and not Path(sheets.at("plan")).is_dir()
    if old and not {"--touch", "-t"}.intersection(sys.argv):
        raise UserError(
            f"{sheets.results} was made by an earlier version. Its results hold, but Snakemake's records of them do "
            f"not fit, and everything would be made again. To keep the results: {base_command(sheets.config)} --touch; "
            f"to start anew: make clean RUN={sheets.config['run']}"
        )


def start_run(workflow: Any, config: dict, sheets: Sheets, tell: Tell) -> None:
    """Before the first job."""
    _look_at_downloads(workflow, config, tell)
    # A job copies the first one, since Snakemake warns of outputs that are there before their job.
    for file in (sheets.at("logs/config.json"), *filter(os.path.exists, [sheets.config_file])):
        write_json(file, config, sort_keys=True)
    if config.get("rehearsal"):
        watch_disk(Path.cwd(), Path(sheets.results) / DISK)
    use_one_timer(workflow.scheduler, tell)
    _look_at_gpus_and_cluster(workflow, tell)


def _look_at_downloads(workflow: Any, config: dict, tell: Tell) -> None:
    """What is missing offline; the licences of what will be fetched."""
    files, models = registered_files(), known_models(config)
    rows = {
        "download_file": lambda job: files[job.path],
        "download_labelled": lambda job: hub_split(config, job.name, job.split),
        "download_model": lambda job: models[job.model],
    }
    fetched = [rows[job.rule.name](job.wildcards) for job in needed_jobs(workflow) if job.rule.name in rows]
    downloads = config["downloads"]
    # A mirror may have what is not there yet.
    if downloads["offline"] and not downloads["mirror"] and (message := missing_message(fetched, downloads["folder"])):
        raise UserError(message)
    if fetched and not (config.get("world") or config.get("rehearsal")):
        tell(f"Licences of what is going to be downloaded:\n{licence_summary(fetched)}")


def _look_at_gpus_and_cluster(workflow: Any, tell: Tell) -> None:
    """How jobs share GPUs; on a cluster no job of a killed run goes on."""
    planned, on_cluster = submitted_before(workflow), workflow.executor_plugin.name == "slurm"
    if on_cluster:
        mend_status_queries(_shims(workflow), tell)
    elif not workflow.remote_exec and any(job.resources.get("gpu") for job in needed_jobs(workflow)):
        gpus, share = choices(os.environ), jobs_per_gpu(os.environ)
        if gpus:
            mps = "" if share == 1 else " with MPS" if share_by_mps(os.environ) else " without MPS: they take turns"
            tell(f"{len(gpus)} GPU{'s' * (len(gpus) > 1)}, jobs on each: {share}{mps}")
    # A machine may have SLURM's programs and no scheduler that answers: a local run does not ask, if no jobs are known.
    if planned or on_cluster:
        # Without a note of the name that its jobs carry, other runs would have to ask the user.
        if run := submits_as(workflow.scheduler):
            note_run(Path.cwd(), run)
        end_earlier_jobs(left_behind(Path.cwd(), planned))


def _shims(workflow: Any) -> Path:
    return Path(workflow.basedir) / "profiles" / "slurm" / "bin"
