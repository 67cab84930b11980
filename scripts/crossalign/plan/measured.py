"""What jobs took, by the benchmark files that they leave: stage by stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from crossalign.plan.costs import read_benchmark
from crossalign.runtime.files import read_json

# Stages by how their benchmark files begin, in order.
STAGES = {
    "make_world": "demo world",
    "data/": "texts and sentence pairs",
    "links/": "word alignment",
    r"models/[^+]+$": "pretraining",
    r"models/.+\+mlm-": "language model adaptation",
    r"models/.+\+adjust-": "adjustment",
    "tuned/.+/finetune": "fine-tuning",
    "tuned/.+/train_bilstm": "BiLSTM",
    "tuned/.+/evaluate": "evaluation",
    "embeddings/": "vectors",
    "similarity/": "comparison",
}


@dataclass(frozen=True)
class Measured:
    """The seconds of the jobs of each stage that have run, and the devices that trained."""

    stages: dict[str, list[float]]
    devices: list[str]


def measured(results: Path) -> Measured:
    """What the jobs of a run have taken so far."""
    folder, stages, devices = results / "benchmarks", {stage: [] for stage in STAGES.values()}, set()
    for file in sorted(folder.rglob("*.tsv")):
        name = file.relative_to(folder).as_posix()
        stage = next((stage for start, stage in STAGES.items() if re.match(start, name)), None)
        if stage and (seconds := read_benchmark(folder, name)) is not None:
            stages[stage].append(seconds)
            devices.add(training_note(results, name).get("device"))
    return Measured({stage: each for stage, each in stages.items() if each}, sorted(devices - {None}))


def training_note(results: Path, benchmark: str) -> dict:
    """What a training says of itself, which lies at the address that its benchmark file is named by."""
    address = re.sub(r"(/finetune|/train_bilstm)?\.tsv$", "", benchmark)
    return read_json(results / address / "training.json") or {}
