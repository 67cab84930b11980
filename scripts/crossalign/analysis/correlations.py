"""Rank correlations, and their values over resampled points (`align-predict`, section 7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossalign.analysis.significance import CONFIDENCE, ITERATIONS, resamples
from crossalign.runtime.errors import UserError

# How many resamples are drawn at most for each one that is kept: where hardly any can be kept, there is no bootstrap.
_DRAWS = 100


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho, its two-sided p-value (t distribution with n - 2 degrees of freedom), and n."""

    rho: float
    p: float
    n: int


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
    # Takes a second to import.
    from scipy.stats import spearmanr

    found = spearmanr(*values)
    return Correlation(float(found.statistic), float(found.pvalue), count)


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
