"""Collect all that the page shows: the 48 items, made or not, with verdicts, claims, curves and provenance."""

import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from crossalign.catalog.addresses import TASKS, Tuned
from crossalign.catalog.checksums import known_checksums
from crossalign.catalog.remake import command_of
from crossalign.catalog.runs import Catalog
from crossalign.catalog.stand_in import base_name
from crossalign.catalog.trained_models import own_models
from crossalign.papers.all_items import ITEMS, PAPERS
from crossalign.plan.measured import Measured, measured
from crossalign.report.claims import Claim, read_claims
from crossalign.report.curves import gather_curves
from crossalign.report.fragments import read_fragment
from crossalign.report.machine import commit, machine, period
from crossalign.report.pictures import Picture, read_picture
from crossalign.report.provenance import Provenance, Sources
from crossalign.report.readings import gather_readings
from crossalign.results.published import ROOT, languages, published
from crossalign.results.verdict import LABELS
from crossalign.runtime.files import read_csv

FORMATS = {"table": ("html", "csv", "tex"), "figure": ("svg", "pdf", "png", "csv")}


@dataclass(frozen=True)
class Entry:
    """One table or figure. Without `table` or `picture` it was not made yet; `left_out` says why it never will be.

    `lacks`: it was made, but not from all its runs.
    """

    name: str
    title: str
    command: str
    tasks: list[str]
    languages: list[str]
    provenance: Provenance
    files: dict[str, str] = field(default_factory=dict)
    table: str = ""
    picture: Picture | None = None
    readings: list[dict] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    left_out: str = ""
    lacks: bool = False

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]

    @property
    def kind(self) -> str:
        return "table" if "/table" in self.name else "figure"

    @property
    def number(self) -> str:
        return self.name.partition("/")[2].removeprefix(self.kind)

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


@dataclass(frozen=True)
class Report:
    """A whole run."""

    config: dict
    entries: list[Entry]
    claims: list[Claim]
    curves: dict
    checksums: dict[str, str]
    commit: str
    machine: str
    period: tuple[str, str] | None
    measured: Measured

    @property
    def own_models(self) -> list[str]:
        """The models of its own that stand behind the run's tables and figures."""
        own = own_models(self.config)
        return sorted({base_name(run) for run in Catalog(self.config).runs()} & own.keys())

    @property
    def states(self) -> dict[str, int]:
        """How many tables and figures are made, made in part, not made yet, left out."""
        counted = Counter(entry.state for entry in self.entries)
        return {state: counted[state] for state in ("made", "in part", "not made yet", "left out")}

    @property
    def verdicts(self) -> dict[str, int]:
        """How many printed numbers have each verdict."""
        counted = Counter[str]()
        for entry in self.entries:
            counted.update(entry.verdicts)
        return dict(counted)


def item_tasks(catalog: Catalog, item: str) -> list[str]:
    """The tasks behind an item, in their usual order."""
    found = {run.task for run in catalog.needs(item).runs if isinstance(run, Tuned)}
    return [task for task in TASKS if task in found]


def item_languages(catalog: Catalog, item: str) -> list[str]:
    """The codes of the languages that an item shows; where nothing names them, of all that its models are tested in."""
    known = languages()
    codes = {row["name"]: code for code, row in known.items()}
    found = {language for data in catalog.needs(item).sets for language in data.languages}
    for row in published(item).rows:
        named = (row.get(column, "") for column in ("language", "source", "target", "code_in_ud_or_wikiann"))
        found.update(codes.get(name, name) for name in named)
    found &= set(known)
    if not found:
        found = {language for data in catalog.sets([item]) for language in data.languages}
    return [code for code in known if code in found]


def read_verdicts(results: Path) -> dict[str, dict[str, int]]:
    """item -> verdict -> how many numbers; empty where no verdicts were gathered."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in read_csv(results / "verdicts.csv", ("item", "verdict")) or []:
        counts[row["item"]][row["verdict"]] += 1
    order = {label: place for place, label in enumerate(LABELS)}
    return {
        item: dict(sorted(found.items(), key=lambda pair: (order.get(pair[0], len(order)), pair[0])))
        for item, found in counts.items()
    }


def gather(config: dict, results: Path, out: Path, verdicts: Path | None = None) -> Report:
    """All that is known of the run in `results`, for a page at `out`; `verdicts` is their folder if it is another."""
    # Every item is shown, also those that this config leaves out.
    catalog = Catalog(config | {"papers": list(PAPERS), "items": "all", "skip": {}})
    sources = Sources(catalog, results)
    claims = read_claims(verdicts or results)
    counts = read_verdicts(verdicts or results)
    entries, written = [], []
    for name, item in ITEMS.items():
        kind = "table" if item.id.startswith("table") else "figure"
        stem = results / f"{kind}s" / name
        paths = {form: path for form in FORMATS[kind] if (path := stem.with_suffix(f".{form}")).is_file()}
        made = FORMATS[kind][0] in paths
        written += paths.values()
        entries.append(
            Entry(
                name=name,
                title=item.title,
                command=command_of(name, config, made),
                tasks=item_tasks(catalog, name),
                languages=item_languages(catalog, name),
                provenance=sources.of(name),
                files={form: os.path.relpath(path, out.parent) for form, path in paths.items()} if made else {},
                table=read_fragment(paths["html"]) if made and kind == "table" else "",
                picture=read_picture(paths["svg"]) if made and kind == "figure" else None,
                readings=gather_readings(paths["csv"]) if made and kind == "figure" and "csv" in paths else [],
                verdicts=counts.get(name, {}),
                claims=[claim for claim in claims if name in claim.items],
                left_out=(config.get("skip") or {}).get(name, ""),
                lacks=made and any(row["missing"] for row in read_csv(stem.with_suffix(".csv"), ("missing",)) or []),
            )
        )
    return Report(
        config=config,
        entries=entries,
        claims=claims,
        curves=gather_curves(results, catalog.runs(), config["align-predict"]["similarity_languages"]),
        checksums=known_checksums(config, results.resolve().parent.parent),
        commit=commit(ROOT),
        machine=machine(),
        period=period(written),
        measured=measured(Catalog(config), results),
    )
