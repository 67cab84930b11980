"""Correlation of transfer and similarity."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from crossalign.analysis.correlations import bootstrap_spearman, spearman, spearman_interval
from crossalign.analysis.significance import resamples
from crossalign.runtime.errors import UserError

numbers = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=20)


@given(numbers)
@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_spearman_equals_scipy(points):
    left, right = zip(*points, strict=True)
    found, want = spearman(left, right), scipy.stats.spearmanr(left, right)
    assert found.n == len(points)
    assert found.rho == pytest.approx(want.statistic, nan_ok=True, abs=1e-12)
    if abs(found.rho) < 1 - 1e-9:
        assert found.p == pytest.approx(want.pvalue, nan_ok=True, abs=1e-9)


def test_spearman_refuses():
    with pytest.raises(UserError, match="rank correlation of 2 with 3 values"):
        spearman([1, 2], [1, 2, 3])
    with pytest.raises(UserError, match="not all finite"):
        spearman([1, 2, math.nan], [1, 2, 3])


def plain_bootstrap(first, others, iterations, seed):
    """One resample after another, each ranked on its own."""
    kept = []
    for weights in resamples(len(first), 100 * iterations, seed):
        for row in weights.astype(int):
            places = np.repeat(np.arange(len(first)), row)
            rhos = [spearman(np.take(first, places), np.take(other, places)).rho for other in others]
            if len(set(places)) >= 3 and not np.isnan(rhos).any():
                kept.append(rhos)
            if len(kept) == iterations:
                return np.transpose(kept)
    return None


@pytest.mark.parametrize("points", [3, 4, 16])
def test_the_bootstrap_equals_a_plain_loop(points):
    rng = np.random.default_rng(points)
    first = rng.integers(0, 8, points) + np.arange(points)  # some ties
    others = rng.integers(0, 2 * points, (4, points)) + 0.25 * first
    found = bootstrap_spearman(first, others, 200, seed=5)
    assert found.shape == (4, 200) and np.abs(found).max() <= 1.0
    assert found == pytest.approx(plain_bootstrap(first, others, 200, 5), abs=1e-12)


def test_resamples_that_have_no_correlation_are_drawn_again():
    # Without the first point the right side is constant; that happens to a third of all resamples.
    found = bootstrap_spearman([1, 2, 3, 4, 5], [[2, 1, 1, 1, 1]])
    assert np.isfinite(found).all() and (found < 0).all()


def test_no_bootstrap_where_there_is_no_correlation():
    assert bootstrap_spearman([1, 2], [[1, 2]]) is None
    assert bootstrap_spearman([1, 1, 1, 1], [[1, 2, 3, 4]]) is None
    assert bootstrap_spearman([1, 2, 3, 4], [[1, 2, 3, 4], [5, 5, 5, 5]]) is None
    assert spearman_interval([1, 2], [1, 2]) is None
    # Each layer needs another language: hardly any resample has all of them.
    assert bootstrap_spearman(np.arange(16), np.eye(16), iterations=3) is None


def test_the_interval_of_a_correlation():
    first, second = [1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 5, 4, 7, 6, 8]
    low, high = spearman_interval(first, second)
    rhos = np.sort(bootstrap_spearman(first, [second])[0])
    assert rhos[24] <= low <= rhos[25] and rhos[974] <= high <= rhos[975]
    assert low < spearman(first, second).rho < high <= 1.0
    assert spearman_interval(first, first) == (1.0, 1.0)
