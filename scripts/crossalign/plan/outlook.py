"""What a rehearsal says of the real run, by rule and in all, beside what was planned without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.config import load
from crossalign.catalog.labelled import registered_files
from crossalign.catalog.layers import ROOT
from crossalign.catalog.studied import known_models
from crossalign.papers.all_items import catalog_of
from crossalign.plan.costs import HARDWARE
from crossalign.plan.estimate import Choice, Estimate
from crossalign.plan.jobs import Graph, Job
from crossalign.plan.rehearsal import DISK, measured_alone, rehearsed
from crossalign.runtime.files import read_json

# In the folder of a rehearsal's sheets: the jobs of the real run, with nothing done.
REAL = "plan/real_run.json"


@dataclass(frozen=True)
class Line:
    """One rule: jobs of the real run, those rehearsed, those measured and their seconds, all jobs as foreseen and as
    planned, MB at most.
    """

    rule: str
    jobs: int
    rehearsed: int
    measured: int
    took: float
    foreseen: float
    planned: float
    host: float
    gpu: float | None


@dataclass(frozen=True)
class Outlook:
    """Seconds of the card, or of a core without one, and `wall` seconds on one machine, each foreseen and planned."""

    lines: list[Line]
    hardware: str
    seconds: tuple[float, float]
    wall: tuple[float, float]
    disk: dict[str, int] | None


def hardware_of(devices: list[str]) -> str:
    """The kind of hardware whose planned times are comparable."""
    cards = [device.lower() for device in devices if device != "cpu"]
    known = (kind for kind in HARDWARE if any(kind in card for card in cards))
    return next(known, "h200" if cards else "cpu")


def tells_of(results: Path, hardware: str) -> bool:
    """Whether there was a rehearsal of the full size on such hardware."""
    notes = (read_json(file) or {} for file in results.glob("tuned/*/*/*/*/training.json"))
    devices = {note["device"] for note in notes if "device" in note}
    tiny = (read_json(results / "mirror" / "settings.json") or {}).get("tiny")
    return bool(devices) and not tiny and hardware_of(sorted(devices)) == hardware


def chosen(config: dict) -> dict:
    """What the real run has of a rehearsal's config."""
    return {"papers": config["papers"], "items": config["items"]}


def outlook(config: dict, results: Path, devices: list[str]) -> Outlook | None:
    """For the real run; `devices` are those that the rehearsal ran on. None where nobody has planned that."""
    if (jobs := read_json(results / REAL)) is None:
        return None
    real, graph = load([]) | chosen(config), Graph(Job(**job) for job in jobs.values())
    registers, hardware = (registered_files(), known_models(real)), hardware_of(devices)
    foreseen, before = (
        Estimate(catalog_of(real), graph, registers, Choice(hardware=hardware, rehearsal=folder), ROOT, results)
        for folder in (results, None)
    )
    found = rehearsed(results, list(foreseen.jobs.values()))
    return Outlook(
        list(_lines(foreseen, before, found)),
        hardware,
        tuple(_seconds(each) for each in (foreseen, before)),
        tuple(each.wall_time() for each in (foreseen, before)),
        read_json(results / DISK),
    )


def _seconds(estimate: Estimate) -> float:
    totals = estimate.totals()
    return totals.cpu_seconds if estimate.choice.hardware == "cpu" else totals.alone


def _lines(foreseen: Estimate, planned: Estimate, found: dict) -> Iterator[Line]:
    before, counted = planned.by_rule(), measured_alone(found, foreseen.jobs)
    for rule, totals in foreseen.by_rule().items():
        ran = [each for name, each in found.items() if foreseen.jobs[name].rule == rule]
        if ran:
            alone = [each for name, each in counted.items() if foreseen.jobs[name].rule == rule]
            yield Line(
                rule, totals.jobs, len(ran), len(alone), sum(each.seconds for each in alone),
                totals.alone + totals.cpu_seconds,
                before[rule].alone + before[rule].cpu_seconds, max(each.memory for each in ran),
                max((each.gpu for each in ran if each.gpu), default=None),
            )  # fmt: skip
