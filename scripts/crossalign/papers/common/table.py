"""The model of a table: rows, columns and cells, each cell with ours, the printed value and the verdict on the two."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from crossalign.results.published import Printed, Published
from crossalign.results.values import Value, brief
from crossalign.results.verdict import LEFT_OUT, MEASURED, TESTED, Verdict
from crossalign.runtime.files import write_atomic


@dataclass(frozen=True)
class Shade:
    """A class of cells: its name in files, its meaning, its colour (hex, no `#`). Black text stands out on all."""

    name: str
    meaning: str
    colour: str


@dataclass(frozen=True)
class Shading:
    """At least the reference, then ever larger losses; `limits` are the losses at which the next class begins."""

    limits: tuple[float, float]

    @property
    def shades(self) -> list[Shade]:
        small, large = (f"{limit:g}" for limit in self.limits)
        return [
            Shade("atleast", "at least REF", "D3E7F7"),
            Shade("small", f"less than {small} points below", "FFF8DA"),
            Shade("medium", f"{small} to {large} points below", "FCD9A6"),
            Shade("large", f"{large} points or more below", "F2A07C"),
        ]

    def classify(self, difference: float | None) -> str:
        """The class of a difference to the reference; empty when there is none."""
        if difference is None:
            return ""
        small, large = self.limits
        if difference >= 0:
            return "atleast"
        return "small" if difference > -small else "medium" if difference > -large else "large"


# `align-predict`, captions of tables 1, 2, 6, 7, 8 and of table 5.
PAIRS = Shading((2.0, 5.0))
SETS = Shading((5.0, 10.0))


@dataclass(frozen=True)
class Cell:
    """One number or fact.

    `keys` name it as the paper's CSV does. A fact has `text`; a number has `value`. `signed` numbers are differences.
    """

    keys: dict[str, str] = field(default_factory=dict)
    value: Value = field(default_factory=Value)
    text: str = ""
    digits: int = 2
    signed: bool = False
    mark: str = ""
    # Whether a test was made of which the mark tells the outcome.
    tested: bool = False
    shade: str = ""
    # The class of the printed value, so that the two can be compared at a glance.
    printed_shade: str = ""
    printed: Printed | None = None
    verdict: Verdict = field(default_factory=Verdict)
    fact: bool = False

    @property
    def there(self) -> bool:
        """Whether there is anything of ours to show."""
        return bool(self.text) or self.value.mean is not None

    @property
    def shown(self) -> str:
        """Ours as people read it."""
        if self.text:
            return self.text
        if self.value.mean is None:
            return "–" if self.fact else "not run"
        return number(self.value.mean, self.digits, self.signed)

    @property
    def printed_shown(self) -> str:
        """The paper's value as people read it."""
        if self.printed is None or not self.printed.text:
            return ""
        value = self.printed.number
        if value is None or "e" in self.printed.text:
            return self.printed.text
        digits = len(self.printed.text.partition(".")[2])
        return number(value, digits, self.signed)

    @property
    def difference(self) -> float | None:
        """Ours minus printed."""
        if self.printed is None or self.printed.number is None or self.value.mean is None:
            return None
        return self.value.mean - self.printed.number


@dataclass(frozen=True)
class Column:
    """One column; neighbours with the same `group` share a head above them."""

    label: str
    group: str = ""


@dataclass(frozen=True)
class Row:
    """One row; neighbours with the same `group` stand together under its name."""

    label: str
    cells: list[Cell | None]
    group: str = ""
    summary: bool = False


@dataclass(frozen=True)
class Table:
    """A whole table. `stub` heads the column of row labels; item, title and printed numbers are filled in when made."""

    item: str = ""
    title: str = ""
    stub: str = ""
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shading: Shading | None = None
    # False: the counts of runs differ by nature and are told in the notes.
    uniform: bool = True
    published: Published = field(default_factory=lambda: Published([]))

    def cells(self) -> Iterator[Cell]:
        """Every cell, row by row."""
        for row in self.rows:
            yield from (cell for cell in row.cells if cell is not None)

    @property
    def missing(self) -> list[str]:
        """The runs that are not there, those that differ in the seed alone on one line."""
        return brief(dict.fromkeys(address for cell in self.cells() for address in cell.value.missing))

    @cached_property
    def usual(self) -> int:
        """How many runs stand behind a complete cell."""
        return max((cell.value.wanted for cell in self.cells()), default=0)

    def count_shown(self, cell: Cell) -> str:
        """The number of runs, where it is not the usual one: `3`, or `3/5` when some are missing."""
        value = cell.value
        if not value.n or (value.n == value.wanted and (value.n == self.usual or not self.uniform)):
            return ""
        return str(value.n) if value.n == value.wanted else f"{value.n}/{value.wanted}"

    @property
    def all_notes(self) -> list[str]:
        """The notes, and what all tables say of their numbers."""
        notes = list(self.notes)
        if not self.uniform:
            return notes
        if self.usual > 1:
            notes.insert(0, f"Mean ± standard deviation over {self.usual} runs; other counts stand with the number.")
        elif self.usual == 1:
            notes.insert(0, "One run per number.")
        return notes

    def tidy(self) -> Iterator[dict[str, str]]:
        """One record per cell, then one per printed number that no cell of ours stands for."""
        for cell in self.cells():
            yield cell.keys | measured(cell)
        verdict = Verdict(LEFT_OUT, "not part of this configuration")
        for keys, printed in self.published.rest():
            yield keys | measured(Cell(printed=printed, verdict=verdict))

    @property
    def key_columns(self) -> list[str]:
        """The tidy columns that name a cell: the paper's, then ours."""
        named = [*(cell.keys for cell in self.cells()), *(keys for keys, _ in self.published.rest())]
        return list(dict.fromkeys([*self.published.keys, *(name for keys in named for name in keys)]))


def measured(cell: Cell) -> dict[str, str]:
    """The tidy columns of one cell."""
    value, printed = cell.value, cell.printed or Printed("")
    return {
        "text": cell.text,
        "mean": plain(value.mean),
        "std": plain(value.std),
        "low": plain(value.low),
        "high": plain(value.high),
        "n": str(value.n) if value.wanted else "",
        "wanted": str(value.wanted) if value.wanted else "",
        "mark": cell.mark,
        "tested": TESTED if cell.tested else "",
        "class": cell.shade,
        "printed": printed.text,
        "printed_recomputed": plain(printed.recomputed),
        "printed_flag": printed.flag,
        "printed_mark": printed.mark,
        "difference": plain(cell.difference),
        "verdict": cell.verdict.label,
        "reason": cell.verdict.reason,
        "missing": " ".join(brief(value.missing)),
    }


def plain(value: float | None) -> str:
    """A number for a file: at most six digits behind the point, no needless zeros."""
    if value is None:
        return ""
    text = f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) >= 1e-4 or value == 0 else f"{value:.6g}"
    return "0" if text == "-0" else text


def number(value: float, digits: int, signed: bool) -> str:
    """A number for people: a true minus sign, and a plus sign for gains."""
    text = f"{abs(value):.{digits}f}" if digits else f"{abs(value):,.0f}"
    if not text.strip("0.,"):
        return text
    return f"−{text}" if value < 0 else f"+{text}" if signed else text


def write_csv(table: Table, path: str | Path) -> None:
    """Write the cells as tidy CSV, the paper's key columns first."""
    tested = any(cell.tested for cell in table.cells())
    names = [name for name in table.key_columns if name not in MEASURED]
    names += [name for name in MEASURED if tested or name != "tested"]
    with write_atomic(path) as stream:
        writer = csv.DictWriter(stream, names, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table.tidy())
