"""What a workflow on SLURM needs beside its executor: status queries that survive outages, and no job twice at once."""

import json
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json
from crossalign.runtime.holders import state, this_process, told
from crossalign.runtime.workarounds import RUNS

log = logging.getLogger(__name__)


def note_run(folder: str | Path, run: str) -> None:
    """Write down that this process is the run `run` in `folder`: by that name SLURM knows the jobs it submits."""
    write_json(Path(folder) / RUNS / f"{run}.json", this_process())


def left_behind(folder: str | Path, marked: Iterable[str]) -> list[str]:
    """The numbers of jobs that an earlier run in `folder` has left behind when it was killed.

    Jobs of a run that is alive, or may be, stay. If they are `marked` as makers of what is to be made now, the user
    must decide. Snakemake's locks say nothing: --nolock makes none, and a run that ends removes those of the others.
    """
    marked, here = set(marked), Path(folder).resolve()
    jobs = [job for job in _queue() if job.number in marked or Path(job.folder).resolve() == here]
    runs = {run: _state(here, run) for run in {job.run for job in jobs}}
    busy = [job for job in jobs if runs[job.run][0] != "dead"]
    if clash := [job for job in busy if job.number in marked]:
        numbers = " ".join(job.number for job in clash)
        raise UserError(
            f"SLURM jobs {numbers} are making what this run is to make. {runs[clash[0].run][1]} Wait for its end; if "
            f"it is over, cancel them (scancel {numbers}). Then start again"
        )
    if busy:
        log.warning("jobs of another run in this folder are left alone: %s", ", ".join(job.number for job in busy))
    for note in (here / RUNS).glob("*.json"):
        if note.stem not in runs and _state(here, note.stem)[0] == "dead":
            note.unlink(missing_ok=True)
    return [job.number for job in jobs if runs[job.run][0] == "dead"]


def _state(folder: Path, run: str) -> tuple[str, str]:
    """Whether a run is `alive` or `dead`; `unknown` where that cannot be seen from here. And a sentence on it."""
    try:
        note = json.loads((folder / RUNS / f"{run}.json").read_text(encoding="utf-8"))
        return state(note), f"The run that submitted them is {told(note)}."
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown", f"Nothing says whether the run that submitted them ({run}) is at work."


class Submitted(NamedTuple):
    """A job that a workflow has submitted and that waits or runs."""

    number: str
    run: str
    folder: str


def _queue() -> list[Submitted]:
    """One's own jobs that workflows have submitted, by number: the executor's comment is the rule, its name the run."""
    if shutil.which("squeue") is None:
        return []
    # Not only those of interest: squeue fails when one of the numbers that it is given is forgotten.
    command = ["squeue", "--noheader", "--sort=i", "--format=%A|%k|%j|%Z", f"--user={os.getuid()}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(
            f"squeue does not answer ({done.stderr.strip()}), and jobs of an earlier run may still be at work: "
            "start again when it does"
        )
    rows = [row.split("|", 3) for row in done.stdout.splitlines()]
    return [Submitted(number, run, place) for number, comment, run, place in rows if comment.startswith("rule_")]


def end_earlier_jobs(jobs: list[str], patience: float = 300.0, pause: float = 1.0) -> None:
    """Cancel jobs that an earlier run has left behind and wait until they are gone.

    Training saves a checkpoint when it is cancelled, so the jobs that are submitted instead go on from there.
    """
    if not jobs:
        return
    log.warning("jobs of an earlier run are still at work and are cancelled first: %s", ", ".join(jobs))
    subprocess.run(["scancel", *jobs], check=False)
    end = time.monotonic() + patience
    while left := [job.number for job in _queue() if job.number in jobs]:
        if time.monotonic() > end:
            raise UserError(
                f"jobs {', '.join(left)} of an earlier run do not end; cancel them (scancel) and start again, so that "
                "no job runs twice at the same time"
            )
        time.sleep(pause)
