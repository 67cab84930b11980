"""Reading access to the results of a run, by address. What is not there yet is told, never an error."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossalign.catalog.addresses import Run, Tuned
from crossalign.runtime.errors import UserError
from crossalign.results.values import Sample, Value, deviation, known_mean, mean, root_mean_square
from crossalign.catalog.sets import DataSet

if TYPE_CHECKING:
    from crossalign.analysis.distances import Panel

# Similarity as the papers measure it.
AS_MEASURED = "none"


class Alike(NamedTuple):
    """A similarity, and its errors by bootstrap over sentences; None where it was not resampled."""

    value: float
    sampling: float | None = None
    lead_sampling: float | None = None


# (pair, index, control) -> layer -> similarity
Similarity = dict[tuple[str, str, str], dict[int, Alike]]


def set_key(data: DataSet) -> str:
    """The name of a set in scores.json: trees/en_pud/test."""
    return f"{data.kind}/{data.name}/{data.split}"


@dataclass(frozen=True)
class Curve:
    """A value per layer."""

    points: dict[int, Value] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    wanted: int = 0


class Results:
    """The folder results/<run>. Remembers every run that was asked for, so that a test can compare with the catalog."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.asked: set[Run] = set()
        self._scores: dict[str, dict[str, dict[str, float]] | None] = {}
        # Counts per example, kept by crossalign.papers.adjust.significance.
        self.counts: dict[Tuned, dict] = {}
        self._similarity: dict[tuple[str, str], Similarity | None] = {}

    def _json(self, path: Path) -> Any | None:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise UserError(f"{path}: no JSON that can be read ({error}); delete it and make it again") from None

    def _table(self, path: Path, columns: Sequence[str]) -> list[dict[str, str]] | None:
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                reader = csv.DictReader(stream)
                if reader.fieldnames is None or not set(columns) <= set(reader.fieldnames):
                    raise UserError(f"{path}: the columns {', '.join(columns)} are needed; found {reader.fieldnames}")
                return list(reader)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{path}: no CSV that can be read ({error}); delete it and make it again") from None

    def scores(self, run: Tuned) -> dict[str, dict[str, float]] | None:
        """The scores of a fine-tuned model by set and metric; None when it was not run."""
        self.asked.add(run)
        name = run.path()
        if name not in self._scores:
            path = self.folder / name / "scores.json"
            found = self._json(path)
            if found is not None and not (isinstance(found, dict) and all(isinstance(v, dict) for v in found.values())):
                raise UserError(
                    f"{path}: expected scores by set and metric, as in {{'trees/en_pud/test': {{'LAS': 81.2}}}}"
                )
            self._scores[name] = found
        return self._scores[name]

    def score(self, run: Tuned, sets: Sequence[DataSet], metric: str) -> float | None:
        """The mean score over some sets; None when the run or one of the sets is not there."""
        scores = self.scores(run)
        if scores is None:
            return None
        found = []
        for data in sets:
            number = scores.get(set_key(data), {}).get(metric)
            if number is None:
                return None
            if not isinstance(number, int | float) or not math.isfinite(number):
                path = self.folder / run.path() / "scores.json"
                raise UserError(f"{path}: {set_key(data)}, {metric}: {number!r} is no finite number")
            found.append(float(number))
        return mean(found)

    def sample(
        self, runs: Iterable[Tuned], sets: Sequence[DataSet] | Callable[[Tuned], Sequence[DataSet]], metric: str
    ) -> Sample:
        """One score per seed: the mean over `sets`, which may depend on the run."""
        values, missing, intervals = {}, [], {}
        for run in sorted(runs):
            chosen = sets(run) if callable(sets) else sets
            number = self.score(run, chosen, metric)
            if number is None:
                missing.append(run.path())
                continue
            values[run.seed] = number
            # Of a mean over sets the mean of the ends: on the safe side, for sets do not vary together.
            low, high = (self.score(run, chosen, f"{metric}_{end}") for end in ("low", "high"))
            if low is not None and high is not None:
                intervals[run.seed] = (low, high)
        return Sample(values, tuple(missing), intervals)

    def training(self, run: Tuned) -> dict[str, Any] | None:
        """The record of a training: seconds, epochs, device."""
        self.asked.add(run)
        return self._json(self.folder / run.path() / "training.json")

    def report(self, data: DataSet) -> dict[str, Any] | None:
        """The account of a prepared set."""
        path = self.folder / data.path()
        return self._json(path.with_name(f"{data.split}.report.json"))

    def size(self, data: DataSet) -> int | None:
        """Bytes of a prepared set."""
        path = self.folder / data.path()
        return path.stat().st_size if path.is_file() else None

    def similarity(self, run: Run, corpus: str) -> Similarity | None:
        """Every similarity of a model on a parallel corpus; None when it was not computed."""
        self.asked.add(run)
        key = (run.path(), corpus)
        if key not in self._similarity:
            path = self.folder / "similarity" / run.path() / f"{corpus}.csv"
            rows = self._table(path, ("pair", "layer", "index", "value"))
            self._similarity[key] = None if rows is None else _by_pair(path, rows)
        return self._similarity[key]

    def curve(
        self, runs: Iterable[Run], corpus: str, pairs: Sequence[str], index: str, control: str = AS_MEASURED
    ) -> Curve:
        """A similarity by layer: mean and spread over the runs; over the pairs as well where there are several."""
        runs = sorted(runs)
        # Of each run: layer -> one similarity per pair.
        found: list[dict[int, list[Alike]]] = []
        missing = []
        for run in runs:
            read = self.similarity(run, corpus)
            if read is None or any((pair, index, control) not in read for pair in pairs):
                missing.append(run.path())
                continue
            found.append({})
            for pair in pairs:
                for layer, alike in read[pair, index, control].items():
                    found[-1].setdefault(layer, []).append(alike)
        points = {}
        for layer in sorted({layer for run in found for layer in run}):
            every = [alike for run in found for alike in run.get(layer, [])]
            values = [alike.value for alike in every]
            points[layer] = Value(
                mean(values),
                deviation(values),
                len(found),
                len(runs),
                tuple(missing),
                sampling=root_mean_square([alike.sampling for alike in every]),
                lead_sampling=known_mean([alike.lead_sampling for alike in every]),
            )
        means = [{layer: mean([alike.value for alike in every]) for layer, every in run.items()} for run in found]
        return Curve(with_leads(points, means), tuple(missing), len(runs))

    def distances(self, run: Run, lang: str) -> "Panel | None":
        """Distances of related and unrelated words in a model; None when they were not computed."""
        self.asked.add(run)
        path = self.folder / "distances" / run.path() / f"{lang}.csv"
        if not path.is_file():
            return None
        from crossalign.analysis.distances import read_panel

        return read_panel(path, path.with_suffix(".json"))


def peak_of(points: dict[int, Value]) -> int | None:
    """The layer where a curve is largest, the first of equal ones; None of no curve."""
    known = [layer for layer in points if points[layer].mean is not None]
    return max(known, key=lambda layer: points[layer].mean, default=None)


def with_leads(points: dict[int, Value], runs: Sequence[dict[int, float]]) -> dict[int, Value]:
    """The points of a curve with `lead_std`, from the curves of its single runs."""
    peak = peak_of(points)
    return {
        layer: replace(
            value, lead_std=deviation([run[layer] - run[peak] for run in runs if {layer, peak} <= run.keys()])
        )
        for layer, value in points.items()
    }


def _by_pair(path: Path, rows: list[dict[str, str]]) -> Similarity:
    found: Similarity = {}
    for place, row in enumerate(rows, start=2):
        try:
            layer, value = int(row["layer"]), float(row["value"] or "nan")
            # Files made before there were controls and resamples lack the columns.
            errors = [float(row.get(name) or "nan") for name in ("sampling", "lead_sampling")]
        except (ValueError, TypeError):
            raise UserError(f"{path}: line {place}: layer and value must be numbers: {row}") from None
        # A layer whose vectors do not vary has no similarity; the curve has a hole there.
        if math.isfinite(value):
            key = row["pair"], row["index"], row.get("control") or AS_MEASURED
            found.setdefault(key, {})[layer] = Alike(value, *(e if math.isfinite(e) else None for e in errors))
    return found
