"""What a rehearsal (`make rehearsal`) tells of the real run: seconds, also of the steps that were cut, and memory.

A rehearsed training does its first steps twice. Its training.json says how long a step takes the second time, and how
many are left; so with scoring on the dev set. All other jobs are done in full.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.inputs import Job
from crossalign.plan.costs import Price, read_benchmarks
from crossalign.plan.measured import training_note
from crossalign.runtime.files import read_json, write_json

# How the records of what jobs took of a GPU begin, by rule.
_RECORDS = {"adapt_to_text": "pretrain", "adjust_model": "adjust", "finetune_random": "finetune"}
_RECORDS |= {"train_bilstm": "bilstm"}
DISK = "disk.json"


@dataclass(frozen=True)
class Rehearsed:
    """A job of a rehearsal: the seconds that it took, those that were cut, and MB of memory and of a GPU's at most."""

    seconds: float
    cut: float
    memory: float
    gpu: float | None = None

    @property
    def price(self) -> Price:
        """What the same job takes in the real run. While it starts and reads it leaves the card to others."""
        return Price(self.seconds + self.cut, "rehearsal", idle=self.seconds)


def rehearsed(results: Path | None, jobs: Collection[Job]) -> dict[str, Rehearsed]:
    """By name those of the jobs that have run in the rehearsal whose results are in a folder."""
    if results is None or not results.is_dir():
        return {}
    memory = read_benchmarks(results / "benchmarks", jobs, "max_rss")
    named = {job.name: job for job in jobs}
    seconds = read_benchmarks(results / "benchmarks", jobs)
    notes = {name: training_note(named[name], results) for name in seconds}
    return {
        name: Rehearsed(took, cut_seconds(notes[name]), memory.get(name, 0.0), notes[name].get("gpu_memory"))
        for name, took in seconds.items()
    }


def cut_seconds(note: Mapping) -> float:
    """The time of what a training left out; `note` is its training.json."""
    cut = note.get("rehearsal") or {}
    return sum(cut.get(f"{what}s_left", 0) * cut.get(f"{what}_seconds", 0.0) for what in ("step", "score"))


def gpu_memory(results: Path, rule: str, ran: Iterable[Rehearsed] = ()) -> float | None:
    """MB of a GPU that a job of a rule took at most, by its own account or by the records of jobs that share GPUs."""
    kind = _RECORDS.get(rule, rule).replace("_", "-")
    uses = (read_json(file) or {} for file in (results / "gpus").glob(f"{kind}-*.json"))
    found = [*(use.get("memory") for use in uses), *(each.gpu for each in ran)]
    return max((most for most in found if most), default=None)


def watch_disk(folder: Path, file: Path, seconds: float = 5.0) -> None:
    """Note in a file how full the disk of a folder was at most, as long as this process lives."""

    def watch() -> None:
        while True:
            with contextlib.suppress(OSError):
                note_disk(folder, file)
            time.sleep(seconds)

    threading.Thread(target=watch, daemon=True).start()


def note_disk(folder: Path, file: Path) -> None:
    """Bytes in use at first and at most; a run that goes on with a rehearsal goes on with its file."""
    used = shutil.disk_usage(folder).used
    known = read_json(file) or {"first": used, "most": 0}
    if used > known["most"]:
        write_json(file, known | {"most": used})
