"""Correlation of transfer and similarity."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.analysis.correlations import (
    Correlation,
    bootstrap_spearman,
    by_layer,
    correlate,
    gaps,
    mean_layers,
    over_layers,
    read_similarity,
    spearman,
    spearman_interval,
)
from crossalign.analysis.intervals import resamples
from crossalign.runtime.errors import UserError

numbers = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=20)


@given(numbers)
@settings(deadline=None)
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


SCORES = {"en": 90.0, "fr": 85.0, "ru": 70.0, "ar": 60.0, "de": 80.0}


def test_gap_and_sign():
    assert gaps(SCORES, "en") == {"fr": 5.0, "ru": 20.0, "ar": 30.0, "de": 10.0}
    # More similar, smaller gap: positive.
    alike = {"fr": 0.9, "de": 0.8, "ru": 0.5, "ar": 0.4}
    assert correlate(alike, SCORES, "en").rho == pytest.approx(1.0)
    assert correlate({lang: -value for lang, value in alike.items()}, SCORES, "en").rho == pytest.approx(-1.0)
    assert (correlate(alike, SCORES, "en").n, correlate(alike, SCORES, "en", with_source=True).n) == (4, 5)
    # A language that transfers better than the source itself lies above it.
    scores = {**SCORES, "fr": 95.0}
    assert correlate(alike, scores, "en", with_source=True).rho == pytest.approx(0.9)
    with pytest.raises(UserError, match="no score for the source language 'sv'; there are en, fr"):
        gaps(SCORES, "sv")
    with pytest.raises(UserError, match="no score for sv, fi; correlate only"):
        correlate({"sv": 0.1, "fi": 0.3}, SCORES, "en")


def layers():
    """Layer 0 against the scores, layer 1 with them, layer 2 mixed."""
    table = {"fr": (0.1, 0.9, 0.5), "de": (0.2, 0.8, 0.8), "ru": (0.5, 0.5, 0.3), "ar": (0.9, 0.4, 0.2)}
    return {f"en-{lang}": dict(enumerate(values)) for lang, values in table.items()}


def test_layers_and_their_mean():
    found = by_layer(layers(), SCORES, "en")
    assert [round(found[k].rho, 6) for k in range(3)] == [-1.0, 1.0, 0.8]
    # Means over layers 1 and 2: fr 0.7, de 0.8, ru 0.4, ar 0.3. With layer 0, fr would come second to last.
    assert over_layers(layers(), SCORES, "en").rho == pytest.approx(0.8)
    with pytest.raises(UserError, match="pair 'en-fr' does not begin with the source language: ru-"):
        by_layer(layers(), SCORES, "ru")
    with pytest.raises(UserError, match="no layer above the embeddings"):
        over_layers({"en-fr": {0: 0.5}}, SCORES, "en")


def test_mean_over_seeds():
    other = {pair: {k: value + 0.1 for k, value in values.items()} for pair, values in layers().items()}
    assert mean_layers([layers(), other])["en-ru"] == pytest.approx({0: 0.55, 1: 0.55, 2: 0.35})
    del other["en-fr"]
    with pytest.raises(UserError, match="different pairs or layers"):
        mean_layers([layers(), other])
    with pytest.raises(UserError, match="the mean of no similarities"):
        mean_layers([])


def test_reading(tmp_path):
    path = tmp_path / "pud.csv"
    path.write_text("pair,layer,index,value\nen-fr,0,cka,0.5\nen-fr,0,anc,0.1\nen-fr,1,cka,0.75\nen-ru,0,cka,0.25\n")
    assert read_similarity(path, "cka") == {"en-fr": {0: 0.5, 1: 0.75}, "en-ru": {0: 0.25}}
    with pytest.raises(UserError, match=r"pud.csv: no index 'cca'; there are anc, cka"):
        read_similarity(path, "cca")
    with pytest.raises(UserError, match=r"no index 'cka' under control 'length'; there are none"):
        read_similarity(path, "cka", "length")
    path.write_text(
        "pair,layer,index,control,value,sampling,lead_sampling\n"
        "en-fr,0,cka,none,0.5,0.01,0\nen-fr,0,cka,length,0.25,,\nen-fr,0,anc,strangers,0.125,,\n"
    )
    assert read_similarity(path, "cka") == {"en-fr": {0: 0.5}}
    assert read_similarity(path, "cka", "length") == {"en-fr": {0: 0.25}}
    with pytest.raises(UserError, match=r"no index 'cka' under control 'strangers'; there are anc"):
        read_similarity(path, "cka", "strangers")
    with pytest.raises(UserError, match=r"none.csv: cannot read"):
        read_similarity(tmp_path / "none.csv", "cka")
    path.write_text("pair,layer\nen-fr,0\n")
    with pytest.raises(UserError, match="no file with columns pair,layer,index,value"):
        read_similarity(path, "cka")


def test_correlation_finds_a_planted_relation():
    rng = np.random.default_rng(0)
    score = {"en": 90.0} | {f"l{k}": float(value) for k, value in enumerate(rng.uniform(40, 80, 16))}
    alike = {lang: value / 100 + rng.normal(0, 0.02) for lang, value in score.items() if lang != "en"}
    found = correlate(alike, score, "en")
    assert found.n == 16 and found.rho > 0.9 and found.p < 1e-5
