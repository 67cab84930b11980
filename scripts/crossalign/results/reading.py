"""Reading access to the results of a run, by address. What is not there yet is told, never an error."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossalign.catalog.addresses import Run, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.results import frames
from crossalign.results.frames import AS_MEASURED, set_key
from crossalign.results.values import Value, deviation, mean
from crossalign.runtime.files import read_json

if TYPE_CHECKING:
    from crossalign.analysis.distances import Panel


@dataclass(frozen=True)
class Curve:
    """A value per layer."""

    points: dict[int, Value] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    wanted: int = 0


# (pair, index, control) -> layer -> similarity
Similarity = dict[tuple[str, str, str], dict[int, float]]


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
        for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
            self._scores[new[row["address"]]][row["set"], row["metric"]] = row

    def score(self, run: Tuned, sets: Sequence[DataSet], metric: str, column: str = "value") -> float | None:
        """The mean score over some sets, or an end of its interval; None when the run or one of the sets is missing."""
        self.asked.add(run)
        if run not in self._scores:
            self.read_scores([run])
        found = [self._scores[run].get((set_key(data), metric), {}).get(column) for data in sets]
        return None if None in found else mean(found)

    def value(
        self, runs: Iterable[Tuned], sets: Sequence[DataSet] | Callable[[Tuned], Sequence[DataSet]], metric: str
    ) -> Value:
        """The score of some runs, one per seed: of each the mean over `sets`, which may depend on the run."""
        numbers, ends, missing = [], {"low": [], "high": []}, []
        for run in sorted(runs):
            chosen = sets(run) if callable(sets) else sets
            number = self.score(run, chosen, metric)
            if number is None:
                missing.append(run.path())
                continue
            numbers.append(number)
            for end, found in ends.items():
                found.append(self.score(run, chosen, metric, end))
        # Of a mean over sets the mean of the ends: on the safe side, for sets do not vary together.
        interval = {end: None if None in found else mean(found) for end, found in ends.items()}
        return Value.over(numbers, missing, **interval)

    def training(self, run: Tuned) -> dict[str, Any] | None:
        """The record of a training: seconds, epochs, device."""
        self.asked.add(run)
        return read_json(self.folder / run.path() / "training.json")

    def similarity(self, run: Run, corpus: str) -> Similarity:
        """Every similarity of a model on a parallel corpus: nothing when it was not computed."""
        self.asked.add(run)
        if (run, corpus) not in self._similarity:
            # A layer without a similarity is a hole in the curve.
            frame = frames.similarity(self.folder, [run], [corpus]).dropna(subset="value")
            found: Similarity = {}
            names = ("pair", "index", "control", "layer", "value")
            for pair, index, control, layer, value in zip(*(frame[name].tolist() for name in names), strict=True):
                found.setdefault((pair, index, control), {})[layer] = value
            self._similarity[run, corpus] = found
        return self._similarity[run, corpus]

    def curve(
        self, runs: Iterable[Run], corpus: str, pairs: Sequence[str], index: str, control: str = AS_MEASURED
    ) -> Curve:
        """A similarity by layer: mean and spread over the runs; over the pairs as well where there are several."""
        runs = sorted(runs)
        # By layer, every run's and pair's.
        found: dict[int, list[float]] = {}
        missing = []
        for run in runs:
            curves = [self.similarity(run, corpus).get((pair, index, control)) for pair in pairs]
            if None in curves:
                missing.append(run.path())
                continue
            for curve in curves:
                for layer, value in curve.items():
                    found.setdefault(layer, []).append(value)
        count = len(runs) - len(missing)
        points = {
            layer: Value(mean(values), deviation(values), count, len(runs), tuple(missing))
            for layer, values in sorted(found.items())
        }
        return Curve(points, tuple(missing), len(runs))

    def distances(self, run: Run, lang: str) -> "Panel | None":
        """Distances of related and unrelated words in a model; None when they were not computed."""
        self.asked.add(run)
        path = self.folder / "distances" / run.path() / f"{lang}.csv"
        if not path.is_file():
            return None
        from crossalign.analysis.distances import read_panel

        return read_panel(path, path.with_suffix(".json"))
