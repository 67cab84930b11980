"""How well a vocabulary covers the languages that its model has not seen: a table beside one of `talk`."""

from pathlib import Path
from typing import NamedTuple

from crossalign.catalog.targets import bases
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.papers.common.table_html import layout, render
from crossalign.results.names import language, model
from crossalign.results.values import Value
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_csv

# Column of coverage.csv -> its head, and the digits shown.
NUMBERS = {
    "unknown": ("unknown, %", 1),
    "pieces": ("pieces a word", 2),
    "words": ("words", 0),
    "letters": ("letters", 0),
    "lacking": ("lacking", 0),
}
# More unknown letters than these tell nobody anything.
NAMED = 12
NOTES = (
    "Unknown: words of the raw text with an unknown piece, which are lost to the model in whole or in part. Words of "
    "many pieces are spelt rather than known.",
    "Letters: those that occur five times or more; lacking: those of them that the vocabulary does not have.",
)


class Coverage(NamedTuple):
    """A heading, the table as markup, and the address of the file that it shows."""

    title: str
    table: str
    file: str


def read_coverage(path: Path, link: str, config: dict) -> Coverage | None:
    """The coverage of a run, with the link to its file; None where it is not there, or not yet."""
    found = read_csv(path, ("language", *NUMBERS, "which"))
    if not found:
        return None
    rows = [
        (language(row["language"]), {name: _number(row[name], path, line) for name in NUMBERS}, row["which"].split())
        for line, row in enumerate(found, start=2)
    ]
    rows.sort(key=lambda row: (-row[1]["unknown"], -row[1]["pieces"], row[0]))
    title = f"How well the vocabulary of {model(bases(config, 'talk')[0])} covers these languages"
    table = Table(
        title=title,
        stub="language",
        columns=[*(Column(head) for head, _ in NUMBERS.values()), Column("which")],
        rows=[Row(name, [*_cells(numbers), Cell(text=_named(letters), fact=True)]) for name, numbers, letters in rows],
        notes=list(NOTES),
    )
    return Coverage(title, render("table.html", table=layout(table)), link)


def _cells(numbers: dict[str, float]) -> list[Cell]:
    """Facts, as no paper has numbers to hold against these."""
    return [Cell(value=Value(numbers[name]), digits=digits, fact=True) for name, (_, digits) in NUMBERS.items()]


def _named(letters: list[str]) -> str:
    further = len(letters) - NAMED
    return " ".join(letters[:NAMED] or ["none"]) + (f" and {further} more" if further > 0 else "")


def _number(text: str, path: Path, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{path}, line {line}: '{text}' is no number; delete the file and make it again") from None
