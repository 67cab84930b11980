"""The overview: the findings of the papers by runs, one self-contained page for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.papers import papers
from crossalign.catalog.stand_in import artificial
from crossalign.catalog.targets import bases
from crossalign.catalog.trained_models import stand_ins
from crossalign.papers.common.table_html import render
from crossalign.report.findings import Line, Told, tell
from crossalign.report.gather import link
from crossalign.report.page import duration, sealed
from crossalign.results import names
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_csv, read_json

MEANINGS = {
    HOLDS: "whole intervals lie where the paper says",
    FAILS: "one lies wholly elsewhere",
    UNSURE: "an interval reaches across the bound",
    UNLEARNT: "the models guess at the task",
    NOT_RUN: "the run lacks what it needs",
}


@dataclass(frozen=True)
class Column:
    """A run: its name, its models in words, the address of its page, and its findings by paper and id."""

    run: str
    about: str
    page: str
    found: dict[tuple[str, str], Told]
    apart: bool


@dataclass(frozen=True)
class Row:
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
        config = read_json(results / "config.json") or {}
        if results.name in found or config.get("rehearsal"):
            continue
        told = {(one.paper, one.id): one for one in tell(results, papers())}
        page = results / "report" / "index.html"
        address = link(page, out) if page.is_file() else ""
        apart = bool(config.get("world"))
        found[results.name] = Column(results.name, about(config, results), address, told, apart)
    return sorted(found.values(), key=lambda column: (column.apart, column.run))


def about(config: dict, results: Path) -> str:
    """Which model a run studies and, where it made it, how long that took; of other worlds, which."""
    if not config or artificial(config):
        return artificial(config).words if config else ""
    name = bases(config)[0]
    if name not in stand_ins(config):
        return names.model(name)
    rows = read_csv(results / "models.csv", ("model", "seconds", "device")) or []
    made = next((row for row in rows if row["model"] == name), None) or read_json(
        results / "models" / name / "training.json"
    )
    took = f", {duration(float(made['seconds']))} on {made['device']}" if made else ""
    return f"in {names.model(name)}’s place a model pretrained here{took}"


def rows(columns: list[Column]) -> dict[str, list[Row]]:
    """Every finding of any run, by paper."""
    known = {key: one for column in reversed(columns) for key, one in column.found.items()}
    return {
        paper: made
        for paper in papers()
        if (
            made := [
                row(known[key], [(column, column.found.get(key)) for column in columns])
                for key in known
                if key[0] == paper
            ]
        )
    }


def row(one: Told, cells: list[tuple[Column, Told | None]]) -> Row:
    """One finding; the printed number is that beside the most groups, as a run may have fewer than the paper."""
    lines: list[tuple[int, Line]] = [(len(told.groups), told.lines[0]) for _, told in cells if told and told.lines]
    best = max(lines, key=lambda each: (bool(each[1].printed), each[0]), default=None)
    if best is None:
        return Row(one.says, "", "", cells)
    return Row(one.says, f"{best[1].words}, expected {best[1].bound}", best[1].printed, cells)


def overview(folders: list[Path], out: Path) -> str:
    """The page at `out`."""
    columns = read_columns(folders, out)
    if not columns:
        looked = " and ".join(map(str, folders))
        raise UserError(f"no findings.json in the runs of {looked}; make a run first, such as make demo")
    context = {"columns": columns, "rows": rows(columns), "papers": papers(), "meanings": MEANINGS}
    return render("overview.html", **context, **sealed(("base.css", "layout.css", "findings.css", "overview.css")))
