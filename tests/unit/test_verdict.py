"""The rule by which our numbers are judged."""

import pytest

from crossalign.catalog.stand_in import ARTIFICIAL, OTHER_MODEL
from crossalign.results.published import Printed
from crossalign.results.values import Value
from crossalign.results.verdict import (
    CLOSE,
    CORRELATION,
    DIFFERS,
    DOUBTFUL,
    LABELS,
    NOT_RUN,
    REPRODUCED,
    SHARE,
    Judge,
)


def ours(mean, std=0.3, n=5, wanted=5):
    return Value(mean, std, n, wanted)


@pytest.mark.parametrize(
    ("paper", "printed", "value", "expected"),
    [
        # adjust states no spread: se = sqrt(2 * 0.3^2 / 5) = 0.19; reproduced up to 2 se + 0.005 = 0.384.
        ("adjust", "70.00", ours(70.38), REPRODUCED),
        ("adjust", "70.00", ours(70.39), CLOSE),
        ("adjust", "70.00", ours(71.01), DIFFERS),
        # No spread at all: the printed digits decide, then the margin.
        ("adjust", "70.00", ours(70.005, 0.0), REPRODUCED),
        ("adjust", "70", ours(70.5, 0.0), REPRODUCED),
        # Wild seeds excuse no more than the cap of two points, and then four.
        ("adjust", "70.00", ours(72.0, 30.0), REPRODUCED),
        ("adjust", "70.00", ours(72.1, 30.0), CLOSE),
        ("adjust", "70.00", ours(74.1, 30.0), DIFFERS),
        # align-predict: parsing has a median std of 0.34; with one seed it stands for ours: se = 0.3725.
        ("align-predict", "70.00", ours(70.74, None, 1, 1), REPRODUCED),
        ("align-predict", "70.00", ours(70.76, None, 1, 1), CLOSE),
        ("align-predict", "70.00", ours(71.50, None, 1, 1), DIFFERS),
        # The talk shows the same numbers.
        ("talk", "70.0", ours(70.78, None, 1, 1), REPRODUCED),
        ("adjust", "70.00", Value(None, None, 0, 5, ("tuned/x",)), NOT_RUN),
        ("adjust", "", ours(70.0), DOUBTFUL),
    ],
)
def test_numbers(paper, printed, value, expected):
    assert Judge(paper, "parsing").number(Printed(printed), value).label == expected


def test_a_difference_of_two_means_has_the_spread_of_both():
    # se of a single mean: 0.34 * sqrt(2 / 5); of a difference sqrt(2) times that.
    for terms, expected in ((1, CLOSE), (2, REPRODUCED)):
        judge = Judge("align-predict", "parsing", terms=terms)
        assert judge.number(Printed("-5.50"), Value(-5.0, None, 5, 5)).label == expected


@pytest.mark.parametrize(
    ("judge", "printed", "measured", "expected"),
    [
        *(
            (Judge("anc", scale=SHARE).number, "0.79", Value(mean, 0.0, 1, 1), label)
            for mean, label in ((0.794, REPRODUCED), (0.799, CLOSE), (0.801, DIFFERS))
        ),
        *(
            (Judge("anc", scale=CORRELATION).number, "0.76", Value(mean, 0.0, 1, 1), label)
            for mean, label in ((0.764, REPRODUCED), (0.72, CLOSE), (0.70, DIFFERS))
        ),
        # Read off a curve, with an error of 0.02.
        *(
            (Judge("anc").reading, "0.50", Value(mean, None, 1, 1), label)
            for mean, label in ((0.5, REPRODUCED), (0.53, REPRODUCED), (0.531, CLOSE), (0.57, CLOSE), (0.58, DIFFERS))
        ),
        (Judge("anc").count, "270000000", 277453056, CLOSE),
        (Judge("anc").count, "3500000000", 3475929600, REPRODUCED),
        (Judge("anc").count, "12", 12, REPRODUCED),
        (Judge("anc").count, "100", 112, DIFFERS),
        (Judge("talk").words, "Latin", "latin", REPRODUCED),
        (Judge("talk").words, "Austroasiatic", "Austroasiatic/Vietic", CLOSE),
        (Judge("talk").words, "Kartvelian", "Turkic", DIFFERS),
        (Judge("talk").words, "Latin", "", NOT_RUN),
    ],
)
def test_shares_correlations_readings_counts_and_words(judge, printed, measured, expected):
    assert judge(Printed(printed, error=0.02), measured).label == expected


def test_not_judged():
    judge = Judge("adjust")
    assert judge.number(None, ours(70.0)).label == ""
    assert judge.number(Printed("70", doubt="two copies differ"), ours(70.0)).label == DOUBTFUL
    for what, label in (
        (ARTIFICIAL, "not judged (artificial languages)"),
        (OTHER_MODEL, "not judged (another model)"),
    ):
        judge = Judge("adjust", stand_in=what)
        assert label in LABELS
        assert judge.number(Printed("70", doubt="two copies differ"), ours(70.0)).label == label
        assert judge.words(Printed("Latin"), "Latin").label == label
        assert judge.reading(Printed("0.5"), ours(0.5)).label == label
        assert judge.count(Printed("12"), 12).label == label
        assert judge.number(Printed("70"), Value(wanted=5)).label == NOT_RUN


def test_a_mean_that_its_rows_do_not_give_is_judged_by_the_nearer_reading():
    verdict = Judge("adjust").number(Printed("53.23", recomputed=52.47), ours(52.5, 0.1))
    assert verdict.label == REPRODUCED
    assert "mean of the printed rows" in verdict.reason
    assert Judge("adjust").number(Printed("53.23", recomputed=52.47), ours(53.2, 0.1)).reason == ""


def test_partial_runs_say_so():
    assert "2 of 5 runs" in Judge("adjust").number(Printed("70"), ours(70.0, n=2)).reason
