"""Collect all that the page shows: all items of its papers with verdicts, findings, curves and provenance."""

import base64
import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from jinja2 import TemplateError

from crossalign.catalog.addresses import TASKS, Tuned
from crossalign.catalog.checksums import known_checksums
from crossalign.catalog.papers import papers
from crossalign.catalog.remake import command_of
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sheets import COVERED
from crossalign.catalog.stand_in import base_name
from crossalign.catalog.trained_models import stand_ins
from crossalign.papers.all_items import ITEMS, catalog_of
from crossalign.papers.common.table_html import render
from crossalign.plan.measured import Measured, measured
from crossalign.plan.outlook import Outlook, outlook
from crossalign.report.coverage import Coverage, read_coverage
from crossalign.report.curves import gather_curves
from crossalign.report.findings import Told, tell
from crossalign.report.machine import commit, machine, period
from crossalign.report.provenance import Provenance, Sources
from crossalign.results.published import ROOT, languages, published
from crossalign.results.verdict import LABELS
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_csv, read_json

# The first of each is what the page shows.
FORMATS = {"table": ("json", "html", "csv", "tex"), "figure": ("svg", "pdf", "png", "csv")}
BOX = re.compile(r'<svg[^>]*\sviewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"')
# What the drawing program adds for others than the reader.
NEEDLESS = re.compile(r"<\?xml.*?\?>|<!DOCTYPE[^>]*>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)


class Picture(NamedTuple):
    """An SVG as a data address, with its size in points."""

    address: str
    width: float
    height: float


@dataclass(frozen=True)
class Entry:
    """One table or figure. Without `table` or `picture` it was not made yet; `left_out` says why it never will be.

    `printed`: the paper has numbers to stand beside ours. `lacks`: it was made, but not from all its runs. `coverage`
    stands below the item of unseen languages.
    """

    name: str
    paper: str
    kind: str
    number: str
    title: str
    command: str
    tasks: list[str]
    languages: list[str]
    provenance: Provenance
    files: dict[str, str] = field(default_factory=dict)
    table: str = ""
    picture: Picture | None = None
    readings: list[dict] = field(default_factory=list)
    printed: bool = False
    verdicts: dict[str, int] = field(default_factory=dict)
    findings: list[Told] = field(default_factory=list)
    left_out: str = ""
    lacks: bool = False
    coverage: Coverage | None = None

    @property
    def label(self) -> str:
        """`Table 1`, `Figure 3`."""
        return f"{self.kind.capitalize()} {self.number}"

    @property
    def made(self) -> bool:
        return bool(self.table) or self.picture is not None

    @property
    def state(self) -> str:
        """made, in part, left out or not made yet."""
        if self.made:
            return "in part" if self.lacks else "made"
        return "left out" if self.left_out else "not made yet"

    @property
    def anchor(self) -> str:
        return self.name.replace("/", "-")

    @property
    def runs(self) -> tuple[int, int]:
        """How many of the training runs behind the item are there, and how many there are in all."""
        wanted = self.provenance.runs
        return sum(address in self.provenance.made for address in wanted), len(wanted)


@dataclass(frozen=True)
class Report:
    """A whole run."""

    config: dict
    entries: list[Entry]
    findings: list[Told]
    curves: dict
    checksums: dict[str, str]
    commit: str
    machine: str
    period: tuple[str, str] | None
    measured: Measured
    sheets: dict[str, str]
    overview: str
    outlook: Outlook | None = None

    @property
    def made(self) -> dict[str, dict]:
        """What is known of the training of each run, by its address."""
        return {address: facts for entry in self.entries for address, facts in entry.provenance.made.items()}

    @property
    def trained_models(self) -> list[str]:
        """The models behind the run's tables and figures that it pretrained itself."""
        return sorted({base_name(run) for run in catalog_of(self.config).runs()} & stand_ins(self.config))

    @property
    def states(self) -> dict[str, int]:
        """How many tables and figures are made, made in part, not made yet, left out."""
        counts = Counter(entry.state for entry in self.entries)
        return {state: counts[state] for state in ("made", "in part", "not made yet", "left out")}

    @property
    def verdicts(self) -> dict[str, int]:
        """How many printed numbers have each verdict."""
        return sum((Counter(entry.verdicts) for entry in self.entries), Counter())

    @property
    def by_paper(self) -> dict[str, list[Entry]]:
        """The items of each paper, in the order of the catalog."""
        return {paper: [entry for entry in self.entries if entry.paper == paper] for paper in papers()}


def item_tasks(catalog: Catalog, item: str) -> list[str]:
    """The tasks behind an item, in their usual order."""
    tasks = {run.task for run in catalog.needs(item).runs if isinstance(run, Tuned)}
    return [task for task in TASKS if task in tasks]


def item_languages(catalog: Catalog, item: str) -> list[str]:
    """The codes of the languages that an item shows; where nothing names them, of all that its models are tested in."""
    known = languages()
    codes = {row["name"]: code for code, row in known.items()}
    shown = {language for data in catalog.needs(item).sets for language in data.languages}
    for row in published(item).rows:
        named = (row.get(column, "") for column in ("language", "source", "target", "code_in_ud_or_wikiann"))
        shown.update(codes.get(name, name) for name in named)
    shown &= set(known)
    if not shown:
        shown = {language for data in catalog.sets([item]) for language in data.languages}
    return [code for code in known if code in shown]


def read_verdicts(results: Path) -> dict[str, dict[str, int]]:
    """item -> verdict -> how many numbers; empty where no verdicts were gathered."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in read_csv(results / "verdicts.csv", ("item", "verdict")) or []:
        counts[row["item"]][row["verdict"]] += 1
    return {
        item: {label: verdicts[label] for label in dict.fromkeys([*LABELS, *sorted(verdicts)]) if label in verdicts}
        for item, verdicts in counts.items()
    }


def read_table(path: Path) -> tuple[str, bool]:
    """The table of a JSON file as markup, and whether any printed number is in it."""
    table = read_json(path)
    try:
        shown = render("table.html", table=table)
        cells = [cell for body in table["bodies"] for row in body["rows"] for cell in row["cells"] if cell]
        return shown, any(cell["printed"] for cell in cells)
    except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise UserError(f"{path}: no table that can be shown ({error}); delete it and make the item again") from None


def read_picture(path: Path) -> Picture:
    """The picture of an SVG file. It enters the page as an image: browsers run no script of an image."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no picture that can be read ({error}); make the item again") from None
    box = BOX.search(content)
    if box is None or not content.rstrip().endswith("</svg>"):
        raise UserError(f"{path}: not a whole SVG picture with a viewBox; delete it and make the item again")
    slim = re.sub(r"\s+", " ", NEEDLESS.sub("", content)).strip()
    data = base64.b64encode(slim.encode("utf-8")).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{data}", float(box["width"]), float(box["height"]))


def gather_readings(path: Path) -> list[dict]:
    """The points of a figure beside which a value is printed, by panel and series; the page draws both together."""
    panels: dict[str, dict[str, list]] = {}
    for row in read_csv(path, ("panel", "series", "x", "y", "printed", "verdict")) or []:
        if row["printed"]:
            point = [row["x"], float(row["y"]) if row["y"] else None, float(row["printed"]), row["verdict"]]
            panels.setdefault(row["panel"], {}).setdefault(row["series"], []).append(point)
    return [
        {"title": title, "series": [{"label": label, "points": points} for label, points in series.items()]}
        for title, series in panels.items()
    ]


def link(path: Path, out: Path) -> str:
    """The address of a file for a page at `out`. A leading dot keeps a colon in a name from being read as a scheme."""
    relative = os.path.relpath(path, out.parent)
    return relative if relative.startswith(".") else f"./{relative}"


def content_of(kind: str, paths: dict[str, Path], out: Path) -> dict:
    """What the page shows of an item that was made, and the links to its files."""
    files = {form: link(path, out) for form, path in paths.items()}
    lacks = any(row["missing"] for row in read_csv(paths["csv"], ("missing",)) or []) if "csv" in paths else False
    if kind == "table":
        table, printed = read_table(paths["json"])
        return {"files": files, "lacks": lacks, "table": table, "printed": printed}
    readings = gather_readings(paths["csv"]) if "csv" in paths else []
    picture = read_picture(paths["svg"])
    return {"files": files, "lacks": lacks, "picture": picture, "readings": readings, "printed": bool(readings)}


def gather(config: dict, results: Path, out: Path) -> Report:
    """All that is known of the run in `results`, for a page at `out`."""
    # Every item is shown, also those that this config leaves out.
    shown = [*papers()]
    catalog = catalog_of(config | {"papers": shown, "items": "all", "skip": {}})
    sources = Sources(catalog, results)
    told = tell(results, shown)
    counts = read_verdicts(results)
    drawn = config["align-predict"]["similarity_languages"]
    table = results / "coverage.csv"
    covered = read_coverage(table, link(table, out), config)
    entries, written = [], []
    for name, item in ITEMS.items():
        paper, _, identifier = name.partition("/")
        if paper not in shown:
            continue
        kind = "table" if identifier.startswith("table") else "figure"
        stem = results / f"{kind}s" / name
        paths = {form: path for form in FORMATS[kind] if (path := stem.with_suffix(f".{form}")).is_file()}
        made = FORMATS[kind][0] in paths
        written += paths.values()
        entries.append(
            Entry(
                name=name,
                paper=paper,
                kind=kind,
                number=identifier.removeprefix(kind),
                title=item.title,
                command=command_of(name, config, made),
                tasks=item_tasks(catalog, name),
                languages=item_languages(catalog, name),
                provenance=sources.of(name),
                verdicts=counts.get(name, {}),
                findings=[one for one in told if name in one.items],
                left_out=(config.get("skip") or {}).get(name) or item.lacks(config),
                coverage=covered if name == COVERED else None,
                **(content_of(kind, paths, out) if made else {}),
            )
        )
    return Report(
        config=config,
        entries=entries,
        findings=told,
        curves=gather_curves(results, catalog.runs(), drawn),
        checksums=known_checksums(config, results.resolve().parent.parent),
        commit=commit(ROOT),
        machine=machine(),
        period=period(written),
        measured=(taken := measured(results)),
        sheets={file.stem: link(file, out) for file in sorted((results / "plan").glob("*.tsv"))},
        overview=link(across, out) if (across := results.parent / "overview.html").is_file() else "",
        outlook=outlook(config, results, taken.devices) if config.get("rehearsal") else None,
    )
