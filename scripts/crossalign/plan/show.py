"""The plan in words and columns of at most 100 characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from crossalign.catalog.runs import Catalog, count
from crossalign.fetch.listing import by_licence
from crossalign.fetch.register import Dataset, Model
from crossalign.plan.costs import HARDWARE, SHARING
from crossalign.plan.estimate import Estimate, Totals
from crossalign.plan.jobs import Job
from crossalign.plan.outlook import Outlook
from crossalign.plan.work import readable

KINDS = ("fine-tuning", "grid trial", "adjustment", "masked language modelling", "base model")
_HEADINGS = ("fine-tunings", "grid trials", "adjustments", "MLM", "base models")
MARKS = {"benchmark": "b", "rehearsal": "r", "measured": "m", "paper": "p", "estimate": "e"}
_BASES = {
    "benchmark": "benchmark files of earlier jobs",
    "rehearsal": "the rehearsal, its trainings extrapolated",
    "measured": "our measurements",
    "paper": "times in the papers, with the authors' programs",
    "estimate": "estimates",
}
NAMES = dict(zip(HARDWARE, ("H200", "V100", "T4", "CPU core"), strict=True))


def duration(seconds: float) -> str:
    """12 s, 3.4 min, 5.6 h, 2.1 days."""
    for unit, size, limit in (("s", 1, 100), ("min", 60, 6000), ("h", 3600, 3600 * 72)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:,.1f} days"


def spent(seconds: float) -> str:
    """As a duration, in hours at most: what machines are paid by."""
    return duration(seconds) if seconds < 6000 else f"{seconds / 3600:,.1f} h"


def columns(rows: Sequence[Sequence[object]], left: int = 1) -> Iterator[str]:
    """Aligned cells: the first `left` columns to the left, numbers to the right."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            str(cell).ljust(width) if place < left else str(cell).rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def models_by_paper(catalog: Catalog, items: Sequence[str]) -> Iterator[str]:
    """Runs by paper; what an earlier paper has needed already is not counted again."""
    rows, seen = [], set()
    for paper in catalog.config["papers"]:
        own = [item for item in items if item.startswith(f"{paper}/")]
        new = catalog.runs(own) - seen if own else set()
        seen |= new
        rows.append([paper, len(own), *(count(new)[kind] for kind in KINDS)])
    total = ["all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])]
    yield "Models, each counted with the first paper that needs it"
    yield ""
    yield from columns([["paper", "items", *_HEADINGS], *rows, total])


def jobs_by_rule(estimate: Estimate) -> Iterator[str]:
    """How many jobs, how many of them are done, and what the others take."""
    rules = estimate.by_rule()
    rows = [[rule, *_cells(totals)] for rule, totals in rules.items()]
    yield "Jobs: all, done (Snakemake would not run them), left, and the time of what is left"
    yield ""
    yield from columns(
        [["rule", "jobs", "done", "left", "GPU time", "CPU time", "from"], *rows, ["all", *_cells(estimate.totals())]]
    )
    bases = estimate.by_basis()
    whole = sum(bases.values()) or 1
    parts = [f"{MARKS[basis]}: {text} ({bases[basis] / whole:.0%})" for basis, text in _BASES.items() if basis in bases]
    if parts:
        yield ""
        yield from textwrap.wrap(f"Times from {'; '.join(parts)}. Sources: resources/costs.tsv.", 98)


def _cells(totals: Totals) -> list[str]:
    hours = [spent(seconds) if seconds else "" for seconds in (totals.gpu_seconds, totals.cpu_seconds)]
    marks = "".join(MARKS[basis] for basis in MARKS if basis in totals.bases)
    return [f"{totals.jobs:,}", f"{totals.jobs - totals.left:,}", f"{totals.left:,}", *hours, marks]


def times(estimate: Estimate) -> Iterator[str]:
    """Critical path and wall time."""
    choice = estimate.choice
    cores = f"{choice.cores} core{'s' * (choice.cores > 1)}"
    where = cores if choice.hardware == "cpu" else f"{choice.gpus} x {NAMES[choice.hardware]} and {cores}"
    together = f" with {choice.share} jobs on each" * (choice.share > 1)
    if not estimate.left:
        yield "Nothing is left to do."
        return
    totals, transfers = estimate.totals(), estimate.transfer_seconds()
    parts = [gpu_time(totals.gpu_seconds) + together] * (choice.hardware != "cpu")
    parts.append(f"{totals.cpu_seconds / 3600:,.2g} CPU-hours")
    if not estimate.made_here:
        parts.append(f"{duration(transfers)} of downloads at {choice.mbit:g} Mbit/s")
    yield f"In all {', '.join(parts)}"
    if together:
        yield f"One job at a time: {gpu_time(totals.alone)}"
    yield f"Wall time on {where}: about {duration(estimate.wall_time())}"
    if totals.gpu_seconds:
        numbers = (1, 2, 4, 8, 16, 32)
        yield ""
        yield f"With at least two cores to a GPU, and no fewer than {cores}:"
        yield ""
        several = (duration(estimate.wall_time(many, max(choice.cores, 2 * many))) for many in numbers)
        yield from columns([["GPUs", *numbers], ["wall time", *several]])
    yield ""
    chain = estimate.critical_path()
    yield f"Critical path, which no number of machines shortens: {duration(sum(map(estimate.seconds, chain)))}"
    yield ""
    rows = [[duration(estimate.seconds(name)), estimate.jobs[name].rule, about(estimate.jobs[name])] for name in chain]
    for length, rule, what in rows:
        yield f"{length:>10}  {rule:20}  {what}".rstrip()
    yield ""
    yield from textwrap.wrap(
        "The wall time is simulated: whenever something is free, the job with the longest chain behind it starts. "
        "Queues of a cluster are not in it, and early stopping is not foreseen.",
        98,
    )
    yield ""
    yield from textwrap.wrap(" ".join(doubts(estimate)), 98)


def gpu_time(seconds: float) -> str:
    """90 GPU-minutes, 27.2 GPU-hours."""
    return f"{seconds / 60:,.0f} GPU-minutes" if seconds < 6000 else f"{seconds / 3600:,.1f} GPU-hours"


def doubts(estimate: Estimate) -> Iterator[str]:
    """How far to trust the times."""
    if {"benchmark", "rehearsal"}.issuperset(estimate.by_basis()):
        yield "Expect the times within a third of these: jobs of this size were measured."
        return
    yield "Expect between half and twice these times."
    if estimate.choice.hardware == "cpu":
        yield "They are those of x86 cores of a server; slow aarch64 cores (Neoverse-N1) took 2.3 times as long."
        return
    yield (
        "On a GPU each job is taken to start in the seconds that resources/costs.tsv says, whatever the model; models, "
        "batches and sets of other sizes than were measured are scaled from those that were."
    )
    if estimate.choice.share > 1:
        yield (
            f"Jobs that share a GPU start, read and score side by side; their training is taken to be "
            f"{SHARING:.2f} times as fast as one after another; small models gain more."
        )


def rehearsal_table(outlook: Outlook) -> list[list[str]]:
    """What a rehearsal tells by rule, as cells."""
    heads = ["rule", "jobs", "rehearsed", "measured", "took", "real run", "planned", "ratio", "memory", "GPU memory"]
    rows = [[line.rule, f"{line.jobs:,}", f"{line.rehearsed:,}", f"{line.measured:,}",
             *map(spent, (line.took, line.foreseen, line.planned)),
             f"{line.foreseen / max(line.planned, 1e-9):.2f}", readable(line.host * 1e6),
             "" if line.gpu is None else readable(line.gpu * 1e6)] for line in outlook.lines]  # fmt: skip
    return [heads, *rows]


def rehearsal_words(outlook: Outlook) -> Iterator[str]:
    """What a rehearsal tells in all."""
    machine = f"one {NAMES[outlook.hardware]}"
    hours = [gpu_time(seconds) if outlook.hardware != "cpu" else duration(seconds) for seconds in outlook.seconds]
    yield f"The real run takes about {hours[0]} of {machine}, one job at a time; without the rehearsal: {hours[1]}."
    yield f"Its wall time is about {duration(outlook.wall[0])}; without the rehearsal: {duration(outlook.wall[1])}."
    if outlook.disk:
        grown = outlook.disk["most"] - outlook.disk["first"]
        yield f"The disk held {readable(grown)} more at its fullest than when the rehearsal began."
    yield "Early stopping is not foreseen, and rules that were not rehearsed are planned."


def licences(rows: Iterable[Dataset | Model]) -> Iterator[str]:
    """Files and bytes by licence; the licence last, as some are long."""
    for licence, files, size, notes in (("licence", "files", "size", ""), *by_licence(rows)):
        yield f"{files:>5}  {size:28}  {licence}  {notes}".rstrip()


def about(job: Job) -> str:
    """What a job is about, short."""
    return job.address if len(job.address) <= 64 else f"{job.address[:61]}..."
