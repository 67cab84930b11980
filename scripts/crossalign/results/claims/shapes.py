"""What can be said of curves over layers."""

from itertools import pairwise

from crossalign.results.claims.evidence import Outside
from crossalign.results.claims.predicates import NOISE, Facts, Predicate, Truth, reaches, sign_of, simple
from crossalign.results.claims.tolerances import tolerance
from crossalign.results.claims.values import Curve


def _peak_in(curve: Curve, first: float, last: float) -> Truth:
    """Whether the peak lies in a band of layers: no layer on the other side may be as high but for noise."""
    band = {layer for layer in curve.points if first <= layer <= last}
    if not band:
        raise Outside(f"the models of this run have no layers {first:g} to {last:g}")
    inside = curve.peak in band
    rivals = [layer for layer in curve.points if (layer in band) != inside]
    if any(sign_of(curve.lead(layer)) != Truth.YES for layer in rivals):
        return Truth.UNCLEAR
    return Truth.YES if inside else Truth.NO


def peaks_at(name: str, layer: int) -> Predicate:
    """A curve is largest at a layer, give or take."""

    def ask(facts: Facts) -> Truth:
        allowed = tolerance("peak_layers")
        return _peak_in(facts[name], layer - allowed, layer + allowed)

    return simple(f"{name} peaks at layer {layer} {NOISE}", ("peak_layers", "confidence"), ask)


def peaks_within(name: str, first: int, last: int) -> Predicate:
    """A curve is largest in one of some layers."""
    words = f"{name} peaks in layers {first} to {last} {NOISE}"
    return simple(words, ("confidence",), lambda facts: _peak_in(facts[name], first, last))


def rises_then_falls(name: str, step: str = "step", first: int = 3, before_end: int = 2) -> Predicate:
    """A curve whose peak lies above both its ends by a step, and in its middle: at layer `first` or later, and so many
    layers before its end or earlier."""

    def ask(facts: Facts) -> Truth:
        curve: Curve = facts[name]
        ends = [min(curve.points), max(curve.points)]
        answers = [reaches(curve.lead(end), tolerance(step)) for end in ends]
        return min(*answers, _peak_in(curve, first, ends[1] - before_end))

    place = f"from layer {first} on and {before_end} layers before the last or earlier"
    return simple(f"{name} has its peak above both ends, {place}, {NOISE}", (step, "confidence"), ask)


def keeps_rising(name: str, layer: int) -> Predicate:
    """Up to a layer, give or take, no layer of a curve lies below the one before by a step."""

    def ask(facts: Facts) -> Truth:
        curve: Curve = facts[name]
        climb = [place for place in sorted(curve.points) if place <= layer - tolerance("peak_layers")]
        steps = [curve.above(upper, lower) for lower, upper in pairwise(climb)]
        return min((reaches(one, -tolerance("step")) for one in steps), default=Truth.NO)

    words = f"{name} does not fall on the way to layer {layer} {NOISE}"
    return simple(words, ("peak_layers", "step", "confidence"), ask)


def rises(name: str) -> Predicate:
    """Every layer of a curve lies above its first by a step."""

    def ask(facts: Facts) -> Truth:
        first, *others = (facts[name].points[layer] for layer in sorted(facts[name].points))
        return min((reaches(other.minus(first), tolerance("step")) for other in others), default=Truth.NO)

    return simple(f"{name} above its first layer everywhere {NOISE}", ("step", "confidence"), ask)
