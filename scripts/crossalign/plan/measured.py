"""What jobs took, by the benchmark files that they leave: stage by stage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Base, Tuned
from crossalign.catalog.inputs import Job
from crossalign.catalog.runs import Catalog
from crossalign.plan.costs import read_benchmarks
from crossalign.plan.jobs import planned
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


def training_note(job: Job, results: Path) -> dict:
    """What a training says of itself."""
    if not isinstance(job.subject, Base | Adapted | Tuned) or job.rule.startswith(("evaluate", "embed", "compare")):
        return {}
    return read_json(results / job.subject.path() / "training.json") or {}
