"""What a run has taken, stage by stage, from the benchmark files that its jobs leave.

Such a file is written when its job ends and says how long the job took, so both its times are known. Jobs that run at
once share a GPU or a machine: each second is divided among them, or the sum would exceed what the clock showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Base, Tuned
from crossalign.catalog.inputs import Job
from crossalign.catalog.runs import Catalog
from crossalign.plan.costs import read_benchmarks, read_ends
from crossalign.plan.jobs import Graph, planned
from crossalign.runtime.files import read_json

# Stages by how the names of their rules begin, in order.
STAGES = {
    "make_world": "demo world",
    "prepare": "texts and sentence pairs",
    "align": "word alignment",
    "pretrain": "pretraining",
    "adapt": "language model adaptation",
    "adjust": "adjustment",
    "finetune": "fine-tuning",
    "train_bilstm": "BiLSTM",
    "evaluate": "evaluation",
    "embed": "vectors",
    "compare": "comparison",
}
# Seconds by which a job may seem to start before another has ended whose result it reads.
_LEEWAY = 2


@dataclass(frozen=True)
class Ran:
    """A job that has run, its seconds and the time at which it ended. `earlier` are seconds of interrupted attempts."""

    stage: str
    seconds: float
    end: float
    gpu: bool
    earlier: float = 0.0

    @property
    def start(self) -> float:
        return self.end - self.seconds


@dataclass(frozen=True)
class Spent:
    """One stage. `clock` are its seconds of the GPU or machine; None where these are not known or it used no GPU."""

    jobs: int
    seconds: float
    clock: float | None


@dataclass(frozen=True)
class Measured:
    """A run. `begun` and `ended` are None where files do not have the times at which they were written."""

    stages: dict[str, Spent]
    devices: list[str]
    begun: float | None
    ended: float | None
    resumed: int

    @property
    def on_cpu(self) -> bool:
        return not any(device != "cpu" for device in self.devices)

    @property
    def unit(self) -> str:
        """What the clock of a stage counts minutes of."""
        return "machine" if self.on_cpu else "GPU"

    def total(self) -> Spent:
        """All stages."""
        clocks = [each.clock for each in self.stages.values() if each.clock is not None]
        jobs, seconds = (sum(getattr(each, name) for each in self.stages.values()) for name in ("jobs", "seconds"))
        return Spent(jobs, seconds, sum(clocks) if clocks else None)


def measured(catalog: Catalog, results: Path, gpus: int = 1) -> Measured:
    """What the jobs of a config have taken so far."""
    return measure(planned(catalog), results, gpus)


def measure(graph: Graph, results: Path, gpus: int = 1) -> Measured:
    """What the jobs that have left benchmark files in `results` took; of several GPUs each runs as many of them."""
    jobs, folder = graph.jobs, results / "benchmarks"
    seconds, ends = read_benchmarks(folder, jobs.values()), read_ends(folder, jobs.values())
    notes = {name: training_note(jobs[name], results) for name in seconds}
    devices = sorted({note["device"] for note in notes.values() if isinstance(note.get("device"), str)})
    gpu = any(device != "cpu" for device in devices)
    found = {}
    for name, took in seconds.items():
        job = jobs[name]
        stage = next((label for start, label in STAGES.items() if job.rule.startswith(start)), job.rule)
        # Of a run that is made on several machines, one without a GPU may train what is small.
        on_gpu = job.gpus > 0 and notes[name].get("device") != "cpu"
        found[name] = Ran(stage, took, ends[name], on_gpu or not gpu, _earlier(notes[name], took))
    kept = _in_order(graph, {name: (ran.start, ran.end) for name, ran in found.items()})
    clocks = clock((ran for ran in found.values() if ran.gpu), gpus) if kept else {}
    return Measured(
        dict(_stages(found.values(), clocks)),
        devices,
        min((ran.start for ran in found.values()), default=None) if kept else None,
        max((ran.end for ran in found.values()), default=None) if kept else None,
        sum(ran.earlier > 0 for ran in found.values()),
    )


def remarks(measured: Measured) -> Iterator[str]:
    """What to know about the minutes."""
    if measured.begun is None:
        yield (
            f"How jobs shared the {measured.unit} is not known, as the benchmark files do not have the times at which "
            "they were written; tar keeps these, a plain copy does not."
        )
    else:
        yield (
            f"Minutes of the {measured.unit}: each second is divided among the jobs that ran in it. "
            "Not in it: what writes no benchmark file, such as tables, figures and Snakemake itself."
        )
    if measured.resumed:
        one = measured.resumed == 1
        yield (
            f"{measured.resumed} training{'' if one else 's'} went on from a checkpoint: of earlier attempts only the "
            "time of training counts."
        )


def clock(ran: Iterable[Ran], gpus: int = 1) -> dict[str, float]:
    """Seconds by stage, each second divided among the jobs that ran in it."""
    jobs = list(ran)
    spent = dict.fromkeys((job.stage for job in jobs), 0.0)
    for job, part in zip(jobs, _parts([(job.start, job.end) for job in jobs], gpus), strict=True):
        spent[job.stage] += part
    return spent


def parts_of_gpus(
    graph: Graph, seconds: Mapping[str, float], ends: Mapping[str, float], gpus: int = 1
) -> dict[str, float]:
    """The seconds of jobs on GPUs, each divided among those that ran in it; nothing if files have lost their times."""
    spans = {name: (ends[name] - took, ends[name]) for name, took in seconds.items()}
    if not _in_order(graph, spans):
        return {}
    names = [name for name in spans if graph.jobs[name].gpus]
    return dict(zip(names, _parts([spans[name] for name in names], gpus), strict=True))


def _parts(spans: Sequence[tuple[float, float]], gpus: int) -> list[float]:
    """Of each of some spans of time the seconds that it had for itself."""
    changes = sorted(
        (time, began, job) for job, span in enumerate(spans) for time, began in zip(span, (1, 0), strict=True)
    )
    parts, running, before = [0.0] * len(spans), set[int](), 0.0
    for now, began, job in changes:
        for each in running:
            parts[each] += (now - before) * min(1.0, gpus / len(running))
        (running.add if began else running.discard)(job)
        before = now
    return parts


def _stages(ran: Iterable[Ran], clocks: Mapping[str, float]) -> Iterator[tuple[str, Spent]]:
    stages: dict[str, list[Ran]] = {}
    for job in ran:
        stages.setdefault(job.stage, []).append(job)
    order = [*STAGES.values(), *sorted(stages)]
    for stage in sorted(stages, key=order.index):
        spent = Spent(len(stages[stage]), sum(job.seconds + job.earlier for job in stages[stage]), None)
        timed = [job for job in stages[stage] if job.gpu]
        took = sum(job.seconds for job in timed)
        # Interrupted attempts have left no times: they count like the others of their stage.
        whole = took + sum(job.earlier for job in timed)
        yield stage, replace(spent, clock=clocks[stage] * whole / took) if took and stage in clocks else spent


def training_note(job: Job, results: Path) -> dict:
    """What a training says of itself."""
    if not isinstance(job.subject, Base | Adapted | Tuned) or job.rule.startswith(("evaluate", "embed", "compare")):
        return {}
    return read_json(results / job.subject.path() / "training.json") or {}


def _earlier(note: dict, took: float) -> float:
    """Seconds of training before the job went on from a checkpoint; its own file has the last attempt only."""
    whole = note.get("seconds")
    return max(0.0, whole - took) if note.get("resumed") and isinstance(whole, int | float) else 0.0


def _in_order(graph: Graph, spans: Mapping[str, tuple[float, float]]) -> bool:
    """Whether files have the times at which they were written: a copy may not, and then jobs precede what they read."""
    pairs = [(spans[need], span) for name, span in spans.items() for need in graph.needs[name] if need in spans]
    wrong = sum(after[0] < before[1] - _LEEWAY for before, after in pairs)
    return wrong * 10 <= len(pairs)
