"""The vocabulary of claims: what can be said of numbers, curves and groups, in three values.

A predicate speaks of names; `Facts` says what they stand for. It answers yes, no, or unclear where noise or a
near miss forbids either, and says its rule in words, tolerances included.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from crossalign.claims.quantities import Value
from crossalign.claims.tolerances import tolerance
from crossalign.claims.values import Curve, Number
from crossalign.errors import UserError


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
    return _simple(f"{name} above zero {NOISE}", ("sigmas",), lambda facts: _sign(facts[name]))


def negative(name: str) -> Predicate:
    """Below zero."""
    return _simple(f"{name} below zero {NOISE}", ("sigmas",), lambda facts: Truth(2 - _sign(facts[name])))


def greater(name: str, other: str) -> Predicate:
    """One number above another."""
    words = f"{name} above {other} {NOISE}"
    return _simple(words, ("sigmas",), lambda facts: _sign(facts[name].minus(facts[other])))


def at_least(name: str, bound: str | float, sign: int = 1) -> Predicate:
    """Not below a bound, which is a tolerance or a number; `sign` -1 turns the tolerance into a loss."""
    limit = sign * tolerance(bound) if isinstance(bound, str) else bound
    names = (bound,) if isinstance(bound, str) else ()

    def ask(facts: Facts) -> Truth:
        short = limit - facts[name].value
        return Truth.YES if short <= 1e-9 else Truth.UNCLEAR if short <= facts[name].noise else Truth.NO

    return _simple(f"{name} at least {limit:g}", names, ask)


def at_most(name: str, bound: str | float | None = None, sign: int = 1) -> Predicate:
    """Not above a bound: a tolerance (or, with `sign` -1, as large a loss), a number, or the printed value."""
    limit = sign * tolerance(bound) if isinstance(bound, str) else bound

    def ask(facts: Facts) -> Truth:
        top = facts.number + facts.half_unit if limit is None else limit
        over = facts[name].value - top
        return Truth.YES if over <= 1e-9 else Truth.UNCLEAR if over <= facts[name].noise else Truth.NO

    told = "the printed value" if limit is None else f"{limit:g}"
    return _simple(f"{name} at most {told}", (bound,) if isinstance(bound, str) else (), ask)


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
    """A positive correlation that is significant; a positive one that is not is unclear."""

    def ask(facts: Facts) -> Truth:
        if facts[rho].value <= 0:
            return Truth.NO
        return Truth.YES if facts[p].value < tolerance("significance") else Truth.UNCLEAR

    return _simple(f"{rho} above zero with p below the level", ("significance",), ask)


def peaks_at(name: str, layer: int) -> Predicate:
    """A curve is largest at a layer, give or take; unclear where a layer there is as large but for noise."""

    def ask(facts: Facts) -> Truth:
        found: Curve = facts[name]
        allowed = tolerance("peak_layers")
        if abs(found.peak - layer) <= allowed:
            return Truth.YES
        top = found.points[found.peak]
        rivals = [point for place, point in found.points.items() if abs(place - layer) <= allowed]
        near_by = any(_sign(top.minus(point)) == Truth.UNCLEAR for point in rivals)
        return Truth.UNCLEAR if near_by else Truth.NO

    return _simple(f"{name} peaks at layer {layer}", ("peak_layers", "sigmas"), ask)


def rises_then_falls(name: str, step: str = "step") -> Predicate:
    """A curve whose peak lies above both its ends by a step."""

    def ask(facts: Facts) -> Truth:
        found: Curve = facts[name]
        ends = [found.points[end(found.points)].value for end in (min, max)]
        lift = found.points[found.peak].value - max(ends)
        return Truth.YES if lift >= tolerance(step) - 1e-9 else Truth.UNCLEAR if lift > 0 else Truth.NO

    return _simple(f"{name} has its peak above both ends", (step,), ask)


def rises(name: str, step: str = "step") -> Predicate:
    """Every layer of a curve lies above its first by a step."""

    def ask(facts: Facts) -> Truth:
        found: Curve = facts[name]
        first, *others = (found.points[layer].value for layer in sorted(found.points))
        lift = min(others, default=first) - first
        return Truth.YES if lift >= tolerance(step) - 1e-9 else Truth.UNCLEAR if lift > 0 else Truth.NO

    return _simple(f"{name} above its first layer everywhere", (step,), ask)


def climbs(name: str, step: str = "step") -> Predicate:
    """The peak of a curve lies above its first layer by a step."""

    def ask(facts: Facts) -> Truth:
        found: Curve = facts[name]
        lift = found.points[found.peak].value - found.points[min(found.points)].value
        return Truth.YES if lift >= tolerance(step) - 1e-9 else Truth.UNCLEAR if lift > 0 else Truth.NO

    return _simple(f"{name} climbs above its first layer", (step,), ask)


def all_of(*predicates: Predicate) -> Predicate:
    """All hold."""

    def ask(facts: Facts) -> Finding:
        found = [predicate.ask(facts) for predicate in predicates]
        return Finding(min(one.truth for one in found), "; ".join(dict.fromkeys(one.note for one in found if one.note)))

    names = dict.fromkeys(name for predicate in predicates for name in predicate.tolerances)
    return Predicate(ask, "; ".join(predicate.rule for predicate in predicates), tuple(names))
