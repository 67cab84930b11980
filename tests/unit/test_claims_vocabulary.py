"""The vocabulary of claims: three answers, the noise of seeds, tolerances, and quantities worked out by hand."""

import math

import pytest

from crossalign.papers.adjust.claims_studies import area
from crossalign.results.claims.curves import distance, kept, spans
from crossalign.results.claims.evidence import NotRun, Outside
from crossalign.results.claims.groups import count, every, most, only, some
from crossalign.results.claims.predicates import (
    Facts,
    Truth,
    at_least,
    at_most,
    between,
    correlates,
    equals,
    greater,
    near,
    negative,
    positive,
)
from crossalign.results.claims.quantities import average
from crossalign.results.claims.shapes import keeps_rising, peaks_at, peaks_within, rises, rises_then_falls
from crossalign.results.claims.tolerances import tolerance, tolerances
from crossalign.results.claims.values import Curve, Group, Number
from crossalign.runtime.errors import UserError

YES, NO, UNCLEAR = Truth.YES, Truth.NO, Truth.UNCLEAR


def number(value, std=0.0, n=1, **more):
    return Number(value, std=std, n=n, **more)


def curve(*values, std=0.0, n=1, leads=None, scale="similarity"):
    return Curve({layer: Number(value, scale, std, n, n) for layer, value in enumerate(values)}, leads or {})


def group(**values):
    return Group({name: number(value, 1.0, 4) for name, value in values.items()})


def ask(predicate, printed="", **values):
    return predicate.ask(Facts(values, printed)).truth


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # The standard error is 1 / sqrt(4); Student's t with three degrees of freedom is 3.182.
        (number(1.60, 1.0, 4), YES),
        (number(1.58, 1.0, 4), UNCLEAR),
        (number(-1.60, 1.0, 4), NO),
        # Of three runs 4.303 standard errors are needed: 2.65 are not enough.
        (number(2.65, math.sqrt(3), 3), UNCLEAR),
        (number(4.31, math.sqrt(3), 3), YES),
        # A single run has the declared spread of 0.5; a difference sqrt(2) times that. 1.96 of them count.
        (Number(0.99), YES),
        (Number(0.97), UNCLEAR),
        (Number(1.38, terms=2), UNCLEAR),
        (Number(1.40, terms=2), YES),
        # A test over examples goes before the seeds.
        (number(0.1, 1.0, 4, significant=True), YES),
        (number(5.0, 1.0, 4, significant=False), UNCLEAR),
        (number(-0.1, 1.0, 4, significant=True), NO),
        # The noise of other sentences counts as well: 1.96 * 0.5 = 0.98.
        (number(0.97, 0.0, sampling=0.5), UNCLEAR),
        (number(0.99, 0.0, sampling=0.5), YES),
    ],
)
def test_signs(value, expected):
    assert ask(positive("a"), a=value) == expected
    assert ask(negative("a"), a=value) == 2 - expected


def test_differences():
    left, right = number(3.0, 0.6, 4), number(2.0, 0.8, 4)
    # Errors of 0.3 and 0.4 make 0.5; Welch: 0.25^2 / ((0.09^2 + 0.16^2) / 3) = 5.564 degrees of freedom, t = 2.494.
    difference = left.minus(right)
    assert difference.error == pytest.approx(0.5)
    assert difference.seed_freedom == pytest.approx(5.5638, abs=1e-3)
    assert difference.noise == pytest.approx(0.5 * 2.494, abs=1e-3)
    assert ask(greater("a", "b"), a=number(3.24, 0.6, 4), b=right) == UNCLEAR
    assert ask(greater("a", "b"), a=number(3.25, 0.6, 4), b=right) == YES
    assert ask(greater("b", "a"), a=number(3.25, 0.6, 4), b=right) == NO
    # Where one side has no noise the other's degrees of freedom are all that there are.
    assert left.minus(number(1.0)).seed_freedom == pytest.approx(3)
    # Groups: of the members that both have.
    assert {name: one.value for name, one in group(es=3, ru=1).minus(group(es=1, vi=1))} == {"es": 2}


@pytest.mark.parametrize(
    ("predicate", "printed", "answers"),
    [
        # One point and half of the last digit: 1.05, and twice that.
        (near("a", "points"), "2.5", {2.5: YES, 3.54: YES, 3.56: UNCLEAR, 4.59: UNCLEAR, 4.61: NO, 0.39: NO}),
        (near("a", "about", relative=True), "5000", {5495: YES, 5990: UNCLEAR, 6100: NO}),
        (near("a", "exact"), "178", {177.85: YES, 178.6: NO}),
        (at_least("a", 1.0), "", {1.0: YES}),
        (at_least("a", "harmless", -1), "", {-0.9: YES}),
        (at_most("a", "separation", -1), "", {-0.02: YES}),
        (at_most("a", "near_zero"), "", {0.2: NO}),
        (at_most("a"), "0.3", {0.31: YES, 0.36: NO}),
        (at_least("a"), "0.3", {0.29: YES, 0.24: NO}),
        (between("a", 7, 9, "points"), "", {9.9: YES, 5.5: UNCLEAR, 12: NO}),
        (equals("a"), "5", {5: YES, 6: NO}),
    ],
)
def test_amounts(predicate, printed, answers):
    assert {value: ask(predicate, printed, a=number(value)) for value in answers} == answers


@pytest.mark.parametrize(
    ("rho", "ends", "p", "expected"),
    [
        *((0.5, (None, None), 0.01, YES), (0.5, (None, None), 0.06, UNCLEAR)),
        *((-0.9, (None, None), 0.001, NO), (-0.1, (None, None), 0.7, UNCLEAR)),
        # Other languages would give another sign: the interval forbids a yes and a no.
        *((0.5, (-0.1, 0.8), 0.01, UNCLEAR), (-0.5, (-0.8, 0.1), 0.01, UNCLEAR), (0.5, (0.1, 0.8), 0.01, YES)),
    ],
)
def test_correlations(rho, ends, p, expected):
    assert ask(correlates("rho", "p"), rho=number(rho, low=ends[0], high=ends[1]), p=Number(p, "p")) == expected


@pytest.mark.parametrize(
    ("values", "expected"), [((1, 2, 9, 2, 1), YES), ((1, 9, 2, 2, 1), YES), ((9, 1, 2, 2, 1), NO)]
)
def test_peaks(values, expected):
    assert ask(peaks_at("a", 2), a=curve(*values)) == expected
    assert ask(peaks_within("a", 1, 3), a=curve(*values)) == expected


def test_a_peak_is_as_sure_as_its_lead():
    """A lead of 0.00001 with a deviation of 0.01 is unclear, wherever the peak is."""
    near_tie = (0.79999, 0.5, 0.5, 0.80, 0.5)
    for layer in (0, 3):
        assert ask(peaks_at("a", layer), a=curve(*near_tie, std=0.01)) == UNCLEAR
        assert ask(peaks_at("a", layer), a=curve(*near_tie, std=0.01, n=3)) == UNCLEAR
    assert ask(peaks_at("a", 3), a=curve(0.90, 0.5, 0.5, 0.79, 0.5, std=0.01)) == NO
    assert ask(peaks_at("a", 0), a=curve(0.90, 0.5, 0.5, 0.79, 0.5, std=0.01)) == YES
    # Layers that move together: the lead itself varies little, though each of the two values varies much. And the
    # noise of sentences forbids what seeds allow.
    for sampling, expected in ((0.0001, YES), (0.05, UNCLEAR)):
        leads = dict.fromkeys(range(5), (0.0001, sampling))
        assert ask(peaks_at("a", 3), a=curve(0.78, 0.5, 0.5, 0.80, 0.5, std=0.05, n=3, leads=leads)) == expected
    with pytest.raises(Outside, match="no layers 11 to 13"):
        ask(peaks_at("a", 12), a=curve(0.1, 0.2, 0.3))


def test_first_align_then_predict_has_a_place():
    """Neither in the first two layers nor in the last two. A fall of 0.02 can be seen, unless noise hides it."""

    def tower(peak, layers=12):
        return curve(*(0.8 - 0.05 * abs(layer - peak) for layer in range(layers + 1)))

    answers = {1: NO, 2: NO, 3: YES, 6: YES, 10: YES, 11: NO}
    assert {peak: ask(rises_then_falls("a"), a=tower(peak)) for peak in answers} == answers
    with pytest.raises(Outside, match="no layers 3 to 2"):
        ask(rises_then_falls("a"), a=tower(2, 4))
    middle = rises_then_falls("a", first=1, before_end=1)
    for end, std, expected in ((0.2, 0, YES), (0.49, 0, NO), (0.49, 0.01, UNCLEAR), (0.47, 0.01, UNCLEAR)):
        assert ask(middle, a=curve(0.1, 0.5, end, std=std)) == expected
    assert ask(middle, a=curve(0.1, 0.3, 0.5)) == NO


def test_rises():
    assert ask(rises("a"), a=curve(0.1, 0.5, 0.2)) == YES
    assert ask(rises("a"), a=curve(0.1, 0.5, 0.13, std=0.01, n=3)) == UNCLEAR
    assert ask(rises("a"), a=curve(0.1, 0.5, 0.05)) == ask(rises("a"), a=curve(0.1)) == NO
    # Up to the layer before the named one; a dip below what can be seen is none.
    assert ask(keeps_rising("a", 4), a=curve(0.1, 0.2, 0.3, 0.4, 0.39)) == YES
    assert ask(keeps_rising("a", 4), a=curve(0.1, 0.2, 0.19, 0.4, 0.5)) == YES
    assert ask(keeps_rising("a", 4), a=curve(0.1, 0.3, 0.2, 0.4, 0.5)) == NO
    assert ask(keeps_rising("a", 4), a=curve(0.1, 0.3, 0.28, 0.4, 0.5, std=0.01, n=3)) == UNCLEAR
    assert ask(keeps_rising("a", 1), a=curve(0.1, 0.3)) == NO


def test_groups():
    mixed = group(es=5, ru=0.5, vi=-5)
    assert ask(every("g", positive), g=group(es=5, ru=5)) == YES
    assert ask(every("g", positive), g=group(es=5, ru=0.5)) == UNCLEAR
    assert ask(every("g", positive), g=mixed) == NO
    assert ask(some("g", positive), g=mixed) == YES
    assert ask(some("g", positive), g=group(es=0.5, ru=-5)) == UNCLEAR
    for members, expected in ((("es",), YES), (("es", "ru"), UNCLEAR), (("vi",), NO)):
        assert ask(only("g", members, positive), g=mixed) == expected
    # Of a language that the run does not have nothing is said.
    with pytest.raises(Outside, match="there is no hi, vi among the g of this run"):
        ask(only("g", ("hi", "es", "vi"), positive), g=group(es=-5))
    for printed, expected in (("1", YES), ("2", UNCLEAR), ("3", NO)):
        assert ask(count("g", positive, "test_sets"), printed, g=mixed) == expected
    assert every("g", positive).ask(Facts({"g": mixed})).note == "not: vi"
    assert only("g", ("vi",), positive).ask(Facts({"g": mixed})).note == "also es; not vi"
    for words in (every, some, most):
        with pytest.raises(NotRun):
            ask(words("g", positive), g=Group({}))


@pytest.mark.parametrize(
    ("good", "vague", "expected"),
    [(10, 0, YES), (9, 0, YES), (9, 1, YES), (8, 1, UNCLEAR), (0, 10, UNCLEAR), (8, 0, NO)],
)
def test_most(good, vague, expected):
    """More than a tenth against it is a no; what is unclear is neither."""
    values = [5.0] * good + [0.0] * vague + [-5.0] * (10 - good - vague)
    members = Group({str(k): number(value, 1.0, 4) for k, value in enumerate(values)})
    assert ask(most("g", positive), g=members) == expected


def test_a_share_has_the_relative_errors_of_both():
    # Means over layers 1 and 2 of 0.4 and 0.5; errors of 0.02 and 0.01, that is 5 % and 2 % of them.
    base, tuned = curve(9, 0.4, 0.6, std=0.02, n=4), Group({"pos": curve(9, 0.3, 0.5, std=0.04, n=4)})
    share = kept(base, tuned, 1, 2).members["pos"]
    assert share.value == pytest.approx(0.8)
    assert share.seed_error == pytest.approx(0.8 * math.hypot(0.05, 0.02))
    with pytest.raises(Outside, match="no similarity in layers 1 to 2"):
        kept(curve(0.5, -0.1, 0.0), tuned, 1, 2)


def test_distances_have_no_sign():
    """A curve that goes above and below another changes, though its mean does not."""
    found = distance(curve(0.5, 0.5, 0.5), curve(0.5, 0.7, 0.3, std=0.06, n=3), 1, 2)
    assert found.value == pytest.approx(0.2)
    # One pretrained model takes nothing from the three runs.
    assert (found.n, found.wanted) == (3, 3)
    assert found.seed_error == pytest.approx(0.06 / math.sqrt(3))


def test_spans_keep_the_noise_of_languages():
    """From the least to the largest value of some layers, as certain as the leads of the two."""
    leads = {1: (None, 0.03), 2: (None, 0.0), 3: (None, 0.04)}
    whole = curve(0.0, 0.2, 0.9, 0.5, scale="correlation", leads=leads)
    upper = curve(0.9, 0.2, 0.8, 0.5, scale="correlation", leads=leads)
    first, second = spans(Group({"whole": whole, "upper": upper}), 1, 3).numbers()
    assert first.value == pytest.approx(0.7) and first.error == pytest.approx(0.03)
    assert second.value == pytest.approx(0.6)
    # Compared with another span, that noise still counts.
    assert first.minus(second).error == pytest.approx(math.hypot(0.03, 0.03))


def test_a_mean_over_languages_of_the_same_models_is_no_surer_than_they_are():
    numbers = Group({"fr": Number(1.0, std=0.4, n=4), "de": Number(3.0, std=0.8, n=4)})
    assert average(numbers).value == 2.0 and average(numbers).seed_error == pytest.approx((0.2 + 0.4) / 2)
    assert numbers.mean().seed_error == pytest.approx(math.hypot(0.2, 0.4) / 2)


class Bins:
    """A histogram figure, for the area alone."""

    def __init__(self, related, unrelated):
        self.kinds = {"related words": related, "unrelated words": unrelated}

    def series(self, item, panel, series):
        return [{"x": str(x), "y": str(y)} for x, y in enumerate(self.kinds[series])]

    def number(self, item, row, scale):
        return Number(float(row["y"]), scale)

    def absent(self, item, reason):
        return NotRun(reason, item)


def test_area_under_the_curve():
    assert area(Bins([1, 0, 0], [0, 0, 1]), "").value == 1
    assert area(Bins([0, 2, 0], [0, 5, 0]), "").value == 0.5
    # By hand: related in bins 0 and 1, unrelated in 1 and 2, half each: 1 - 1/4 * 1/2.
    assert area(Bins([1, 1, 0], [0, 1, 1]), "").value == pytest.approx(0.875)
    with pytest.raises(NotRun):
        area(Bins([0, 0], [1, 1]), "")


def test_tolerances(tmp_path):
    assert all(math.isfinite(value) and value >= 0 for value in tolerances().values())
    with pytest.raises(UserError, match=r"no tolerance 'pints'; there are confidence, "):
        tolerance("pints")
    path = tmp_path / "tolerances.yaml"
    path.write_text("points: { value: many }\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"tolerances.yaml: points: expected \{ value: <number from 0 on>"):
        tolerances(path)
    with pytest.raises(UserError, match="none.yaml: cannot be read"):
        tolerances(tmp_path / "none.yaml")
