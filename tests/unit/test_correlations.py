"""Correlation of transfer and similarity."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.analysis.correlations import (
    Correlation,
    by_layer,
    correlate,
    gaps,
    mean_layers,
    over_layers,
    read_similarity,
    spearman,
)
from crossalign.errors import UserError

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
    with pytest.raises(UserError, match=r"no index 'cka' under the control 'length'; there are none"):
        read_similarity(path, "cka", "length")
    path.write_text(
        "pair,layer,index,control,value,sampling,lead_sampling\n"
        "en-fr,0,cka,none,0.5,0.01,0\nen-fr,0,cka,length,0.25,,\nen-fr,0,anc,strangers,0.125,,\n"
    )
    assert read_similarity(path, "cka") == {"en-fr": {0: 0.5}}
    assert read_similarity(path, "cka", "length") == {"en-fr": {0: 0.25}}
    with pytest.raises(UserError, match=r"no index 'cka' under the control 'strangers'; there are anc"):
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
