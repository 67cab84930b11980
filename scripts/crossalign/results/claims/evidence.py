"""Reading access to what a run has made: tidy CSV files of items, reports of prepared sets, the config."""

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from crossalign.catalog.runs import Catalog
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.catalog.stand_in import StandIn, artificial, base_name, stand_in
from crossalign.results.claims.values import Curve, Number, student
from crossalign.results.reading import Results
from crossalign.runtime.errors import UserError

Row = dict[str, str]
Keys = str | Sequence[str]
# How a table calls printed numbers that this run has no place for; they are not missing.
OUTSIDE = "not part of this configuration"


class Outside(Exception):
    """What a claim needs is no part of this run, and no command of it makes it."""


class NotRun(Exception):
    """What a claim needs is not there yet; `item` would hold it."""

    def __init__(self, reason: str, item: str = "") -> None:
        super().__init__(reason)
        self.item = item


class Evidence:
    """One config with what its run has made so far.

    `catalog` has all items that this config can make, also those that it does not choose. `control` chooses the curves
    of figures: `none` as the papers measure, `length` with sentence length taken out.
    """

    def __init__(self, config: dict, folder: str | Path, catalog: Catalog, control: str = "none") -> None:
        self.config, self.catalog, self.control = config, catalog, control
        self.results = Results(folder)
        self._rows: dict[str, list[Row]] = {}
        # Figures have thousands of points; looked up by panel and series.
        self._series: dict[str, dict[tuple[str, str], list[Row]]] = {}

    def controlled(self) -> "Evidence":
        """The same with the length of sentences taken out of every similarity."""
        return Evidence(self.config, self.results.folder, self.catalog, "length")

    def stand_in(self, item: str) -> StandIn | None:
        """What stands here for what the paper measured in an item; trained models where there are no others.

        An item without models speaks of its study, whose models are then all that its items have.
        """
        study = f"{item.partition('/')[0]}/"
        needs = self.catalog.needs
        runs = needs(item).runs or set().union(
            *(needs(name).runs for name in self.catalog.items if name.startswith(study))
        )
        # Models of one language are pretrained in every run.
        compared = [run for run in runs if not base_name(run).startswith(("mono-", "bilstm"))]
        found = [stand_in(self.config, [run]) for run in compared]
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
            self._rows[item] = self._read(item)
        return self._rows[item]

    def _read(self, item: str) -> list[Row]:
        kind = "figures" if "/figure" in item else "tables"
        path = self.results.folder / kind / f"{item}.csv"
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                rows = [row for row in csv.DictReader(stream) if row.get("reason") != OUTSIDE]
        except FileNotFoundError:
            raise self.absent(item, "was not made") from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{path}: no CSV that can be read ({error}); make the item again") from None
        if kind == "tables":
            return rows
        chosen = [row for row in rows if (row.get("control") or "none") == self.control]
        if rows and not chosen:
            raise Outside(f"{item} of this run was made without the control for length")
        return chosen

    def absent(self, item: str, reason: str) -> NotRun | Outside:
        """The error that says what is missing of an item, or why it never will be there."""
        if why := self.catalog.left_out(item):
            return Outside(f"{item} is not part of this run: {why}")
        return NotRun(f"{item} {reason}", item)

    def lacks(self, item: str, what: str) -> NotRun | Outside:
        """The error that an item, which shows all that its run has, knows nothing of something."""
        return Outside(f"{item} of this run has no {what}") if self.rows(item) else self.absent(item, "is empty")

    def select(self, item: str, **keys: Keys) -> list[Row]:
        """The records whose columns have these values (or one of several)."""
        wanted = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in keys.items()}
        rows = [row for row in self.rows(item) if all(row.get(name) in values for name, values in wanted.items())]
        if not rows:
            raise self.lacks(item, ", ".join("/".join(values) for values in wanted.values()))
        return rows

    def column(self, item: str, name: str, **keys: Keys) -> list[str]:
        """The different values of a column in the records with these keys, in their order."""
        return list(dict.fromkeys(row[name] for row in self.select(item, **keys)))

    def series(self, item: str, panel: str, series: str) -> list[Row]:
        """The points of one series of a figure."""
        if item not in self._series:
            grouped = defaultdict(list)
            for row in self.rows(item):
                grouped[row.get("panel") or "", row.get("series") or ""].append(row)
            self._series[item] = dict(grouped)
        if (panel, series) not in self._series[item]:
            raise self.lacks(item, f"{series} in {panel}")
        return self._series[item][panel, series]

    def number(self, item: str, row: Row, scale: str) -> Number:
        """The mean of one record."""
        value = _float(item, row, "mean" if "mean" in row else "y")
        if value is None:
            first = (row.get("missing") or "").partition(" ")[0]
            raise self.absent(item, f"lacks {first or 'a value'}")
        n, wanted = (int(_float(item, row, name) or 1) for name in ("n", "wanted"))
        terms = 2 if row.get("kind") in ("delta", "gain over original") else 1
        std, sampling, low, high = (_float(item, row, name) for name in ("std", "sampling", "low", "high"))
        if sampling is None and scale != "correlation" and low is not None and high is not None:
            sampling = (high - low) / (2 * student(math.inf))
        if sampling is not None and scale == "correlation" and std is None:
            # The bootstrap over languages tells all that is known of its noise.
            std = 0.0
        if n < 2 and scale == "similarity":
            # The band of a single model's curve is its spread over language pairs, which is no noise.
            std = None
        return Number(value, scale, std, n, wanted, terms, sampling=sampling, low=low, high=high)

    def curve(self, item: str, panel: str, series: str, scale: str = "similarity") -> Curve:
        """One series of a figure by layer."""
        rows = {int(_float(item, row, "x") or 0): row for row in self.series(item, panel, series)}
        leads = {
            layer: (_float(item, row, "lead_std"), _float(item, row, "lead_sampling")) for layer, row in rows.items()
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


def _float(item: str, row: Row, column: str) -> float | None:
    text = row.get(column)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{item}.csv: '{text}' is no finite number; make the item again")
    return value
