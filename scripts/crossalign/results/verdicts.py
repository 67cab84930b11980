"""Gather the verdicts of all items from their tidy CSV files."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic
from crossalign.papers.common.figure import COLUMNS as FIGURE_COLUMNS
from crossalign.results.published import published
from crossalign.papers.common.table import MEASURED
from crossalign.results.verdict import NOT_RUN

COLUMNS = (
    *("paper", "item", "kind", "cell", "printed", "ours", "std", "n", "wanted"),
    *("difference", "verdict", "reason", "missing"),
)
# What of a figure's data says which point it is.
PLACE = ("panel", "series", "x")


def item_of(path: Path) -> str:
    """`align-predict/table1` of `…/tables/align-predict/table1.csv`."""
    return f"{path.parent.name}/{path.stem}"


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """One record for each cell of an item beside which a number is printed."""
    item = item_of(path)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: no CSV that can be read ({error}); make the item again") from None
    figure = path.stem.startswith("figure")
    for row in rows:
        if not row.get("verdict"):
            continue
        measured = FIGURE_COLUMNS if figure else MEASURED
        names = PLACE if figure else [name for name in row if name not in measured]
        yield {
            "paper": item.partition("/")[0],
            "item": item,
            "kind": "reading" if figure else kind_of(row),
            "cell": "; ".join(f"{name}={row[name]}" for name in names if row[name]),
            "ours": row.get("text") or row.get("mean") or row.get("y", ""),
            **{name: row.get(name) or "" for name in COLUMNS[4:] if name != "ours"},
        }


def kind_of(row: dict[str, str]) -> str:
    """Facts are named by a field or a parameter; all else are numbers."""
    return "fact" if {"field", "parameter", "raw_sentences"} & set(row) else "number"


def absent(items: Iterable[str]) -> Iterator[dict[str, str]]:
    """The printed numbers of items that were not made at all."""
    for item in items:
        table = published(item)
        for row in table.rows:
            yield {
                "paper": item.partition("/")[0],
                "item": item,
                "kind": kind_of(row),
                "cell": "; ".join(f"{name}={row[name]}" for name in table.keys if row[name]),
                "printed": row.get("value", ""),
                "verdict": NOT_RUN,
                "reason": "this item was not made",
            }


def write_verdicts(paths: Iterable[Path], items: Iterable[str], out: Path) -> Counter[str]:
    """Write the verdicts of `items`, whose CSV files are `paths`; returns how many there are of each."""
    paths = sorted(paths, key=item_of)
    found = {item_of(path) for path in paths}
    wanted = list(items)
    counts: Counter[str] = Counter()
    with write_atomic(out) as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for row in [
            *(row for path in paths if not wanted or item_of(path) in wanted for row in rows_of(path)),
            *absent(item for item in wanted if item not in found),
        ]:
            writer.writerow(row)
            counts[row["verdict"]] += 1
    return counts
