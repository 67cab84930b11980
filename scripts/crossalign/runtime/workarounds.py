"""All that reaches into Snakemake and its SLURM executor: what has no public name, and workarounds for faults.

Each workaround is for one version and off in every other: a later one may have mended the fault, or work in a way that
the workaround would break.
"""

import _thread
import contextlib
import importlib.metadata
import json
import logging
import os
import platform
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from crossalign.runtime import holders
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json
from crossalign.runtime.gpus import SHARE

# The versions that the workarounds were written for and tested with; requirements.txt pins the same.
SNAKEMAKE = "9.27.1"
SLURM_EXECUTOR = "2.8.0"
JOBSTEP_EXECUTOR = "0.6.1"
SLOTS = "CROSSALIGN_SLOTS"
# In a working folder: Snakemake's locks, which go as a whole; and notes of the runs that have submitted jobs.
LOCKS = Path(".snakemake") / "locks"
RUNS = Path(".snakemake") / "crossalign"

_told: set[str] = set()


def _applies(package: str, version: str, fault: str, warn: Callable[[str], Any]) -> bool:
    """Whether a package has the version that a workaround is for. If it has another, `warn` hears of it, once."""
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False  # nothing to mend
    if installed != version and fault not in _told:
        _told.add(fault)
        warn(f"{package} is {installed}, not {version}: a workaround is off, so {fault}")
    return installed == version


@contextlib.contextmanager
def in_a_sentence() -> Iterator[None]:
    """Snakemake tells what is the user's to mend without a traceback."""
    from snakemake.exceptions import WorkflowError

    try:
        yield
    except UserError as error:
        raise WorkflowError(str(error)) from None


def survive_second_sigterm(warn: Callable[[str], Any]) -> None:
    """Let Snakemake answer a SIGTERM that comes twice, as SLURM may send it.

    Its handler wants a lock that may be held by what it interrupts, most likely by its answer to the first. Then it
    would hang until SLURM kills it.
    """
    if _applies("snakemake", SNAKEMAKE, "a second SIGTERM may hang Snakemake", warn):
        from snakemake.scheduling.job_scheduler import JobScheduler

        JobScheduler.exit_gracefully = beside(JobScheduler.exit_gracefully)


def beside(handler: Callable[..., None]) -> Callable[..., None]:
    """A handler that does its work in a thread of its own, so that it may wait for what it has interrupted."""
    # Not threading.Thread: that has locks too.
    return lambda *arguments: _thread.start_new_thread(handler, arguments)


def use_one_timer(scheduler: Any, warn: Callable[[str], Any]) -> None:
    """Let one timer at a time tell Snakemake to look for work.

    It arms a timer at each look, and each timer brings about the next look: hundreds a second after a few hundred jobs.
    """
    if not _applies("snakemake", SNAKEMAKE, "Snakemake may look for work hundreds of times a second", warn):
        return
    waiting = threading.Lock()

    def look() -> None:
        waiting.release()
        scheduler._open_jobs.release()

    def arm(delay: float) -> None:
        if waiting.acquire(blocking=False):
            timer = threading.Timer(delay, look)
            timer.daemon = True
            timer.start()

    scheduler._schedule_reevalutation = arm


def mend_status_queries(shims: str | Path, warn: Callable[[str], Any]) -> None:
    """The executor misreads some answers of SLURM: the programs in `shims` come before SLURM's of the same names.

    For this process and the jobs that it submits.
    """
    fault = "lost jobs may be waited for without end, and jobs may not have time to save"
    fault += " (docs/use/cluster.md, Status queries)"
    if shutil.which("sbatch") is None or not _applies("snakemake-executor-plugin-slurm", SLURM_EXECUTOR, fault, warn):
        return
    path = os.environ["PATH"].split(os.pathsep)
    if str(shims) not in path:
        os.environ["PATH"] = os.pathsep.join([str(shims), *path])
    if "SLURM_CONF" in os.environ:
        os.environ["CROSSALIGN_SLURM_CONF"] = os.environ["SLURM_CONF"]


def note_lock(folder: Path) -> None:
    """Write down beside Snakemake's locks that this process holds them; whoever removes the locks removes the note."""
    if any((folder / LOCKS).glob("*.lock")):
        write_json(folder / LOCKS / f"{platform.node()}-{os.getpid()}.json", holders.this_process())


def remove_dead_lock(folder: Path) -> str:
    """Remove the locks of killed runs; what was done is told. They stay if any of the runs may be alive."""
    notes = list((folder / LOCKS).glob("*.json"))
    try:
        read = [json.loads(note.read_text(encoding="utf-8")) for note in notes]
        if not read or {holders.state(note) for note in read} != {"dead"}:
            return ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    last = max(note.stat().st_mtime_ns for note in notes)
    with contextlib.suppress(FileNotFoundError):  # another run does the same
        for file in [*(folder / LOCKS).glob("*.lock"), *notes]:
            if file.stat().st_mtime_ns <= last:  # else of a run without a note
                file.unlink()
    return f"A killed run ({holders.told(read[-1])}) had left its lock: it is removed."


def locked_files(folder: Path) -> list[str]:
    """The files that runs in a folder are making."""
    locks = (folder / LOCKS).glob("*.output.lock")
    return [line for lock in locks for line in lock.read_text(encoding="utf-8").splitlines()]


def jobs_of(snakefile: Path, configs: Iterable[Path], files: Iterable[str], folder: Path) -> list[dict[str, Any]]:
    """Every job behind some files, as a dry run in a folder finds them; `left` says whether it would run."""
    from snakemake.api import SnakemakeApi
    from snakemake.exceptions import WorkflowError
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

    settings = ResourceSettings(cores=999), ConfigSettings(configfiles=list(configs))
    quiet = OutputSettings(dryrun=True, log_level_override=logging.ERROR, enable_file_logging=False)
    with SnakemakeApi(quiet) as api:
        try:
            found = api.workflow(*settings, snakefile=snakefile, workdir=folder)
            # As in the profiles, what a killed job has left is made again.
            found.dag(DAGSettings(targets=frozenset(files), force_incomplete=True))
            workflow = found._workflow
            workflow._prepare_dag(forceall=False, ignore_incomplete=False, lock_warn_only=False, nolock=True)
            workflow._build_dag()
        except WorkflowError as error:
            raise UserError(str(error)) from None
        left = set(needed_jobs(workflow))
        return [
            {
                "rule": job.rule.name,
                "outputs": list(map(str, job.output)),
                "reads": list(map(str, job.input)),
                "wildcards": dict(job.wildcards_dict),
                "gpus": job.resources.get("gpu", 0),
                "threads": job.threads,
                "benchmark": str(job.benchmark or "").partition("/benchmarks/")[2],
                "left": job in left,
            }
            for job in workflow.dag.jobs
        ]


def needed_jobs(workflow: Any) -> list[Any]:
    """The jobs that this run is going to do."""
    return list(workflow.dag.needrun_jobs())


def submitted_before(workflow: Any) -> list[str]:
    """The numbers under which a scheduler knows jobs of an earlier run that were to make what this one is to make."""
    return [number for job in needed_jobs(workflow) for number in workflow.persistence.external_jobids(job)]


def submits_as(scheduler: Any) -> str | None:
    """The name that the SLURM executor gives to all jobs of this run; None where it is not known."""
    return getattr(getattr(scheduler, "_executor", None), "run_uuid", None)


def share_gpus_as_told(workflow: Any) -> None:
    """Jobs inherit how many share a GPU: `share` among the profile's resources, unless the user's variable says it."""
    if not workflow.remote_exec and (share := workflow.global_resources.get("share").value):
        os.environ.setdefault(SHARE, str(share))


def run_side_by_side(workflow: Any, warn: Callable[[str], Any]) -> bool:
    """Let the jobs of a submission run at the same time, as many as the profile's `slot` says; whether it is so here.

    The executor does not tell a submission that limit, makes it run one job at a time, and waits for the end of each.
    """
    if not workflow.remote_exec:
        limit = workflow.global_resources.get("slot").value
        os.environ[SLOTS] = str(limit or 1)  # jobs inherit it
    if "slurm-jobstep" not in sys.argv or int(os.environ.get(SLOTS, "1")) < 2:
        return False
    package, fault = "snakemake-executor-plugin-slurm-jobstep", "jobs of one submission run one after another"
    if not _applies(package, JOBSTEP_EXECUTOR, fault, warn):
        return False
    from snakemake_executor_plugin_slurm_jobstep import Executor

    Executor.run_job = beside(Executor.run_job)
    workflow.global_resources["_nodes"] = int(os.environ[SLOTS])
    return True
