"""Spearman correlation of the cross-lingual gap with similarity (`align-predict`, section 4.3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crossalign.addresses import Base, Run
from crossalign.items.align_predict import PAPER, pud_languages, tuned
from crossalign.render.context import Context
from crossalign.render.names import METRICS
from crossalign.render.results import AS_MEASURED
from crossalign.render.tested import tested_on
from crossalign.render.values import Value, deviation, mean

SOURCE = "en"


def spearman(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Rank correlation and its p value; None where it is not defined."""
    # Slow to load, and most tables do without.
    from crossalign.analysis.correlations import spearman as rank_correlation

    found = rank_correlation(*zip(*points, strict=True)) if points else None
    return None if found is None or math.isnan(found.rho) else (found.rho, found.p)


@dataclass(frozen=True)
class Rho:
    """A correlation: of the means over seeds; `std` over the seeds' own correlations; the p value and the languages."""

    value: Value
    p: float | None
    languages: int


def similarity_targets(context: Context) -> list[str]:
    """The languages with parallel sentences, English left out."""
    return [lang for lang in pud_languages(context.config) if lang != SOURCE]


class Correlations:
    """Gaps and similarities of one task, from which the correlation at any layer is taken."""

    def __init__(self, context: Context, task: str, pretrained: bool) -> None:
        self.runs = sorted(tuned(context.config, [task], SOURCE, ["ref"]))
        self.targets = similarity_targets(context)
        results, metric = context.results, METRICS[task]
        index = context.config["similarity"]["index"]
        base = Base(context.config[PAPER]["base"])
        # seed -> language -> minus the gap; seed -> language -> layer -> similarity
        self.transfer: dict[int, dict[str, float]] = {}
        self.alike: dict[int, dict[str, dict[int, float]]] = {}
        missing = []
        for run in self.runs:
            compared: Run = base if pretrained else run
            scores = {
                lang: results.score(run, [tested_on(context.config, task, lang)], metric)
                for lang in [SOURCE, *self.targets]
            }
            found = results.similarity(compared, "pud")
            points = {lang: (found or {}).get((f"{SOURCE}-{lang}", index, AS_MEASURED), {}) for lang in self.targets}
            curves = {lang: {layer: alike.value for layer, alike in each.items()} for lang, each in points.items()}
            if None in scores.values():
                missing.append(run.path())
            if not all(curves.values()):
                missing.append(f"similarity/{compared.path()}")
            if None not in scores.values() and all(curves.values()):
                self.transfer[run.seed] = {lang: scores[lang] - scores[SOURCE] for lang in self.targets}
                self.alike[run.seed] = curves
        self.missing = tuple(dict.fromkeys(missing))

    @property
    def layers(self) -> list[int]:
        """The layers that all similarities have."""
        sets = [set(curve) for curves in self.alike.values() for curve in curves.values()]
        return sorted(set.intersection(*sets)) if sets else []

    def at(self, layers: Sequence[int], with_source: bool = False) -> Rho:
        """The correlation with the mean similarity over some layers; English itself has gap 0 and similarity 1."""
        seeds = sorted(self.transfer)
        extra = [(0.0, 1.0)] if with_source else []
        per_seed = {
            seed: {
                lang: (self.transfer[seed][lang], mean([self.alike[seed][lang][layer] for layer in layers]))
                for lang in self.targets
            }
            for seed in seeds
        }
        count = len(self.targets) + len(extra)
        if not layers or not seeds:
            return Rho(Value(wanted=len(self.runs), missing=self.missing), None, count)
        means = [
            tuple(mean([per_seed[seed][lang][side] for seed in seeds]) for side in (0, 1)) for lang in self.targets
        ]
        rho = spearman([*means, *extra])
        singles = [spearman([*pairs.values(), *extra]) for pairs in per_seed.values()]
        std = deviation([single[0] for single in singles if single])
        value = Value(rho[0] if rho else None, std, len(seeds), len(self.runs), self.missing)
        return Rho(value, rho[1] if rho else None, count)
