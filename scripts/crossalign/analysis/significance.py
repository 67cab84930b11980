"""Tests of differences between systems (`adjust`, section 7), and the counts that they and the intervals rest on.

Everything rests on counts per example, so a test never decodes or scores twice. A table of counts has one row per
example and two columns (right, total) for a share, or three (right, predicted, gold) for an F1; with seeds in front:
seeds x examples x columns. `score` turns sums of such rows into percent.

Intervals: a resample is a row of weights, how often each example was drawn, and its scores are one product of weights
and counts. All sets of the same size share their resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crossalign.runtime.errors import UserError

CONFIDENCE = 0.95
ITERATIONS = 1000
# Resamples at a time: the weights of so many and a few thousand examples stay in the cache.
_BLOCK = 64


class Counted(Protocol):
    """A task: its name and, by metric, the counts of one row of predictions."""

    name: str
    counts: Mapping[str, Callable[[Mapping[str, Any]], Sequence[float]]]


@dataclass(frozen=True)
class Test:
    """Difference of the scores (first minus second), two-sided p-value, number of units, smallest p possible."""

    # The name would make pytest look for tests here.
    __test__ = False

    difference: float
    p: float
    n: int
    smallest_p: float


def example_counts(task: Counted, rows: Sequence[Mapping[str, Any]], metric: str) -> np.ndarray:
    """Counts of each example from rows of predictions: examples x 2 for shares, examples x 3 for F1."""
    if metric not in task.counts:
        raise UserError(f"no counts of '{metric}' for task '{task.name}'; there are {', '.join(task.counts)}")
    if not rows:
        raise UserError(f"no predictions to take {task.name} {metric} from")
    return np.array([task.counts[metric](row) for row in rows], dtype=np.float64)


def score(sums: np.ndarray) -> np.ndarray:
    """Percent, from sums of counts (last axis): right / total, or 2 right / (predicted + gold); 0 of nothing is 0."""
    if sums.shape[-1] == 2:
        part, whole = sums[..., 0], sums[..., 1]
    else:
        part, whole = 2 * sums[..., 0], sums[..., 1] + sums[..., 2]
    return 100.0 * np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


def paired_t_test(first: np.ndarray, second: np.ndarray) -> Test:
    """Paired t-test over examples, each example's value averaged over the seeds first (NLI, QA).

    Takes seeds x examples, one value (0 to 100) per example; the two systems may have different numbers of seeds. No
    difference anywhere: p = 1. The same difference everywhere: p = 0.
    """
    for values in (first, second):
        if np.ndim(values) != 2 or 0 in np.shape(values):
            raise UserError(f"a t-test needs values of seeds x examples, not an array of shape {np.shape(values)}")
        if not np.isfinite(values).all():
            raise UserError("a t-test needs finite values")
    means = [np.asarray(values, dtype=np.float64).mean(axis=0) for values in (first, second)]
    if means[0].shape != means[1].shape:
        raise UserError(f"a paired t-test needs the same examples: {len(means[0])} against {len(means[1])}")
    difference = means[0] - means[1]
    count = len(difference)
    if count < 2:
        raise UserError("a t-test needs at least two examples")
    mean = float(difference.mean())
    # Averages over seeds carry rounding; a difference or a spread of that size is none.
    rounding = 1e-12 * float(np.abs(means).max())
    if float(difference.std(ddof=1)) <= rounding:
        return Test(0.0, 1.0, count, 0.0) if abs(mean) <= rounding else Test(mean, 0.0, count, 0.0)
    # Takes a second to import.
    from scipy.stats import ttest_rel

    return Test(mean, float(ttest_rel(*means).pvalue), count, 0.0)


def example_values(counts: np.ndarray) -> np.ndarray:
    """The score of every example for itself: what the t-test compares."""
    return score(np.asarray(counts, dtype=np.float64))


def permutation_test(first: np.ndarray, second: np.ndarray, iterations: int = 1000, seed: int = 1) -> Test:
    """Permutation test of the score over the concatenated predictions of all seeds (NER).

    In each iteration the two systems swap their predictions of a sentence with probability 1/2, each seed's
    prediction for itself. p = (1 + hits) / (1 + iterations), a hit
    being an absolute difference at least as large as the observed one. Both arrays are seeds x sentences x columns of
    whole numbers.
    """
    first, second = (np.asarray(counts, dtype=np.float64) for counts in (first, second))
    if first.shape != second.shape or first.ndim != 3 or 0 in first.shape:
        raise UserError(
            "a permutation test needs two arrays of seeds x sentences x counts of the same shape, "
            f"not {first.shape} and {second.shape}"
        )
    if iterations < 1:
        raise UserError(f"a permutation test of {iterations} iterations: at least 1 is needed")
    change = second - first
    change = change.reshape(-1, change.shape[-1])
    totals = [counts.sum(axis=(0, 1)) for counts in (first, second)]
    observed = float(score(totals[0]) - score(totals[1]))
    rng = np.random.default_rng(seed)
    hits = 0
    for start in range(0, iterations, 64):
        size = min(64, iterations - start)
        bits = np.frombuffer(rng.bytes(size * -(-len(change) // 8)), dtype=np.uint8).reshape(size, -1)
        swapped = np.unpackbits(bits, axis=1, count=len(change)).astype(np.float64) @ change
        differences = np.abs(score(totals[0] + swapped) - score(totals[1] - swapped))
        # Counts are whole numbers, so equal scores differ by rounding at most.
        hits += int((differences >= abs(observed) - 1e-9).sum())
    return Test(observed, (1 + hits) / (1 + iterations), len(change), 1.0 / (1 + iterations))


def smallest_p_paired_seeds(seeds: int) -> float:
    """The smallest two-sided p of an exact test that swaps two systems seed by seed: 5 seeds cannot go below 1/16."""
    return min(1.0, 2.0 / 2**seeds)


def resamples(examples: int, iterations: int, seed: int) -> Iterator[np.ndarray]:
    """Weights of resamples, some at a time: resamples x examples, how often each example was drawn."""
    rng = np.random.default_rng(seed)
    for start in range(0, iterations, _BLOCK):
        size = min(_BLOCK, iterations - start)
        drawn = rng.integers(0, examples, (size, examples))
        drawn += examples * np.arange(size)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=size * examples).reshape(size, examples).astype(np.float64)


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
