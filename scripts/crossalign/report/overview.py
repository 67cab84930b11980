"""The overview: the findings of the papers by runs, one self-contained page for all of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crossalign.catalog.papers import papers
from crossalign.catalog.stand_in import artificial
from crossalign.catalog.targets import bases
from crossalign.catalog.trained_models import stand_ins
from crossalign.papers.common.table_html import render
from crossalign.report.findings import Told, tell
from crossalign.report.gather import link
from crossalign.report.page import duration, sealed
from crossalign.results import names
from crossalign.runtime.files import read_csv, read_json


class Column(NamedTuple):
    """A run: its name, its models in words, the address of its page, and its findings by paper and id."""

    run: str
    about: str
    page: str
    found: dict[tuple[str, str], Told]
    apart: bool


class Row(NamedTuple):
    """A finding in all runs; `unit` says what the numbers are, and what of it the paper expects."""

    says: str
    unit: str
    printed: str
    cells: list[tuple[Column, Told | None]]


def read_columns(folders: Iterable[Path], out: Path) -> list[Column]:
    """The runs in some folders of runs that have findings, each from the first folder; artificial languages last."""
    found: dict[str, Column] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*/findings.json"))):
        results = file.parent
        record = read_json(results / "report" / "provenance.json") or {}
        config = read_json(results / "config.json") or record.get("config", {})
        if results.name in found or config.get("rehearsal"):
            continue
        told = {(one.paper, one.id): one for one in tell(results, papers())}
        page = results / "report" / "index.html"
        address = link(page, out) if page.is_file() else ""
        apart = bool(config.get("world"))
        found[results.name] = Column(results.name, about(config, results), address, told, apart)
    return sorted(found.values(), key=lambda column: (column.apart, column.run))


def about(config: dict, results: Path) -> str:
    """Which model a run has in mBERT's place and, where it made it, how long that took; of other worlds, which."""
    if not config or artificial(config):
        return artificial(config).words if config else ""
    name = bases(config)[0]
    if name not in stand_ins(config):
        return names.model(name)
    rows = read_csv(results / "models.csv", ("model", "seconds", "device")) or []
    rows += [{"model": name} | (read_json(results / "models" / name / "training.json") or {})]
    made = next(row for row in rows if row["model"] == name)
    took = f", made in {duration(float(made['seconds']))} on {made['device']}" if "device" in made else ""
    return f"{'a model' if name == 'mbert' else names.model(name)} in mBERT’s place{took}"


def rows(columns: list[Column]) -> dict[str, list[Row]]:
    """Every finding of any run, by paper."""
    found: dict[str, list[Row]] = {paper: [] for paper in papers()}
    most_first = sorted(columns, key=lambda column: -len(column.found))
    for paper, name in dict.fromkeys(key for column in most_first for key in column.found):
        found[paper].append(row([(column, column.found.get((paper, name))) for column in columns]))
    return {paper: made for paper, made in found.items() if made}


def row(cells: list[tuple[Column, Told | None]]) -> Row:
    """One finding; the printed number is that beside the most groups, as a run may have fewer than the paper."""
    there = [one for _, one in cells if one]
    best = max(there, key=lambda one: (bool(one.lines and one.lines[0].printed), len(one.groups)))
    line = best.lines[0] if best.lines else None
    return Row(best.says, f"{line.words}, expected {line.bound}" if line else "", line.printed if line else "", cells)


def overview(folders: list[Path], out: Path) -> str | None:
    """The page at `out`; None where no run has findings."""
    if not (columns := read_columns(folders, out)):
        return None
    context = {"columns": columns, "rows": rows(columns), "papers": papers()}
    return render("overview.html", **context, **sealed(("base.css", "layout.css", "findings.css", "overview.css")))
