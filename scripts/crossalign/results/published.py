"""The printed numbers of the papers: resources/papers/<paper>/<id>.csv, matched by their key columns."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crossalign.runtime.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
PRINTED = ROOT / "resources" / "papers"
LANGUAGES = ROOT / "resources" / "languages.tsv"

# What is printed; every other column says where.
VALUE_COLUMNS = ("value", "flag", "significance", "note", "unit", "reading_error")

# Of the table that has a column per fact, talk/table3: those that are facts.
FACT_COLUMNS = ("script", "family", "raw_sentences")

# Flags of the CSV files that forbid a judgement; `corrected` and `restored` numbers are proven by another table.
DOUBTFUL = {"doubt": "read with doubt, see the notes on this paper", "unreadable": "not readable in print"}


@dataclass(frozen=True)
class Printed:
    """A printed value as text, so that its digits are kept.

    `doubt` says why it cannot be judged; `recomputed` is a second reading of the same number, from the rows that it
    sums up; `error` is the half-width of a value read off a curve.
    """

    text: str
    flag: str = ""
    mark: str = ""
    doubt: str = ""
    recomputed: float | None = None
    error: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, str], column: str = "value") -> "Printed":
        """The value in a row of a printed table."""
        flag, error = row.get("flag", ""), row.get("reading_error")
        doubt = DOUBTFUL.get(flag, "")
        return cls(row[column], flag, row.get("significance", ""), doubt, error=float(error) if error else None)

    @property
    def number(self) -> float | None:
        try:
            return float(self.text)
        except ValueError:
            return None

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit: what rounding can hide."""
        digits = self.text.partition("e")[0].partition(".")[2]
        return 0.5 * 10.0 ** -len(digits) if self.number is not None else 0.0


class Published:
    """The rows of one printed table. `find` remembers what was matched, so that the rest can be told as not run."""

    def __init__(self, rows: list[dict[str, str]], where: str = "") -> None:
        self.rows = rows
        self.where = where
        self._matched: set[int] = set()

    @property
    def keys(self) -> list[str]:
        """The columns that say which number it is."""
        names = list(self.rows[0]) if self.rows else []
        # A table of facts may have a column per fact; then the first column names the row.
        return [name for name in names if name not in VALUE_COLUMNS] if "value" in names else names[:1]

    def select(self, keys: Mapping[str, str]) -> list[dict[str, str]]:
        """The rows whose columns have these values."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in keys.items())]

    def find(self, keys: Mapping[str, str], column: str = "value") -> Printed | None:
        """The printed value under these keys, or None."""
        if not (rows := self.select(keys)):
            return None
        if len(rows) > 1:
            raise UserError(f"{self.where}: {len(rows)} rows match {dict(keys)}; one was expected")
        self._matched.add(id(rows[0]))
        return Printed.of(rows[0], column)

    def rest(self) -> Iterator[tuple[dict[str, str], Printed]]:
        """The printed values of the rows that nothing was matched with, each with the keys that name it."""
        for row in (row for row in self.rows if id(row) not in self._matched):
            keys = {name: row[name] for name in self.keys}
            if "value" in row:
                yield keys, Printed.of(row)
            else:
                yield from ((keys | {"field": field}, Printed.of(row, field)) for field in FACT_COLUMNS)


def _read(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream, delimiter=delimiter))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def published(item: str) -> Published:
    """The printed table of an item such as `align-predict/table1`; empty where the paper prints no numbers."""
    path = PRINTED / f"{item}.csv"
    return Published(_read(path) if path.is_file() else [], str(path))


def readings(item: str) -> Published:
    """Values read off the curves of a figure; empty where there are none."""
    paper, _, name = item.partition("/")
    table = published(f"{paper}/figure_readings")
    return Published([row for row in table.rows if row["figure"] == name], table.where)


@cache
def claims(paper: str) -> dict[str, dict[str, str]]:
    """What a paper says, verbatim, by id: its findings, and numbers such as the standard deviations of a caption."""
    return {row["id"]: row for row in _read(PRINTED / paper / "claims.csv")}


@cache
def languages() -> dict[str, dict[str, str]]:
    """The register of languages by code."""
    return {row["code"]: row for row in _read(LANGUAGES, "\t")}
