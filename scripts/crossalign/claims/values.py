"""What a claim speaks of: numbers with their error, curves over layers, groups of either; each can be read aloud."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from crossalign.claims.tolerances import tolerance
from crossalign.render.values import mean

# How many members of a group a sentence names one by one.
NAMED = 6
DIGITS = {"points": 2, "percent": 1, "share": 3, "similarity": 2, "correlation": 2, "count": 0}


@dataclass(frozen=True)
class Number:
    """A mean over runs. `std` is None for a single run; `terms` is 2 for a difference of two means.

    `significant` is what a test over examples says, None where there was none.
    """

    value: float
    scale: str = "points"
    std: float | None = None
    n: int = 1
    wanted: int = 1
    terms: int = 1
    significant: bool | None = None

    @property
    def error(self) -> float:
        """Standard error; where the runs do not tell it, from the spread that is declared for such numbers."""
        if self.scale in ("count", "p"):
            return 0.0
        spread = self.std
        if spread is None:
            spread = _declared(self.scale) * math.sqrt(self.terms)
        return spread / math.sqrt(max(self.n, 1))

    @property
    def noise(self) -> float:
        """The part of the number that seeds can explain."""
        return tolerance("sigmas") * self.error

    def minus(self, other: "Number", significant: bool | None = None) -> "Number":
        """The difference of two numbers of the same scale."""
        n, wanted = min(self.n, other.n), max(self.wanted, other.wanted)
        std = math.hypot(self.error, other.error) * math.sqrt(max(n, 1))
        return Number(self.value - other.value, self.scale, std, n, wanted, 2, significant)

    def times(self, factor: float, scale: str) -> "Number":
        """The same in another unit."""
        std = None if self.std is None else self.std * abs(factor)
        return Number(self.value * factor, scale, std, self.n, self.wanted, self.terms, self.significant)

    def __format__(self, form: str) -> str:
        """Forms: none; `+` with its sign; `cost`, a loss told as a positive number."""
        if self.scale == "p":
            return "< 0.001" if self.value < 0.001 else f"= {self.value:.3f}"
        digits = DIGITS.get(self.scale, 2)
        value = -self.value if form == "cost" else self.value
        if digits == 0 and value != int(value):
            digits = 2
        text = f"{abs(value):,.{digits}f}"
        if not text.strip("0.,"):
            return text
        return f"−{text}" if value < 0 else f"+{text}" if form == "+" else text


def _declared(scale: str) -> float:
    if scale == "percent":
        return 100 * tolerance("spread_similarity")
    return tolerance(f"spread_{scale}")


@dataclass(frozen=True)
class Curve:
    """A value per layer."""

    points: Mapping[int, Number]

    @property
    def peak(self) -> int:
        """The layer of the largest value; of equal ones the lowest."""
        return max(sorted(self.points), key=lambda layer: self.points[layer].value)

    def within(self, first: int, last: int) -> "Curve":
        """A part of the curve; layers that the model does not have are left out."""
        return Curve({layer: point for layer, point in sorted(self.points.items()) if first <= layer <= last})

    def mean(self) -> Number:
        """The mean over the layers; as certain as one of them, for the same runs stand behind all."""
        points = list(self.points.values())
        errors = [point.error for point in points]
        first = points[0]
        std = max(errors) * math.sqrt(max(first.n, 1))
        return Number(mean([point.value for point in points]), first.scale, std, first.n, first.wanted)

    def __format__(self, form: str) -> str:
        """Forms: none, the peak; `range`, the least and the largest value."""
        values = [point.value for point in self.points.values()]
        if form == "range":
            return f"{min(values):.2f} to {max(values):.2f}"
        return f"layer {self.peak} ({self.points[self.peak].value:.2f})"


@dataclass(frozen=True)
class Group:
    """Named members: numbers, curves or words."""

    members: Mapping[str, "Number | Curve | str"] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, "Number | Curve | str"]]:
        return iter(self.members.items())

    def __len__(self) -> int:
        return len(self.members)

    def numbers(self) -> list[Number]:
        """The members, which must be numbers."""
        return [member for member in self.members.values() if isinstance(member, Number)]

    def mean(self) -> Number:
        """The mean of independent numbers."""
        found = self.numbers()
        n = min(number.n for number in found)
        error = math.sqrt(sum(number.error**2 for number in found)) / len(found)
        centre = mean([number.value for number in found])
        return Number(centre, found[0].scale, error * math.sqrt(max(n, 1)), n, found[0].wanted, found[0].terms)

    def __format__(self, form: str) -> str:
        """Forms: those of the members, `count`, `mean`, and `names`."""
        if form == "count":
            return str(len(self))
        if form == "names":
            return ", ".join(self.members)
        if form.startswith("mean"):
            return format(self.mean(), form.removeprefix("mean"))
        if len(self) <= NAMED:
            return ", ".join(
                f"{name} {member:{form}}" if not isinstance(member, str) else f"{name} {member}"
                for name, member in self
            )
        if all(isinstance(member, Curve) for member in self.members.values()):
            peaks = sorted(member.peak for member in self.members.values() if isinstance(member, Curve))
            often = max(sorted(set(peaks)), key=peaks.count)
            return (
                f"layer {often}" if peaks[0] == peaks[-1] else f"layers {peaks[0]} to {peaks[-1]}, most often {often}"
            )
        found = sorted(self.numbers(), key=lambda number: number.value)
        low, high, centre = (format(number, form) for number in (found[0], found[-1], self.mean()))
        return low if low == high else f"{low} to {high}, mean {centre}"
