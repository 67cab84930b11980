"""Quantities of claims, worked out by hand: shares of a level, changes, spans, means of what the same models made."""

import math

import pytest

from crossalign.results.claims.curves import changes, kept, spans
from crossalign.results.claims.evidence import Outside
from crossalign.results.claims.groups import count
from crossalign.results.claims.predicates import Facts, Truth, negative
from crossalign.results.claims.quantities import average, together
from crossalign.results.claims.values import Curve, Group, Number


def line(*values, std=0.0, n=1, scale="similarity", leads=None):
    points = {layer: Number(value, scale, std, n, n) for layer, value in enumerate(values)}
    return lambda evidence: Curve(points, leads or {})


def of(**members):
    return together(members)


def test_a_share_has_the_relative_errors_of_both():
    # Means over layers 1 and 2 of 0.4 and 0.5; errors of 0.02 and 0.01, that is 5 % and 2 % of them.
    base, tuned = line(9, 0.4, 0.6, std=0.02, n=4), line(9, 0.3, 0.5, std=0.04, n=4)
    [(name, share)] = kept(base, of(pos=tuned), 1, 2)(None)
    assert name == "pos" and share.value == pytest.approx(0.8)
    assert share.seed_error == pytest.approx(0.8 * math.hypot(0.05, 0.02))
    with pytest.raises(Outside, match="no similarity in layers 1 to 2"):
        kept(line(0.5, -0.1, 0.0), of(pos=tuned), 1, 2)(None)


def test_changes_have_no_sign():
    """A curve that goes above and below another changes, though its mean does not."""
    before, after = line(0.5, 0.5, 0.5), line(0.5, 0.7, 0.3, std=0.06, n=3)
    found = changes(before, after, 1, 2)(None)
    assert found.value == pytest.approx(0.2)
    # One pretrained model takes nothing from the three runs.
    assert (found.n, found.wanted) == (3, 3)
    assert found.seed_error == pytest.approx(0.06 / math.sqrt(3))


def test_spans_keep_the_noise_of_languages():
    """From the least to the largest value of some layers, as certain as the leads of the two."""
    leads = {1: (None, 0.03), 2: (None, 0.0), 3: (None, 0.04)}
    curve = line(0.0, 0.2, 0.9, 0.5, scale="correlation", leads=leads)
    found = spans(of(whole=curve, part=curve), 1, 3)(None).members["whole"]
    assert found.value == pytest.approx(0.7) and found.error == pytest.approx(0.03)
    [(_, upper)] = spans(of(part=line(0.9, 0.2, 0.8, 0.5, scale="correlation", leads=leads)), 1, 3)(None)
    assert upper.value == pytest.approx(0.6)
    # Compared with another span, that noise still counts.
    assert found.minus(upper).error == pytest.approx(math.hypot(0.03, 0.03))


def test_a_mean_over_languages_of_the_same_models_is_no_surer_than_they_are():
    numbers = {"fr": Number(1.0, std=0.4, n=4), "de": Number(3.0, std=0.8, n=4)}
    found = average(lambda evidence: Group(numbers))(None)
    assert found.value == 2.0 and found.seed_error == pytest.approx((0.2 + 0.4) / 2)
    assert Group(numbers).mean().seed_error == pytest.approx(math.hypot(0.2, 0.4) / 2)


@pytest.mark.parametrize(
    ("unclear", "printed", "expected"),
    [(0, "2", "YES"), (0, "3", "NO"), (1, "2", "UNCLEAR"), (1, "3", "UNCLEAR"), (1, "4", "NO")],
)
def test_counts_with_doubt(unclear, printed, expected):
    """Two members below zero, and some of which noise does not tell."""
    values = [-5.0, -5.0, 5.0] + [0.0] * unclear
    group = Group({str(place): Number(value, std=1.0, n=4) for place, value in enumerate(values)})
    facts = Facts({"g": group}, printed)
    assert count("g", negative, doubtful=True).ask(facts).truth == Truth[expected]
    # Without doubt what is unclear counts as no member.
    assert count("g", negative).ask(facts).truth == (Truth.YES if printed == "2" else Truth.NO)
