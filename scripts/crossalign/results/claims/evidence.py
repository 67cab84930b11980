"""Reading access to what a run has made: tidy CSV files of items, reports of prepared sets, the config."""

import csv
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from crossalign.catalog.runs import Catalog
from crossalign.results.claims.values import Curve, Number, student
from crossalign.runtime.errors import UserError
from crossalign.papers.all_items import PAPERS
from crossalign.catalog.remake import command_of
from crossalign.results.reading import Results
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.catalog.stand_in import StandIn, artificial, base_name, stand_in

Row = dict[str, str]
# How a table calls printed numbers that this run has no place for; they are not missing.
OUTSIDE = "not part of this configuration"


class NotRun(Exception):
    """What a claim needs is not there: the item that would hold it, and what of it is missing."""

    def __init__(self, item: str, reason: str, command: str = "") -> None:
        super().__init__(reason)
        self.item, self.reason, self.command = item, reason, command


class Outside(Exception):
    """What a claim needs is no part of this run, and no command of it makes it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Evidence:
    """One config with what its run has made so far.

    `control` chooses the curves of figures: `none` as the papers measure, `length` with sentence length taken out.
    """

    def __init__(self, config: dict, folder: str | Path, control: str = "none") -> None:
        self.config = config
        self.control = control
        self.results = Results(folder)
        self._rows: dict[str, list[Row]] = {}
        # Figures have thousands of points; looked up by panel and series.
        self._series: dict[str, dict[tuple[str, str], list[Row]]] = {}

    @cached_property
    def catalog(self) -> Catalog:
        """Of all items that this config can make, also those that it does not choose."""
        return Catalog(self.config | {"papers": list(PAPERS), "items": "all"})

    def stand_in(self, item: str) -> StandIn | None:
        """What stands here for what the paper measured in an item; own models where there are no others.

        An item without models speaks of its study, whose models are then all that its items have.
        """
        paper = item.partition("/")[0]
        runs = self.catalog.runs([item]) or self.catalog.runs([f"{paper}/{each.id}" for each in PAPERS[paper]])
        # Models of one language are pretrained in every run.
        found = [stand_in(self.config, [run]) for run in runs if not base_name(run).startswith(("mono-", "bilstm"))]
        return artificial(self.config) or (found[0] if found and all(found) else None)

    def other_data(self, sets: Iterable[DataSet]) -> str:
        """Why the sizes of some sets are not those of the published files; empty where they are."""
        if found := artificial(self.config):
            return found.reason
        if self.config["downloads"]["mirror_checksums"] != "mirror":
            return ""
        from crossalign.catalog.checksums import known_checksums, registered

        known, wanted = known_checksums(self.config, self.results.folder.resolve().parent.parent), registered()
        other = {path for data in sets for path in raw_files(data) if known.get(path, "") != wanted.get(path)}
        return f"not known to be the published files: {', '.join(sorted(other))}" if other else ""

    def rows(self, item: str) -> list[Row]:
        """The tidy records of an item."""
        if item not in self._rows:
            kind = "figures" if item.partition("/")[2].startswith("figure") else "tables"
            path = self.results.folder / kind / f"{item}.csv"
            try:
                with path.open(encoding="utf-8", newline="") as stream:
                    rows = [row for row in csv.DictReader(stream) if row.get("reason") != OUTSIDE]
            except FileNotFoundError:
                raise self.absent(item, "was not made") from None
            except (OSError, UnicodeDecodeError, csv.Error) as error:
                raise UserError(f"{path}: no CSV that can be read ({error}); make the item again") from None
            if kind == "figures":
                rows = self._chosen(item, rows)
            self._rows[item] = rows
        return self._rows[item]

    def controlled(self) -> "Evidence":
        """The same with the length of sentences taken out of every similarity."""
        return Evidence(self.config, self.results.folder, "length")

    def _chosen(self, item: str, rows: list[Row]) -> list[Row]:
        """The points of a figure under the control that is looked at."""
        chosen = [row for row in rows if (row.get("control") or "none") == self.control]
        if rows and not chosen:
            raise Outside(f"{item} of this run was made without the control for length")
        return chosen

    def absent(self, item: str, reason: str) -> NotRun | Outside:
        """The error that says what is missing of an item and how it is made, or why it never will be."""
        if why := (self.config.get("skip") or {}).get(item):
            return Outside(f"{item} is not part of this run: {why}")
        return NotRun(item, f"{item} {reason}", command_of(item, self.config))

    def lacks(self, item: str, what: str) -> NotRun | Outside:
        """The error that an item, which shows all that its run has, knows nothing of something."""
        return Outside(f"{item} of this run has no {what}") if self.rows(item) else self.absent(item, "is empty")

    def select(self, item: str, keys: dict[str, str | Sequence[str]]) -> list[Row]:
        """The records whose columns have these values (or one of several)."""
        found = [row for row in self.rows(item) if all(_fits(row.get(name), value) for name, value in keys.items())]
        if not found:
            wanted = (value if isinstance(value, str) else "/".join(value) for value in keys.values())
            raise self.lacks(item, ", ".join(wanted))
        return found

    def series(self, item: str, panel: str, series: str) -> list[Row]:
        """The points of one series of a figure."""
        if item not in self._series:
            found: dict[tuple[str, str], list[Row]] = {}
            for row in self.rows(item):
                found.setdefault((row.get("panel") or "", row.get("series") or ""), []).append(row)
            self._series[item] = found
        if (panel, series) not in self._series[item]:
            raise self.lacks(item, f"{series} in {panel}")
        return self._series[item][panel, series]

    def number(self, item: str, row: Row, scale: str) -> Number:
        """The mean of one record."""
        path = f"{item}.csv"
        value = _float(path, row.get("mean") if "mean" in row else row.get("y"))
        if value is None:
            missing = row.get("missing") or "a value"
            raise self.absent(item, f"lacks {missing.split(' ')[0]}")
        n, wanted = (_float(path, row.get(name)) for name in ("n", "wanted"))
        terms = 2 if row.get("kind") in ("delta", "gain over original") else 1
        std, sampling, low, high = (_float(path, row.get(name)) for name in ("std", "sampling", "low", "high"))
        if sampling is None and scale != "correlation" and low is not None and high is not None:
            sampling = (high - low) / (2 * student(math.inf))
        if sampling is not None and scale == "correlation" and std is None:
            # The bootstrap over languages tells all that is known of its noise.
            std = 0.0
        n, wanted = int(n or 1), int(wanted or 1)
        if n < 2 and scale == "similarity":
            # The band of a single model's curve is its spread over language pairs, which is no noise.
            std = None
        return Number(value, scale, std, n, wanted, terms, sampling=sampling, low=low, high=high)

    def curve(self, item: str, panel: str, series: str, scale: str = "similarity") -> Curve:
        """One series of a figure by layer."""
        path = f"{item}.csv"
        rows = {int(_float(path, row.get("x")) or 0): row for row in self.series(item, panel, series)}
        leads = {
            layer: (_float(path, row.get("lead_std")), _float(path, row.get("lead_sampling")))
            for layer, row in rows.items()
        }
        known = {layer: lead for layer, lead in leads.items() if lead != (None, None)}
        return Curve({layer: self.number(item, row, scale) for layer, row in rows.items()}, known)

    def kept(self, item: str, data: DataSet) -> int:
        """How many examples a prepared set has; `item` is one that needs the set."""
        report = self.results.report(data)
        if report is None:
            raise self.missing_set(item, data)
        kept = report.get("kept")
        if not isinstance(kept, int):
            raise UserError(f"{self.results.folder / data.path()}: its report counts no examples that were kept")
        return kept

    def missing_set(self, item: str, data: DataSet) -> NotRun | Outside:
        """The error that a prepared set is not there."""
        if data not in self.catalog.sets():
            return Outside(f"{data.path()} is not part of this run")
        return self.absent(item, f"lacks {data.path()}")

    def setting(self, keys: Iterable[str]) -> Any:
        """A value of the config."""
        value: Any = self.config
        for key in keys:
            value = value[key]
        return value


def _fits(found: str | None, wanted: str | Sequence[str]) -> bool:
    return found == wanted if isinstance(wanted, str) else found in wanted


def _float(path: str, text: str | None) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{path}: '{text}' is no finite number; make the item again")
    return value
