"""Bootstrap confidence intervals of scores over sentences (or questions, or sentence pairs).

A score is a quotient of sums of counts per example, so a resample is a row of weights (how often each example was
drawn) and its scores are one product of weights and counts. Nothing is decoded or scored again, and all sets of the
same size share their resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crossalign.analysis.significance import Counted, example_counts, score
from crossalign.runtime.errors import UserError

CONFIDENCE = 0.95
ITERATIONS = 1000
# Resamples at a time: the weights of so many and a few thousand examples stay in the cache.
_BLOCK = 64


def resamples(examples: int, iterations: int, seed: int) -> Iterator[np.ndarray]:
    """Weights of resamples, some at a time: resamples x examples, how often each example was drawn."""
    rng = np.random.default_rng(seed)
    for start in range(0, iterations, _BLOCK):
        size = min(_BLOCK, iterations - start)
        drawn = rng.integers(0, examples, (size, examples))
        drawn += examples * np.arange(size)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=size * examples).reshape(size, examples).astype(np.float64)


def bootstrap_interval(
    counts: np.ndarray, confidence: float = CONFIDENCE, iterations: int = ITERATIONS, seed: int = 1
) -> tuple[float, float]:
    """Percentile interval of the score over resampled examples; with seeds, of the mean over seeds.

    Takes examples x columns or seeds x examples x columns. All seeds see the same sample of examples, so the interval
    speaks about other sentences, not about other seeds.
    """
    counts = np.asarray(counts, dtype=np.float64)
    counts = counts[None] if counts.ndim == 2 else counts
    if counts.ndim != 3 or 0 in counts.shape:
        raise UserError(f"a bootstrap needs counts of examples, not an array of shape {counts.shape}")
    if not 0.0 < confidence < 1.0 or iterations < 1:
        raise UserError(
            f"a bootstrap of confidence {confidence} with {iterations} iterations: between 0 and 1; at least 1"
        )
    seeds, examples, columns = counts.shape
    table = counts.transpose(1, 0, 2).reshape(examples, seeds * columns)
    values = [
        score((weights @ table).reshape(len(weights), seeds, columns)).mean(axis=1)
        for weights in resamples(examples, iterations, seed)
    ]
    return _edges(np.concatenate(values), confidence)


def score_intervals(
    task: Counted,
    sets: Mapping[str, Sequence[Mapping[str, Any]]],
    confidence: float = CONFIDENCE,
    iterations: int = ITERATIONS,
    seed: int = 1,
) -> dict[str, dict[str, float]]:
    """By set: `<metric>_low` and `<metric>_high` of every metric of the task, from rows of predictions.

    A set's interval depends on its own rows only, not on the sets beside it.
    """
    by_size: dict[int, list[str]] = {}
    for name, rows in sets.items():
        by_size.setdefault(len(rows), []).append(name)
    found: dict[str, dict[str, float]] = {name: {} for name in sets}
    for examples, names in by_size.items():
        if not examples:
            continue
        cells = [(name, metric) for name in names for metric in task.counts]
        tables = [example_counts(task, sets[name], metric) for name, metric in cells]
        stops = np.cumsum([table.shape[1] for table in tables])[:-1]
        everything = np.concatenate(tables, axis=1)
        sums = np.concatenate([weights @ everything for weights in resamples(examples, iterations, seed)])
        for (name, metric), part in zip(cells, np.split(sums, stops, axis=1), strict=True):
            low, high = _edges(score(part), confidence)
            found[name] |= {f"{metric}_low": low, f"{metric}_high": high}
    return found


def _edges(values: np.ndarray, confidence: float) -> tuple[float, float]:
    share = (1.0 - confidence) / 2
    low, high = np.quantile(values, (share, 1.0 - share))
    return float(low), float(high)
