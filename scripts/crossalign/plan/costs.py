"""What a piece of work costs in seconds: from benchmark files of earlier jobs, else from the table of known times.

Every row of the table says where its numbers come from: measured by us, printed in a paper, or estimated.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from crossalign.plan.jobs import Job
from crossalign.plan.work import Work
from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import WAITED

HARDWARE = ("h200", "v100", "t4", "cpu")
# Rows of this name hold for what runs on the processor beside any GPU.
HOST = "host"
BASES = ("measured", "paper", "estimate")
# Neurons of the model whose times on GPUs are known: mBERT and XLM-R base.
BASE = 768
# How much sooner trainings are done that share a card: 430 s one after another, 361 s three at a time.
SHARING = 430 / 361
_WAITED = re.compile(WAITED.replace("%.1f", "([0-9.]+)"))
COLUMNS = ("hardware", "rule", "task", "seconds", "host", "milliseconds", "unit", "batch", "layers", "neurons")
COLUMNS += ("pieces", "basis", "source")


@dataclass(frozen=True)
class Price:
    """Seconds of a job, and what they rest on: benchmark, rehearsal, measured, paper or estimate.

    In `idle` of them it leaves the card to others: while it starts, reads, and works on the processor.
    """

    seconds: float
    basis: str
    idle: float = 0.0

    @property
    def part_idle(self) -> float:
        """The part of its time in which it leaves the card to others."""
        return self.idle / max(self.seconds, 1e-9)

    def shared(self, jobs: int) -> float:
        """Seconds of the card that the job costs where so many share it."""
        return self.idle / jobs + (self.seconds - self.idle) / min(jobs, SHARING)


@dataclass(frozen=True)
class Row:
    """Seconds to start; per unit of work milliseconds of the processor and of the card; batch and model of the latter.

    `pieces` are the scores over the vocabulary that a token costs in language modelling.
    """

    seconds: float
    host: float
    milliseconds: float
    batch: int
    layers: int
    neurons: int
    pieces: int
    basis: str

    def price(self, work: Work, gpu: bool) -> Price:
        """The price of a piece of work: time grows with the model and with the batch, on a GPU less than these do."""
        factor = entries = 1.0
        if self.neurons and work.shape:
            pieces = work.pieces if self.pieces else 0
            factor *= token_cost(*work.shape, pieces, gpu) / token_cost(self.layers, self.neurons, self.pieces, gpu)
        if self.batch and work.batch:
            entries = work.batch / self.batch
            # Half of a GPU's step is there for any batch.
            factor *= (1 + entries) / 2 if gpu else entries
        idle = self.seconds + self.host / 1000 * work.units * entries
        return Price(idle + self.milliseconds / 1000 * work.units * factor, self.basis, idle)


def token_cost(layers: int, neurons: int, pieces: int, gpu: bool) -> float:
    """Products for a token, the inner part of a layer being four times as wide as the outer, and scores of pieces.

    A GPU's time falls less than these below 768 neurons, where it does more else than products: with a twelfth of the
    neurons a token took a quarter of the time (docs/notes/performance.md, Planning).
    """
    square = neurons**2
    if gpu:
        square = max(square, BASE * (BASE + 3 * neurons) / 4)
    return 12 * layers * square + neurons * pieces


Table = Mapping[tuple[str, str, str], Row]


def read_costs(path: Path) -> Table:
    """The table of known times by hardware, rule and task."""
    rows: dict[tuple[str, str, str], Row] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise UserError(f"{path}, line 1: the columns should be {', '.join(COLUMNS)}")
        for line in reader:
            key = (line["hardware"], line["rule"], line["task"])
            try:
                rows[key] = _row(line, key in rows)
            except (TypeError, ValueError) as error:
                raise UserError(f"{path}, line {reader.line_num}: {error}") from error
    return rows


def _row(line: dict[str, str], known: bool) -> Row:
    if known:
        raise ValueError("hardware, rule and task stand in an earlier line already")
    if line["hardware"] not in (*HARDWARE, HOST):
        raise ValueError(f"hardware '{line['hardware']}' is not one of {', '.join((*HARDWARE, HOST))}")
    if line["basis"] not in BASES:
        raise ValueError(f"basis '{line['basis']}' is not one of {', '.join(BASES)}")
    if not line["source"]:
        raise ValueError("source is empty: say where the numbers come from")
    counts = (int(line[name] or 0) for name in ("batch", "layers", "neurons", "pieces"))
    return Row(float(line["seconds"]), float(line["host"] or 0), float(line["milliseconds"]), *counts, line["basis"])


class Prices:
    """Prices of jobs on one kind of hardware. `measured` are those of earlier jobs of the same plan, the best first."""

    def __init__(self, table: Table, hardware: str, works: Mapping[str, Work], *measured: Mapping[str, Price]) -> None:
        self._table, self._hardware, self._works = table, hardware, works
        self._groups: dict[tuple[str, str], list[Price]] = {}
        # A job unlike all that were measured: the table, corrected by what the table got wrong for others of its rule.
        self._others: dict[str, list[tuple[Price, Price]]] = {}
        for found in measured:
            groups: dict[tuple[str, str], list[Price]] = {}
            others: dict[str, list[tuple[Price, Price]]] = {}
            for name, price in found.items():
                work = works[name]
                groups.setdefault((work.rule, work.group), []).append(price)
                others.setdefault(work.rule, []).append((self._known(work), price))
            self._groups = groups | self._groups
            self._others = others | self._others

    def of(self, name: str) -> Price:
        """The price of a job."""
        work = self._works[name]
        if prices := self._groups.get((work.rule, work.group)):
            return _typical(prices, median(price.seconds for price in prices))
        known = self._known(work)
        if others := self._others.get(work.rule):
            seconds = known.seconds * median(price.seconds / max(listed.seconds, 1e-3) for listed, price in others)
            # Small models leave more of their time to others than large ones.
            part = known.part_idle * median(price.part_idle / max(listed.part_idle, 1e-3) for listed, price in others)
            return Price(seconds, others[0][1].basis, seconds * min(part, 1.0))
        return known

    def every_job(self) -> float:
        """What Snakemake itself takes for each job."""
        return self._table[HOST, "every_job", ""].seconds

    def _known(self, work: Work) -> Price:
        price = self._listed(work)
        if not work.tests:
            return price
        tests = Work("evaluate", work.task.removesuffix("-continual"), work.tests, shape=work.shape)
        tested = self._listed(tests, started=True)
        return Price(price.seconds + tested.seconds, price.basis, price.idle + tested.idle)

    def _listed(self, work: Work, started: bool = False) -> Price:
        """The price by the table, without the start if the work is done by a job that goes on with it."""
        for hardware in (self._hardware, HOST):
            row = self._table.get((hardware, work.rule, work.task))
            if row:
                row = replace(row, seconds=0.0) if started else row
                return row.price(work, gpu=hardware not in ("cpu", HOST))
        task = f" for {work.task}" if work.task else ""
        raise UserError(f"resources/costs.tsv has no row for the rule {work.rule}{task} on {self._hardware}")


def _typical(prices: Sequence[Price], seconds: float) -> Price:
    """A price of so many seconds, of which as large a part leaves the card to others as of these prices."""
    idle = sum(price.idle for price in prices) / max(sum(price.seconds for price in prices), 1e-9)
    return Price(seconds, prices[0].basis, idle * seconds)


def read_benchmarks(folder: Path, jobs: Iterable[Job], column: str = "s") -> dict[str, float]:
    """What the benchmark files of jobs say in a column, by the job's name."""
    found = {job.name: read_benchmark(folder, job.benchmark, column) for job in jobs if job.benchmark}
    return {name: value for name, value in found.items() if value is not None}


def read_benchmark(folder: Path, name: str, column: str = "s") -> float | None:
    """The seconds that a job took; an empty or broken file says nothing.

    Seconds in which the job waited for a GPU are not among them: its log, beside the benchmarks, has their number.
    Snakemake's other columns: `max_rss` are MB of memory at most.
    """
    try:
        with (folder / name).open(encoding="utf-8", newline="") as stream:
            value = float(list(csv.DictReader(stream, delimiter="\t"))[-1][column])
    except (OSError, LookupError, TypeError, ValueError):
        return None
    if column != "s":
        return value
    return max(0.0, value - _waited((folder.parent / "logs" / name).with_suffix(".log")))


def _waited(log: Path) -> float:
    try:
        return sum(map(float, _WAITED.findall(log.read_text(encoding="utf-8", errors="replace"))))
    except OSError:
        return 0.0


def read_ends(folder: Path, jobs: Iterable[Job]) -> dict[str, float]:
    """When jobs with benchmark files ended."""
    files = {job.name: folder / job.benchmark for job in jobs if job.benchmark}
    return {name: file.stat().st_mtime for name, file in files.items() if file.is_file()}
