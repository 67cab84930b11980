"""What jobs took, by the benchmark files that they leave: stage by stage."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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


# Those whose jobs work on the processor.
ON_HOST = {"demo world", "texts and sentence pairs", "word alignment", "comparison"}


@dataclass(frozen=True)
class Measured:
    """The seconds of the jobs of each stage that have run, and the devices that trained.

    `shared` has the seconds of each stage on the device: what passed while several jobs worked is divided among them.
    """

    stages: dict[str, list[float]]
    devices: list[str]
    shared: dict[str, float]


def measured(results: Path) -> Measured:
    """What the jobs of a run have taken so far."""
    folder, stages, devices = results / "benchmarks", {stage: [] for stage in STAGES.values()}, set()
    spans: list[tuple[str, float, float]] = []
    for file in sorted(folder.rglob("*.tsv")):
        name = file.relative_to(folder).as_posix()
        stage = next((stage for start, stage in STAGES.items() if re.match(start, name)), None)
        if stage and (seconds := read_benchmark(folder, name)) is not None:
            stages[stage].append(seconds)
            devices.add(training_note(results, name).get("device"))
            end = file.stat().st_mtime
            spans += [] if stage in ON_HOST else [(stage, end - seconds, end)]
    stages = {stage: each for stage, each in stages.items() if each}
    return Measured(stages, sorted(devices - {None}), divided(spans))


def divided(spans: Iterable[tuple[str, float, float]]) -> dict[str, float]:
    """The seconds of each stage, out of its jobs with their begin and end; each instant belongs to all jobs at work."""
    moments = [(moment, change, stage) for stage, *span in spans for moment, change in zip(span, (1, -1), strict=True)]
    seconds, at_work, before = dict.fromkeys((stage for *_, stage in moments), 0.0), Counter(), 0.0
    for moment, change, stage in sorted(moments):
        for each in at_work:
            seconds[each] += (moment - before) * at_work[each] / at_work.total()
        at_work, before = at_work + Counter({stage: 1}) if change > 0 else at_work - Counter({stage: 1}), moment
    return seconds


def training_note(results: Path, benchmark: str) -> dict:
    """What a training says of itself, which lies at the address that its benchmark file is named by."""
    address = re.sub(r"(/finetune|/train_bilstm)?\.tsv$", "", benchmark)
    return read_json(results / address / "training.json") or {}
