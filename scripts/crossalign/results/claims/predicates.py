"""The vocabulary of claims: what can be said of numbers, curves and groups, in three values.

A predicate speaks of names; `Facts` says what they stand for. It answers yes, no, or unclear where noise or a
near miss forbids either, and says its rule in words, tolerances included.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

from crossalign.results.claims.evidence import Outside
from crossalign.results.claims.quantities import Value
from crossalign.results.claims.tolerances import tolerance
from crossalign.results.claims.values import Curve, Number
from crossalign.runtime.errors import UserError


class Truth(IntEnum):
    """Ordered, so that the least of several is their conjunction."""

    NO = 0
    UNCLEAR = 1
    YES = 2


@dataclass(frozen=True)
class Facts:
    """What the names of a claim stand for, and what the paper prints."""

    values: dict[str, Value]
    printed: str = ""

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    @property
    def number(self) -> float:
        """The printed value."""
        try:
            return float(self.printed)
        except ValueError:
            raise UserError(f"claims.csv: the value '{self.printed}' is compared as a number, but is none") from None

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit; the zeros that end a whole number hide nothing here."""
        return 0.5 * 10.0 ** -len(self.printed.partition(".")[2])


@dataclass(frozen=True)
class Finding:
    """An answer, and what is worth saying about it beside the measured values."""

    truth: Truth
    note: str = ""


@dataclass(frozen=True)
class Predicate:
    """A question about some facts; `rule` says in words how it is answered."""

    ask: Callable[[Facts], Finding]
    rule: str = ""
    tolerances: tuple[str, ...] = field(default=())


NOISE = "beyond noise"


def in_words(words: str, *names: str) -> str:
    """A rule with its tolerances."""
    told = ", ".join(f"{name} {tolerance(name):g}" for name in names)
    return f"{words} ({told})" if told else words


def _sign(number: Number) -> Truth:
    """Whether a number is above zero: by its test over examples, else beyond the noise of its seeds."""
    sure = number.significant if number.significant is not None else abs(number.value) > number.noise
    return Truth.UNCLEAR if not sure else Truth.YES if number.value > 0 else Truth.NO


def _simple(words: str, names: tuple[str, ...], ask: Callable[[Facts], Truth]) -> Predicate:
    return Predicate(lambda facts: Finding(ask(facts)), in_words(words, *names), names)


def positive(name: str) -> Predicate:
    """Above zero."""
    return _simple(f"{name} above zero {NOISE}", ("confidence",), lambda facts: _sign(facts[name]))


def negative(name: str) -> Predicate:
    """Below zero."""
    return _simple(f"{name} below zero {NOISE}", ("confidence",), lambda facts: Truth(2 - _sign(facts[name])))


def greater(name: str, other: str) -> Predicate:
    """One number above another."""
    words = f"{name} above {other} {NOISE}"
    return _simple(words, ("confidence",), lambda facts: _sign(facts[name].minus(facts[other])))


def _above(number: Number, limit: float) -> Truth:
    """Whether a number reaches a limit; unclear where noise could bring it to the other side."""
    margin = number.value - limit + 1e-9
    return Truth.UNCLEAR if abs(margin) < number.noise else Truth.YES if margin >= 0 else Truth.NO


def at_least(name: str, bound: str | float | None = None, sign: int = 1) -> Predicate:
    """Not below a bound: a tolerance (or, with `sign` -1, as large a loss), a number, or the printed value."""
    if bound is None:
        return _printed_least(name)
    limit = sign * tolerance(bound) if isinstance(bound, str) else bound
    names = (bound, "confidence") if isinstance(bound, str) else ("confidence",)
    return _simple(f"{name} at least {limit:g} {NOISE}", names, lambda facts: _above(facts[name], limit))


def at_most(name: str, bound: str | float | None = None, sign: int = 1) -> Predicate:
    """Not above a bound: a tolerance (or, with `sign` -1, as large a loss), a number, or the printed value."""
    if bound is None:
        return _printed_most(name)
    limit = sign * tolerance(bound) if isinstance(bound, str) else bound
    names = (bound, "confidence") if isinstance(bound, str) else ("confidence",)

    def ask(facts: Facts) -> Truth:
        return _above(facts[name].times(-1.0, facts[name].scale), -limit)

    return _simple(f"{name} at most {limit:g} {NOISE}", names, ask)


def _printed_most(name: str) -> Predicate:
    """Not above an amount that the paper prints, as it is printed: beyond it, noise makes it unclear."""
    return _simple(f"{name} at most the printed value", (), lambda facts: _as_printed(facts, name, 1))


def _printed_least(name: str) -> Predicate:
    """Not below an amount that the paper prints."""
    return _simple(f"{name} at least the printed value", (), lambda facts: _as_printed(facts, name, -1))


def _as_printed(facts: Facts, name: str, sign: int) -> Truth:
    over = sign * (facts[name].value - facts.number) - facts.half_unit
    return Truth.YES if over <= 1e-9 else Truth.UNCLEAR if over <= facts[name].noise else Truth.NO


def near(name: str, within: str, value: float | None = None, relative: bool = False) -> Predicate:
    """As large as printed (or as `value`), give or take a tolerance; up to twice as far it is unclear."""

    def ask(facts: Facts) -> Truth:
        target = facts.number if value is None else value
        allowed = tolerance(within) * (abs(target) if relative else 1.0) + (facts.half_unit if value is None else 0.0)
        away = abs(facts[name].value - target) - 1e-9
        return (
            Truth.YES
            if away <= allowed
            else Truth.UNCLEAR
            if tolerance(within) > 0 and away <= 2 * allowed
            else Truth.NO
        )

    return _simple(f"{name} as {'printed' if value is None else f'{value:g}'}", (within,), ask)


def between(name: str, low: float, high: float, within: str) -> Predicate:
    """Inside a printed range, give or take a tolerance."""

    def ask(facts: Facts) -> Truth:
        away = max(low - facts[name].value, facts[name].value - high) - 1e-9
        allowed = tolerance(within)
        return Truth.YES if away <= allowed else Truth.UNCLEAR if away <= 2 * allowed else Truth.NO

    return _simple(f"{name} between {low:g} and {high:g}", (within,), ask)


def equals(name: str, value: str | None = None) -> Predicate:
    """Just what is printed: a number or words."""

    def ask(facts: Facts) -> Truth:
        wanted, found = facts.printed if value is None else value, facts[name]
        if isinstance(found, Number):
            return Truth.YES if found.value == float(wanted) else Truth.NO
        return Truth.YES if _parts(str(found)) == _parts(wanted) else Truth.NO

    return _simple(f"{name} equals {'the printed value' if value is None else value}", (), ask)


def _parts(text: str) -> list[str | float]:
    def plain(part: str) -> str | float:
        try:
            return float(part)
        except ValueError:
            return part

    return [plain(part.strip()) for part in text.split(";")]


def correlates(rho: str, p: str) -> Predicate:
    """A positive correlation: significant, and its interval over languages above zero where there is one."""

    def ask(facts: Facts) -> Truth:
        found, level = facts[rho], tolerance("significance")
        significant = facts[p].value < level
        low, high = (found.value if end is None else end for end in (found.low, found.high))
        if significant and low > 0:
            return Truth.YES
        return Truth.NO if significant and high < 0 else Truth.UNCLEAR

    return _simple(f"{rho} above zero with p below the level, and so its interval", ("significance",), ask)


def _peak_in(curve: Curve, first: float, last: float) -> Truth:
    """Whether the peak lies in a band of layers: no layer on the other side may be as high but for noise."""
    band = {layer for layer in curve.points if first <= layer <= last}
    if not band:
        raise Outside(f"the models of this run have no layers {first:g} to {last:g}")
    inside = curve.peak in band
    rivals = [layer for layer in curve.points if (layer in band) != inside]
    if any(_sign(curve.lead(layer)) != Truth.YES for layer in rivals):
        return Truth.UNCLEAR
    return Truth.YES if inside else Truth.NO


def peaks_at(name: str, layer: int) -> Predicate:
    """A curve is largest at a layer, give or take."""

    def ask(facts: Facts) -> Truth:
        allowed = tolerance("peak_layers")
        return _peak_in(facts[name], layer - allowed, layer + allowed)

    return _simple(f"{name} peaks at layer {layer} {NOISE}", ("peak_layers", "confidence"), ask)


def peaks_within(name: str, first: int, last: int) -> Predicate:
    """A curve is largest in one of some layers."""
    words = f"{name} peaks in layers {first} to {last} {NOISE}"
    return _simple(words, ("confidence",), lambda facts: _peak_in(facts[name], first, last))


def rises_then_falls(name: str, step: str = "step", first: int | None = 3, before_end: int = 2) -> Predicate:
    """A curve whose peak lies above both its ends by a step, and in its middle: at layer `first` or later, and so many
    layers before its end or earlier. With `first` None the peak may lie anywhere between the ends."""

    def ask(facts: Facts) -> Truth:
        found: Curve = facts[name]
        ends = [min(found.points), max(found.points)]
        answers = [_above(found.lead(end), tolerance(step)) for end in ends]
        if first is not None:
            answers.append(_peak_in(found, first, ends[1] - before_end))
        return min(answers)

    place = "" if first is None else f", from layer {first} on and {before_end} layers before the last or earlier"
    return _simple(f"{name} has its peak above both ends{place}, {NOISE}", (step, "confidence"), ask)


def keeps_rising(name: str, layer: int, step: str = "step") -> Predicate:
    """Up to a layer, give or take, no layer of a curve lies below the one before by a step."""

    def ask(facts: Facts) -> Truth:
        found: Curve = facts[name]
        climb = [place for place in sorted(found.points) if place <= layer - tolerance("peak_layers")]
        steps = [found.above(upper, lower) for lower, upper in pairwise(climb)]
        return min((_above(one, -tolerance(step)) for one in steps), default=Truth.NO)

    words = f"{name} does not fall on the way to layer {layer} {NOISE}"
    return _simple(words, ("peak_layers", step, "confidence"), ask)


def rises(name: str, step: str = "step") -> Predicate:
    """Every layer of a curve lies above its first by a step."""

    def ask(facts: Facts) -> Truth:
        first, *others = (facts[name].points[layer] for layer in sorted(facts[name].points))
        return min((_above(other.minus(first), tolerance(step)) for other in others), default=Truth.NO)

    return _simple(f"{name} above its first layer everywhere {NOISE}", (step, "confidence"), ask)


def climbs(name: str, step: str = "step") -> Predicate:
    """The peak of a curve lies above its first layer by a step."""

    def ask(facts: Facts) -> Truth:
        return _above(facts[name].lead(min(facts[name].points)), tolerance(step))

    return _simple(f"{name} climbs above its first layer {NOISE}", (step, "confidence"), ask)


def all_of(*predicates: Predicate) -> Predicate:
    """All hold."""

    def ask(facts: Facts) -> Finding:
        found = [predicate.ask(facts) for predicate in predicates]
        return Finding(min(one.truth for one in found), "; ".join(dict.fromkeys(one.note for one in found if one.note)))

    names = dict.fromkeys(name for predicate in predicates for name in predicate.tolerances)
    return Predicate(ask, "; ".join(predicate.rule for predicate in predicates), tuple(names))
