"""Reading access to the results of a run, by address. What is not there yet is told, never an error."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossalign.catalog.addresses import Run, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.results import frames
from crossalign.results.frames import AS_MEASURED, set_key
from crossalign.results.values import Sample, Value, deviation, known, mean, root_mean_square
from crossalign.runtime.files import read_json

if TYPE_CHECKING:
    from crossalign.analysis.distances import Panel


@dataclass(frozen=True)
class Curve:
    """A value per layer."""

    points: dict[int, Value] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    wanted: int = 0


class Alike(NamedTuple):
    """A similarity, and its errors by bootstrap over sentences; NaN where it was not resampled."""

    value: float
    sampling: float
    lead_sampling: float


# (pair, index, control) -> layer -> similarity
Similarity = dict[tuple[str, str, str], dict[int, Alike]]


class Results:
    """The folder results/<run>. Remembers every run that was asked for, so that a test can compare with the catalog."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.asked: set[Run] = set()
        # What was read so far, from frames: looking a number up in a frame takes a thousand times longer.
        self._scores: dict[Tuned, dict[tuple[str, str], dict[str, float]]] = {}
        self._similarity: dict[tuple[Run, str], Similarity] = {}
        # Counts per example, kept by crossalign.papers.adjust.arms.
        self.counts: dict[Tuned, dict] = {}

    def read_scores(self, runs: Iterable[Run]) -> None:
        """Read the scores of many models at once."""
        new = {run.path(): run for run in runs if isinstance(run, Tuned) and run not in self._scores}
        if not new:
            return
        self._scores |= {run: {} for run in new.values()}
        frame = frames.scores(self.folder, new.values())
        for row in frame[["address", "set", "metric", "value", "low", "high"]].to_dict("records"):
            self._scores[new[row["address"]]][row["set"], row["metric"]] = row

    def score(self, run: Tuned, sets: Sequence[DataSet], metric: str, column: str = "value") -> float | None:
        """The mean score over some sets, or an end of its interval; None when the run or one of the sets is missing."""
        self.asked.add(run)
        if run not in self._scores:
            self.read_scores([run])
        found = [self._scores[run].get((set_key(data), metric), {}).get(column) for data in sets]
        return mean(found) if all(map(known, found)) else None

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
            low, high = (self.score(run, chosen, metric, end) for end in ("low", "high"))
            if low is not None and high is not None:
                intervals[run.seed] = (low, high)
        return Sample(values, tuple(missing), intervals)

    def training(self, run: Tuned) -> dict[str, Any] | None:
        """The record of a training: seconds, epochs, device."""
        self.asked.add(run)
        return read_json(self.folder / run.path() / "training.json")

    def report(self, data: DataSet) -> dict[str, Any] | None:
        """The account of a prepared set."""
        return read_json((self.folder / data.path()).with_name(f"{data.split}.report.json"))

    def size(self, data: DataSet) -> int | None:
        """Bytes of a prepared set."""
        path = self.folder / data.path()
        return path.stat().st_size if path.is_file() else None

    def similarity(self, run: Run, corpus: str) -> Similarity:
        """Every similarity of a model on a parallel corpus: nothing when it was not computed."""
        self.asked.add(run)
        if (run, corpus) not in self._similarity:
            # A layer without a similarity is a hole in the curve.
            frame = frames.similarity(self.folder, [run], [corpus]).dropna(subset="value")
            found: Similarity = {}
            names = ("pair", "index", "control", "layer", "value", "sampling", "lead_sampling")
            for pair, index, control, layer, *numbers in zip(*(frame[name].tolist() for name in names), strict=True):
                found.setdefault((pair, index, control), {})[layer] = Alike(*numbers)
            self._similarity[run, corpus] = found
        return self._similarity[run, corpus]

    def curve(
        self, runs: Iterable[Run], corpus: str, pairs: Sequence[str], index: str, control: str = AS_MEASURED
    ) -> Curve:
        """A similarity by layer: mean and spread over the runs; over the pairs as well where there are several."""
        runs = sorted(runs)
        # Of each run: layer -> one similarity per pair.
        found: list[dict[int, list[Alike]]] = []
        missing = []
        for run in runs:
            curves = [self.similarity(run, corpus).get((pair, index, control)) for pair in pairs]
            if None in curves:
                missing.append(run.path())
                continue
            layers = sorted(set().union(*curves))
            found.append({layer: [each[layer] for each in curves if layer in each] for layer in layers})
        points = {}
        for layer in sorted(set().union(*found)):
            every = [alike for run in found for alike in run.get(layer, [])]
            values, errors, lead_errors = zip(*every, strict=True)
            points[layer] = Value(
                mean(values),
                deviation(values),
                len(found),
                len(runs),
                tuple(missing),
                sampling=root_mean_square(errors),
                lead_sampling=mean(lead_errors) if all(map(known, lead_errors)) else None,
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
    there = [layer for layer in points if points[layer].mean is not None]
    return max(there, key=lambda layer: points[layer].mean, default=None)


def with_leads(points: dict[int, Value], runs: Sequence[dict[int, float]]) -> dict[int, Value]:
    """The points of a curve with `lead_std`, from the curves of its single runs."""
    peak = peak_of(points)
    return {
        layer: replace(
            value, lead_std=deviation([run[layer] - run[peak] for run in runs if {layer, peak} <= run.keys()])
        )
        for layer, value in points.items()
    }
