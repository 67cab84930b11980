"""Spearman correlation of the cross-lingual gap with similarity (`align-predict`, section 4.3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crossalign.catalog.addresses import Base, Run, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import having
from crossalign.papers.align_predict.items import pud_languages, tuned
from crossalign.papers.align_predict.random_init import sets_behind, tested_on
from crossalign.papers.common.context import Context
from crossalign.results.names import METRICS
from crossalign.results.reading import AS_MEASURED
from crossalign.results.values import Value, deviation, mean

SOURCE = "en"


def spearman(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Rank correlation and its p value; None where it is not defined."""
    # Slow to load, and most tables do without.
    from crossalign.analysis.correlations import spearman as rank_correlation

    found = rank_correlation(*zip(*points, strict=True)) if points else None
    return None if found is None or math.isnan(found.rho) else (found.rho, found.p)


@dataclass(frozen=True)
class Rho:
    """A correlation: of the means over seeds; `std` over the seeds' own, `by_seed`; the p value and the languages."""

    value: Value
    p: float | None
    languages: int
    by_seed: dict[int, float] = field(default_factory=dict)


def similarity_targets(config: dict, task: str) -> list[str]:
    """The languages with parallel sentences and a test set of the task, English left out."""
    tested = having(config, "languages", task)
    return [lang for lang in pud_languages(config) if lang != SOURCE and lang in tested]


def correlated_sets(config: dict, task: str) -> list[DataSet]:
    """What a correlation depends on: the set that is trained on and those that are tested on."""
    return [
        data
        for target in (SOURCE, *similarity_targets(config, task))
        for data in sets_behind(config, task, SOURCE, target)
    ]


def correlations(context: Context, task: str, pretrained: bool) -> "Correlations":
    """Those of the models of this paper."""
    runs = sorted(tuned(context.config, [task], SOURCE, ["ref"]))
    sets = {lang: tested_on(context.config, task, lang) for lang in [SOURCE, *similarity_targets(context.config, task)]}
    index = context.config["similarity"]["index"]
    return Correlations(context, {run: Base(run.model) if pretrained else run for run in runs}, sets, index)


class Correlations:
    """Gaps and similarities of one task, from which the correlation at any layer is taken.

    `compared` has for each fine-tuned model the one whose similarity counts, `sets` the test set of each language, the
    source first.
    """

    def __init__(
        self, context: Context, compared: Mapping[Tuned, Run], sets: Mapping[str, DataSet], index: str
    ) -> None:
        self.runs, self.targets = list(compared), list(sets)[1:]
        # Of each seed and language: minus the gap; similarity by layer.
        self.transfer: dict[int, list[float]] = {}
        self.similarity: dict[int, list[dict[int, float]]] = {}
        missing = []
        for run, model in compared.items():
            source, *scores = (context.results.score(run, [data], METRICS[run.task]) for data in sets.values())
            found = context.results.similarity(model, "pud")
            curves = [found.get((f"{SOURCE}-{lang}", index, AS_MEASURED)) for lang in self.targets]
            if None in (source, *scores):
                missing.append(run.path())
            if None in curves:
                missing.append(f"similarity/{model.path()}")
            if None not in (source, *scores, *curves):
                self.transfer[run.seed] = [score - source for score in scores]
                self.similarity[run.seed] = curves
        self.missing = tuple(dict.fromkeys(missing))

    @property
    def layers(self) -> list[int]:
        """The layers that all similarities have."""
        sets = [set(curve) for curves in self.similarity.values() for curve in curves]
        return sorted(set.intersection(*sets)) if sets else []

    def points(self, seed: int, layers: Sequence[int], with_source: bool = False) -> list[tuple[float, float]]:
        """Minus the gap, and the mean similarity over some layers, of each language in one seed."""
        similarity = [mean([curve[layer] for layer in layers]) for curve in self.similarity[seed]]
        found = list(zip(self.transfer[seed], similarity, strict=True))
        # English itself has gap 0 and similarity 1.
        return [*found, (0.0, 1.0)] if with_source else found

    def means(self, layers: Sequence[int], with_source: bool = False) -> list[tuple[float, float]]:
        """The points, each the mean over seeds."""
        every = zip(*(self.points(seed, layers, with_source) for seed in sorted(self.transfer)), strict=True)
        return [tuple(mean(side) for side in zip(*seeds, strict=True)) for seeds in every]

    def at(self, layers: Sequence[int], with_source: bool = False) -> Rho:
        """The correlation with the mean similarity over some layers."""
        count = len(self.targets) + with_source
        if not layers or not self.transfer:
            return Rho(Value(wanted=len(self.runs), missing=self.missing), None, count)
        rho, p = spearman(self.means(layers, with_source)) or (None, None)
        singles = {seed: spearman(self.points(seed, layers, with_source)) for seed in sorted(self.transfer)}
        by_seed = {seed: single[0] for seed, single in singles.items() if single}
        std = deviation(list(by_seed.values()))
        return Rho(Value(rho, std, len(self.transfer), len(self.runs), self.missing), p, count, by_seed)

    def with_interval(self, layers: Sequence[int], with_source: bool = False) -> Rho:
        """The same with its 95 % interval by bootstrap over languages."""
        rho = self.at(layers, with_source)
        if rho.value.mean is None:
            return rho
        from crossalign.analysis.correlations import spearman_interval

        ends = spearman_interval(*zip(*self.means(layers, with_source), strict=True))
        return replace(rho, value=replace(rho.value, low=ends[0], high=ends[1])) if ends else rho

    def by_layer(self) -> dict[int, Value]:
        """The correlation at each layer."""
        return {layer: self.at([layer]).value for layer in self.layers}
