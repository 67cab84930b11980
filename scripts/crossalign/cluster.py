"""What a workflow on SLURM needs beside its executor: status queries that survive outages, and no job twice at once."""

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from crossalign.errors import UserError

log = logging.getLogger(__name__)


def use_shims(folder: str | Path) -> None:
    """Put the programs in `folder` before SLURM's of the same names, for this process and the jobs that it submits."""
    if shutil.which("sbatch") is None:
        return
    path = os.environ["PATH"].split(os.pathsep)
    if str(folder) not in path:
        os.environ["PATH"] = os.pathsep.join([str(folder), *path])
    if "SLURM_CONF" in os.environ:
        os.environ["CROSSALIGN_SLURM_CONF"] = os.environ["SLURM_CONF"]


def left_behind(folder: str | Path, marked: Iterable[str], locks: str | Path) -> list[str]:
    """The numbers of jobs that an earlier run, killed since, has left at work on what is to be made now in `folder`.

    `locks` is the folder with one output lock for each run that is alive. If there is no other, every job that works in
    `folder` was left behind. If there is, only jobs `marked` as makers of what is to be made now certainly were.
    """
    others = len(list(Path(locks).glob("*.output.lock"))) != 1
    return unfinished(marked) if others else list(jobs_in(folder))


def jobs_in(folder: str | Path) -> list[str]:
    """The numbers of one's own jobs that a workflow has submitted for work in a folder and that wait or run."""
    here = Path(folder).resolve()
    rows = [row.split("|", 2) for row in _queue("%A|%k|%Z")]
    return [number for number, comment, place in rows if comment.startswith("rule_") and Path(place).resolve() == here]


def unfinished(jobs: Iterable[str]) -> list[str]:
    """Those of the SLURM jobs that still wait or run, in the order of their numbers."""
    wanted = {job for job in jobs if job.isdigit()}
    # All of one's own jobs are asked for: squeue fails when one of the numbers that it is given is forgotten.
    return [job for job in _queue("%A") if job in wanted] if wanted else []


def _queue(form: str) -> list[str]:
    """A line for each of one's own jobs that waits or runs, in the order of their numbers."""
    if shutil.which("squeue") is None:
        return []
    command = ["squeue", "--noheader", "--sort=i", f"--format={form}", f"--user={os.getuid()}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(
            f"squeue does not answer ({done.stderr.strip()}), and jobs of an earlier run may still be at work: "
            "start again when it does"
        )
    return done.stdout.splitlines()


def end_earlier_jobs(jobs: Iterable[str], patience: float = 300.0, pause: float = 1.0) -> list[str]:
    """Cancel jobs that an earlier run has left behind and wait until they are gone; returns the cancelled ones.

    Training saves a checkpoint when it is cancelled, so the jobs that are submitted instead go on from there.
    """
    alive = unfinished(jobs)
    if not alive:
        return []
    log.warning("jobs of an earlier run are still at work and are cancelled first: %s", ", ".join(alive))
    subprocess.run(["scancel", *alive], check=False)
    end = time.monotonic() + patience
    while left := unfinished(alive):
        if time.monotonic() > end:
            raise UserError(
                f"jobs {', '.join(left)} of an earlier run do not end; cancel them (scancel) and start again, so that "
                "no job runs twice at the same time"
            )
        time.sleep(pause)
    return alive
