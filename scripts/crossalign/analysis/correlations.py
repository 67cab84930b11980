"""Correlation of transfer with similarity (`align-predict`, section 7).

Sign: the correlation is between similarity and the *negative* cross-language gap, score(source, X) - score(source,
source), so that a positive value says "more similar, better transfer"; the signs that the paper prints need this
reading.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossalign.analysis.intervals import CONFIDENCE, ITERATIONS, resamples
from crossalign.analysis.significance import two_sided_p
from crossalign.runtime.errors import UserError

# How many resamples are drawn at most for each one that is kept: where hardly any can be kept, there is no bootstrap.
_DRAWS = 100

# pair -> layer -> value
Layers = dict[str, dict[int, float]]


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho, its two-sided p-value (t distribution with n - 2 degrees of freedom), and n."""

    rho: float
    p: float
    n: int

    @property
    def smallest_p(self) -> float:
        """The smallest two-sided p that the order of so many points can give: two of all n! orders."""
        return min(1.0, 2.0 / math.factorial(self.n))


def spearman(first: Sequence[float], second: Sequence[float]) -> Correlation:
    """Rank correlation, ties by mean rank. Fewer than three points or a constant side: rho and p are NaN."""
    if len(first) != len(second):
        raise UserError(f"rank correlation of {len(first)} with {len(second)} values: both sides need the same number")
    values = np.array([first, second], dtype=np.float64).reshape(2, -1)
    if not np.isfinite(values).all():
        raise UserError("rank correlation of values that are not all finite; leave those points out and say so")
    count = values.shape[1]
    if count < 3 or (values == values[:, :1]).all(axis=1).any():
        return Correlation(math.nan, math.nan, count)
    rho = float(np.clip(np.corrcoef([mean_ranks(row) for row in values])[0, 1], -1.0, 1.0))
    # The statistic has a pole at one; p is zero there.
    t = rho * math.sqrt((count - 2) / ((1.0 - rho) * (1.0 + rho))) if abs(rho) < 1.0 else math.inf
    return Correlation(rho, two_sided_p(t, count - 2), count)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def bootstrap_spearman(
    first: Sequence[float], others: Sequence[Sequence[float]], iterations: int = ITERATIONS, seed: int = 1
) -> np.ndarray | None:
    """Rank correlations of `first` with each of `others` over resampled points: others x resamples.

    All of `others` see the same points. A resample with fewer than three different points or with a constant side is
    drawn again; None where rho is not defined for the points themselves, or for hardly any resample.
    """
    values = np.array([first, *others], dtype=np.float64)
    if values.shape[1] < 3 or (values == values[:, :1]).all(axis=1).any():
        return None
    # The rank of a point, from its mean and times two, is the sum of these over the points that were drawn.
    signs = np.sign(values[:, :, None] - values[:, None, :])
    kept, count = [], 0
    for weights in resamples(values.shape[1], _DRAWS * iterations, seed):
        ranks = weights @ signs.transpose(0, 2, 1)
        squares = (weights * ranks**2).sum(axis=2)
        good = (np.count_nonzero(weights, axis=1) >= 3) & squares.all(axis=0)
        products = (weights * ranks[0] * ranks[1:]).sum(axis=2)[:, good]
        kept.append(np.clip(products / np.sqrt(squares[0, good] * squares[1:, good]), -1.0, 1.0))
        count += int(good.sum())
        if count >= iterations:
            return np.concatenate(kept, axis=1)[:, :iterations]
    return None


def spearman_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Percentile interval of the rank correlation over resampled points; None where there is no bootstrap."""
    found = bootstrap_spearman(first, [second])
    if found is None:
        return None
    low, high = np.quantile(found[0], ((1.0 - confidence) / 2, (1.0 + confidence) / 2))
    return float(low), float(high)


def gaps(scores: Mapping[str, float], source: str) -> dict[str, float]:
    """Cross-language gap of every target: score(source, source) - score(source, target) (Hu et al. 2020)."""
    if source not in scores:
        raise UserError(f"no score for the source language '{source}'; there are {', '.join(scores) or 'none'}")
    return {target: scores[source] - score for target, score in scores.items() if target != source}


def correlate(
    similarity: Mapping[str, float], scores: Mapping[str, float], source: str, with_source: bool = False
) -> Correlation:
    """Spearman between similarity to the source and the negative gap, over the targets that `similarity` names.

    With `with_source` the source itself is one more point (gap 0, similarity 1).
    """
    gap = gaps(scores, source)
    targets = [lang for lang in similarity if lang != source]
    if missing := [lang for lang in targets if lang not in gap]:
        raise UserError(f"no score for {', '.join(missing)}; correlate only languages that have both")
    points = [(similarity[lang], -gap[lang]) for lang in targets]
    if with_source:
        points.append((1.0, 0.0))
    return spearman([point[0] for point in points], [point[1] for point in points])


def by_layer(
    layers: Layers, scores: Mapping[str, float], source: str, with_source: bool = False
) -> dict[int, Correlation]:
    """`correlate` at every layer that all pairs have, layer 0 (embeddings) included."""
    return {layer: correlate(at_layer(layers, source, layer), scores, source, with_source) for layer in _common(layers)}


def over_layers(layers: Layers, scores: Mapping[str, float], source: str, with_source: bool = False) -> Correlation:
    """`correlate` with the similarity averaged over layers 1 to the last: the embeddings are not counted."""
    chosen = [layer for layer in _common(layers) if layer > 0]
    if not chosen:
        raise UserError("no layer above the embeddings to average over")
    means = {
        _target(pair, source): float(np.mean([values[layer] for layer in chosen])) for pair, values in layers.items()
    }
    return correlate(means, scores, source, with_source)


def at_layer(layers: Layers, source: str, layer: int) -> dict[str, float]:
    """Similarity of each target language with the source at one layer."""
    return {_target(pair, source): values[layer] for pair, values in layers.items()}


def mean_layers(runs: Iterable[Layers]) -> Layers:
    """The mean over runs (seeds) of each pair and layer; all runs must have the same."""
    runs = list(runs)
    if not runs:
        raise UserError("the mean of no similarities at all")
    shape = [{pair: sorted(values) for pair, values in run.items()} for run in runs]
    if any(other != shape[0] for other in shape[1:]):
        raise UserError("similarities of different pairs or layers cannot be averaged over seeds")
    return {
        pair: {layer: float(np.mean([run[pair][layer] for run in runs])) for layer in values}
        for pair, values in runs[0].items()
    }


def read_similarity(path: str | Path, index: str, control: str = "none") -> Layers:
    """One index of a similarity file, as measured or under a control; a file without that column has no controls."""
    layers: Layers = {}
    others = set()
    try:
        with Path(path).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row.get("control", "none") != control:
                    continue
                others.add(row["index"])
                if row["index"] == index:
                    layers.setdefault(row["pair"], {})[int(row["layer"])] = float(row["value"])
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror}") from None
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path}: no file with columns pair,layer,index,value ({error})") from None
    if not layers:
        which = "" if control == "none" else f" under control '{control}'"
        raise UserError(f"{path}: no index '{index}'{which}; there are {', '.join(sorted(others)) or 'none'}")
    return layers


def _common(layers: Layers) -> list[int]:
    found = [set(values) for values in layers.values()]
    return sorted(set.intersection(*found)) if found else []


def _target(pair: str, source: str) -> str:
    left, _, right = pair.partition("-")
    if left != source or not right:
        raise UserError(f"pair '{pair}' does not begin with the source language: {source}-… expected")
    return right
