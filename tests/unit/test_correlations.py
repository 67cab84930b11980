"""Correlation of transfer and similarity."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from crossalign.analysis.correlations import Correlation, bootstrap_spearman, spearman, spearman_interval
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


def test_spearman_by_hand():
    # Differences of ranks 0, 1, 1, 0, 0: rho = 1 - 6 * 2 / (5 * 24).
    found = spearman([1, 2, 3, 4, 5], [10, 30, 20, 40, 50])
    assert found.rho == pytest.approx(0.9)
    assert found.p == pytest.approx(0.03738607346849863)
    assert spearman([1, 2, 3], [7, 6, 5]) == Correlation(-1.0, 0.0, 3)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]).rho) and math.isnan(spearman([1, 2], [1, 2]).p)


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


def test_the_bootstrap_is_fixed_and_all_layers_see_the_same_languages():
    rng = np.random.default_rng(3)
    first, others = rng.normal(size=16), rng.normal(size=(3, 16))
    found = bootstrap_spearman(first, others)
    assert found.shape == (3, 1000)
    assert (found == bootstrap_spearman(first, others)).all()
    assert (found[1:2] == bootstrap_spearman(first, others[1:2])).all()
    # The same values in another unit: the same ranks.
    assert (found == bootstrap_spearman(first * 7 + 1, np.exp(others))).all()


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


def test_the_interval_of_normal_data_has_the_width_of_the_theory():
    rng = np.random.default_rng(8)
    first = rng.normal(size=400)
    second = 0.6 * first + 0.8 * rng.normal(size=400)
    low, high = spearman_interval(first, second)
    rho = spearman(first, second).rho
    # Fisher's transformation, with the variance of Bonett and Wright (2000).
    error = 1.96 * math.sqrt((1 + rho**2 / 2) / 397)
    assert (low, high) == pytest.approx(
        (math.tanh(math.atanh(rho) - error), math.tanh(math.atanh(rho) + error)), abs=0.02
    )
