"""What a rehearsal (`make rehearsal`) tells of the real run: seconds, also of the steps that were cut, and memory.

A rehearsed training does its first steps twice. Its training.json says how long a step takes the second time, and how
many are left; so with scoring on the dev set. All other jobs are done in full. One job of each kind has the GPU to
itself; what the others take, which share it, tells nothing.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

from crossalign.plan.costs import Price, read_benchmarks, read_ends
from crossalign.plan.jobs import Graph, Job
from crossalign.plan.measured import training_note
from crossalign.runtime.files import read_json, write_json

DISK = "disk.json"
# Jobs whose results are kept, for those that leave something for one of these only.
_AFTER = {"embed_sentences": "compare_languages", "embed_words": "measure_distances"}
# Others may take this part of a job's time, or so many seconds: Snakemake notes an end a little late.
_BESIDE, _LATE = 0.1, 1.0


@dataclass(frozen=True)
class Rehearsed:
    """A job of a rehearsal: the seconds that it took, those that were cut, and MB of memory and of a GPU's at most."""

    seconds: float
    cut: float
    memory: float
    gpu: float | None = None
    alone: bool = True

    @property
    def price(self) -> Price:
        """What the same job takes in the real run. While it starts and reads it leaves the card to others."""
        return Price(self.seconds + self.cut, "rehearsal", idle=self.seconds)


def one_of_each_kind(graph: Graph, kind: Callable[[Job], Hashable], seconds: Callable[[str], float]) -> list[str]:
    """Results for which one job of each kind has to work on a GPU, the kinds first that take most of the time."""
    kinds: dict[Hashable, list[str]] = {}
    for name, job in graph.jobs.items():
        if job.gpus and job.rule != "evaluate":
            kinds.setdefault((job.rule, kind(job)), []).append(name)
    order = sorted(kinds.values(), key=lambda names: -sum(map(seconds, names)))
    return list(dict.fromkeys(_kept_result(graph, min(names)) for names in order))


def _kept_result(graph: Graph, name: str) -> str:
    after = _AFTER.get(graph.jobs[name].rule)
    return next((each for each in graph.dependants[name] if graph.jobs[each].rule == after), name)


def alone(spans: Mapping[str, tuple[float, float]]) -> set[str]:
    """Those of some jobs, by their starts and ends, beside which no others ran, or hardly."""

    def beside(name: str) -> float:
        start, end = spans[name]
        return sum(max(0.0, min(end, other[1]) - max(start, other[0])) for each, other in spans.items() if each != name)

    return {name for name, (start, end) in spans.items() if beside(name) <= max(_LATE, _BESIDE * (end - start))}


def measured_alone(ran: Mapping[str, Rehearsed], jobs: Mapping[str, Job]) -> dict[str, Rehearsed]:
    """Those that had a GPU to themselves, or all of a rule of which none had: several GPUs, or files without times."""
    rules = {jobs[name].rule for name, each in ran.items() if each.alone}
    return {name: each for name, each in ran.items() if each.alone or jobs[name].rule not in rules}


def rehearsed(results: Path | None, jobs: Collection[Job]) -> dict[str, Rehearsed]:
    """By name those of the jobs that have run in the rehearsal whose results are in a folder."""
    if results is None or not results.is_dir():
        return {}
    memory = read_benchmarks(results / "benchmarks", jobs, "max_rss")
    named = {job.name: job for job in jobs}
    seconds = read_benchmarks(results / "benchmarks", jobs)
    notes = {name: training_note(results, named[name].benchmark) for name in seconds}
    ends = read_ends(results / "benchmarks", jobs)
    on_gpu = alone({name: (ends[name] - took, ends[name]) for name, took in seconds.items() if named[name].gpus})
    return {
        name: Rehearsed(
            took, cut_seconds(notes[name]), memory.get(name, 0.0), notes[name].get("gpu_memory"),
            not named[name].gpus or name in on_gpu,
        )
        for name, took in seconds.items()
    }  # fmt: skip


def cut_seconds(note: Mapping) -> float:
    """The time of what a training left out; `note` is its training.json."""
    cut = note.get("rehearsal") or {}
    return sum(cut.get(f"{what}s_left", 0) * cut.get(f"{what}_seconds", 0.0) for what in ("step", "score"))


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
