"""The vocabulary of claims: what can be said of numbers, in three values; of groups and curves see the files beside.

A predicate speaks of names; `Facts` says what they stand for. It answers yes, no, or unclear where noise or a
near miss forbids either, and says its rule in words, tolerances included.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from crossalign.results.claims.tolerances import tolerance
from crossalign.results.claims.values import Number, Value
from crossalign.runtime.errors import UserError

NOISE = "beyond noise"


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
    rule: str


def in_words(words: str, *names: str) -> str:
    """A rule with its tolerances."""
    told = ", ".join(f"{name} {tolerance(name):g}" for name in names)
    return f"{words} ({told})" if told else words


def simple(words: str, names: tuple[str, ...], ask: Callable[[Facts], Truth]) -> Predicate:
    """A predicate without notes; `names` are its tolerances."""
    return Predicate(lambda facts: Finding(ask(facts)), in_words(words, *names))


def all_of(*predicates: Predicate) -> Predicate:
    """All hold."""

    def ask(facts: Facts) -> Finding:
        findings = [predicate.ask(facts) for predicate in predicates]
        notes = dict.fromkeys(finding.note for finding in findings if finding.note)
        return Finding(min(finding.truth for finding in findings), "; ".join(notes))

    return Predicate(ask, "; ".join(predicate.rule for predicate in predicates))


def sign_of(number: Number) -> Truth:
    """Whether a number is above zero: by its test over examples, else beyond the noise of its seeds."""
    sure = number.significant if number.significant is not None else abs(number.value) > number.noise
    return Truth.UNCLEAR if not sure else Truth.YES if number.value > 0 else Truth.NO


def reaches(number: Number, limit: float) -> Truth:
    """Whether a number reaches a limit; unclear where noise could bring it to the other side."""
    margin = number.value - limit + 1e-9
    return Truth.UNCLEAR if abs(margin) < number.noise else Truth.YES if margin >= 0 else Truth.NO


def near_enough(away: float, sure: float, possible: float) -> Truth:
    """Whether something is near enough, or may be."""
    return Truth.YES if away - 1e-9 <= sure else Truth.UNCLEAR if away - 1e-9 <= possible else Truth.NO


def positive(name: str) -> Predicate:
    """Above zero."""
    return simple(f"{name} above zero {NOISE}", ("confidence",), lambda facts: sign_of(facts[name]))


def negative(name: str) -> Predicate:
    """Below zero."""
    return simple(f"{name} below zero {NOISE}", ("confidence",), lambda facts: Truth(2 - sign_of(facts[name])))


def greater(name: str, other: str) -> Predicate:
    """One number above another."""
    words = f"{name} above {other} {NOISE}"
    return simple(words, ("confidence",), lambda facts: sign_of(facts[name].minus(facts[other])))


def at_least(name: str, bound: str | float | None = None, sign: int = 1) -> Predicate:
    """Not below a bound: a tolerance (or, with `sign` -1, as large a loss), a number, or the printed value."""
    return _bounded(f"{name} at least", name, 1, bound, sign)


def at_most(name: str, bound: str | float | None = None, sign: int = 1) -> Predicate:
    """Not above a bound, which is one of the same."""
    return _bounded(f"{name} at most", name, -1, bound, sign)


def _bounded(words: str, name: str, side: int, bound: str | float | None, sign: int) -> Predicate:
    if bound is None:
        # As the paper prints it: beyond its rounding, noise makes it unclear.
        def as_printed(facts: Facts) -> Truth:
            over = side * (facts.number - facts[name].value) - facts.half_unit
            return near_enough(over, 0.0, facts[name].noise)

        return simple(f"{words} the printed value", (), as_printed)
    limit = sign * tolerance(bound) if isinstance(bound, str) else bound
    names = (bound, "confidence") if isinstance(bound, str) else ("confidence",)

    def ask(facts: Facts) -> Truth:
        return reaches(facts[name].times(side, facts[name].scale), side * limit)

    return simple(f"{words} {limit:g} {NOISE}", names, ask)


def near(name: str, within: str, relative: bool = False) -> Predicate:
    """As large as printed, give or take a tolerance; up to twice as far it is unclear."""

    def ask(facts: Facts) -> Truth:
        allowed = tolerance(within) * (abs(facts.number) if relative else 1.0) + facts.half_unit
        away = abs(facts[name].value - facts.number)
        return near_enough(away, allowed, 2 * allowed if tolerance(within) > 0 else allowed)

    return simple(f"{name} as printed", (within,), ask)


def between(name: str, low: float, high: float, within: str) -> Predicate:
    """Inside a printed range, give or take a tolerance."""

    def ask(facts: Facts) -> Truth:
        away = max(low - facts[name].value, facts[name].value - high)
        return near_enough(away, tolerance(within), 2 * tolerance(within))

    return simple(f"{name} between {low:g} and {high:g}", (within,), ask)


def equals(name: str, value: str | None = None) -> Predicate:
    """Just what is printed: a number or words."""

    def ask(facts: Facts) -> Truth:
        wanted, ours = facts.printed if value is None else value, facts[name]
        same = ours.value == float(wanted) if isinstance(ours, Number) else _parts(str(ours)) == _parts(wanted)
        return Truth.YES if same else Truth.NO

    return simple(f"{name} equals {'the printed value' if value is None else value}", (), ask)


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
        number, significant = facts[rho], facts[p].value < tolerance("significance")
        low, high = (number.value if end is None else end for end in (number.low, number.high))
        if significant and low > 0:
            return Truth.YES
        return Truth.NO if significant and high < 0 else Truth.UNCLEAR

    return simple(f"{rho} above zero with p below the level, and so its interval", ("significance",), ask)
