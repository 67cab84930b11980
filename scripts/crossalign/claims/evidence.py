"""Reading access to what a run has made: tidy CSV files of items, reports of prepared sets, the config."""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crossalign.claims.values import Curve, Number
from crossalign.errors import UserError
from crossalign.render.results import Results
from crossalign.sets import DataSet

Row = dict[str, str]
# How a table calls printed numbers that this run has no place for; they are not missing.
OUTSIDE = "not part of this configuration"


# Instead of the command that makes an item, where none does.
NO_COMMAND = "-"


class NotRun(Exception):
    """What a claim needs is not there: the item that would hold it, and what of it is missing."""

    def __init__(self, item: str, reason: str, command: str = "") -> None:
        super().__init__(reason)
        self.item, self.reason, self.command = item, reason, command


def command_of(config: dict, item: str) -> str:
    """The command that makes an item of this run."""
    paper, _, name = item.partition("/")
    folder, form = ("figures", "svg") if name.startswith("figure") else ("tables", "html")
    profile = "demo" if config.get("world") else "small" if config["run"] == "small" else "gpu"
    return f"snakemake --profile profiles/{profile} results/{config['run']}/{folder}/{paper}/{name}.{form}"


class Evidence:
    """One config with what its run has made so far."""

    def __init__(self, config: dict, folder: str | Path) -> None:
        self.config = config
        self.results = Results(folder)
        self._rows: dict[str, list[Row]] = {}
        # Figures have thousands of points; looked up by panel and series.
        self._series: dict[str, dict[tuple[str, str], list[Row]]] = {}

    @property
    def artificial(self) -> bool:
        """Whether the languages are those of the demo world."""
        return bool(self.config.get("world"))

    def rows(self, item: str) -> list[Row]:
        """The tidy records of an item."""
        if item not in self._rows:
            kind = "figures" if item.partition("/")[2].startswith("figure") else "tables"
            path = self.results.folder / kind / f"{item}.csv"
            try:
                with path.open(encoding="utf-8", newline="") as stream:
                    self._rows[item] = [row for row in csv.DictReader(stream) if row.get("reason") != OUTSIDE]
            except FileNotFoundError:
                raise self.absent(item, "was not made") from None
            except (OSError, UnicodeDecodeError, csv.Error) as error:
                raise UserError(f"{path}: no CSV that can be read ({error}); make the item again") from None
        return self._rows[item]

    def absent(self, item: str, reason: str) -> NotRun:
        """The error that says what is missing of an item and how it is made, or why it never will be."""
        if why := (self.config.get("skip") or {}).get(item):
            return NotRun(item, f"{item} is not part of this run: {why}", NO_COMMAND)
        return NotRun(item, f"{item} {reason}", command_of(self.config, item))

    def select(self, item: str, keys: dict[str, str | Sequence[str]]) -> list[Row]:
        """The records whose columns have these values (or one of several)."""
        found = [row for row in self.rows(item) if all(_fits(row.get(name), value) for name, value in keys.items())]
        if not found:
            wanted = ", ".join(
                f"{name} {value if isinstance(value, str) else '/'.join(value)}" for name, value in keys.items()
            )
            raise self.absent(item, f"has nothing for {wanted}" if keys else "is empty")
        return found

    def series(self, item: str, panel: str, series: str) -> list[Row]:
        """The points of one series of a figure."""
        if item not in self._series:
            found: dict[tuple[str, str], list[Row]] = {}
            for row in self.rows(item):
                found.setdefault((row.get("panel") or "", row.get("series") or ""), []).append(row)
            self._series[item] = found
        if (panel, series) not in self._series[item]:
            raise self.absent(item, f"has nothing for {series} in {panel}")
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
        return Number(value, scale, _float(path, row.get("std")), int(n or 1), int(wanted or 1), terms)

    def curve(self, item: str, panel: str, series: str, scale: str = "similarity") -> Curve:
        """One series of a figure by layer."""
        rows = self.series(item, panel, series)
        return Curve({int(_float(f"{item}.csv", row.get("x")) or 0): self.number(item, row, scale) for row in rows})

    def kept(self, item: str, data: DataSet) -> int:
        """How many examples a prepared set has; `item` is one that needs the set."""
        report = self.results.report(data)
        if report is None:
            raise self.absent(item, f"lacks {data.path()}")
        kept = report.get("kept")
        if not isinstance(kept, int):
            raise UserError(f"{self.results.folder / data.path()}: its report counts no examples that were kept")
        return kept

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
