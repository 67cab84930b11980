"""What jobs took, by the benchmark files that they leave: stage by stage, and of a GPU that several shared.

Such a file is written when its job ends and says how long the job took, so both its times are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Base, Tuned
from crossalign.catalog.inputs import Job
from crossalign.catalog.runs import Catalog
from crossalign.plan.costs import read_benchmarks
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
class Measured:
    """The seconds of the jobs of each stage that have run, and the devices that trained."""

    stages: dict[str, list[float]]
    devices: list[str]


def measured(catalog: Catalog, results: Path) -> Measured:
    """What the jobs of a config have taken so far."""
    jobs = planned(catalog).jobs
    seconds = read_benchmarks(results / "benchmarks", jobs.values())
    devices = {training_note(jobs[name], results).get("device") for name in seconds}
    stages: dict[str, list[float]] = {stage: [] for stage in STAGES.values()}
    for name, took in seconds.items():
        rule = jobs[name].rule
        stages.setdefault(next((label for start, label in STAGES.items() if rule.startswith(start)), rule), []).append(
            took
        )
    return Measured({stage: each for stage, each in stages.items() if each}, sorted(devices - {None}))


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


def training_note(job: Job, results: Path) -> dict:
    """What a training says of itself."""
    if not isinstance(job.subject, Base | Adapted | Tuned) or job.rule.startswith(("evaluate", "embed", "compare")):
        return {}
    return read_json(results / job.subject.path() / "training.json") or {}


def _in_order(graph: Graph, spans: Mapping[str, tuple[float, float]]) -> bool:
    """Whether files have the times at which they were written: a copy may not, and then jobs precede what they read."""
    pairs = [(spans[need], span) for name, span in spans.items() for need in graph.needs[name] if need in spans]
    wrong = sum(after[0] < before[1] - _LEEWAY for before, after in pairs)
    return wrong * 10 <= len(pairs)
