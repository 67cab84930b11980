"""What a claim speaks of: numbers with their error, curves over layers, groups of either; each can be read aloud."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from crossalign.results.claims.tolerances import tolerance
from crossalign.results.values import mean

# How many members of a group a sentence names one by one.
NAMED = 6
DIGITS = {"points": 2, "percent": 1, "share": 3, "similarity": 2, "correlation": 2, "count": 0}


@dataclass(frozen=True)
class Number:
    """A mean over runs. `std` is None for a single run; `terms` is 2 for a difference of two means.

    `freedom` are the degrees of freedom of the standard error; where it is not given, one less than there are runs,
    which is the least that Welch's formula gives for a difference. `sampling` is a standard error of another kind:
    what other sentences or languages would do. `low` and `high` end a bootstrap interval. `significant` is what a test
    over examples says. All of these are None where nobody measured them.
    """

    value: float
    scale: str = "points"
    std: float | None = None
    n: int = 1
    wanted: int = 1
    terms: int = 1
    significant: bool | None = None
    sampling: float | None = None
    freedom: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def seed_error(self) -> float:
        """Standard error over seeds; where the runs do not tell it, from the spread declared for such numbers."""
        if self.scale in ("count", "p"):
            return 0.0
        spread = self.std
        if spread is None:
            percent = self.scale == "percent"
            declared = 100 * tolerance("spread_similarity") if percent else tolerance(f"spread_{self.scale}")
            spread = declared * math.sqrt(self.terms)
        return spread / math.sqrt(max(self.n, 1))

    @property
    def error(self) -> float:
        """Standard error over seeds and sentences (or languages)."""
        return math.hypot(self.seed_error, self.sampling or 0.0)

    @property
    def seed_freedom(self) -> float:
        """Degrees of freedom of the seeds' error; a declared spread counts as known."""
        if self.freedom is not None:
            return self.freedom
        return math.inf if self.std is None or self.n < 2 else self.n - 1

    @property
    def total_freedom(self) -> float:
        """Degrees of freedom of the whole error (Welch and Satterthwaite); the bootstrap's part counts as known."""
        seeds = self.seed_error
        return self.seed_freedom * (self.error / seeds) ** 4 if seeds else math.inf

    @property
    def noise(self) -> float:
        """How far from zero chance may bring a number: Student's t times the standard error."""
        return student(self.total_freedom) * self.error if self.error else 0.0

    def minus(self, other: "Number", significant: bool | None = None) -> "Number":
        """The difference of two numbers of one scale. The same sentences stand behind both, so seeds alone count; where
        there is but one run on a side, seeds tell nothing and sentences count as if each side had its own."""
        n, wanted = min(self.n, other.n), max(self.wanted, other.wanted)
        std = math.hypot(self.seed_error, other.seed_error) * math.sqrt(max(n, 1))
        single = self.std is None or other.std is None
        sampling = math.hypot(self.sampling or 0.0, other.sampling or 0.0) if single else None
        value, freedom = self.value - other.value, welch([self, other])
        return Number(value, self.scale, std, n, wanted, 2, significant, sampling, freedom)

    def times(self, factor: float, scale: str) -> "Number":
        """The same in another unit."""
        size = abs(factor)
        std, sampling = (None if part is None else part * size for part in (self.std, self.sampling))
        if self.std is None and scale != self.scale:
            # What was declared for the old unit holds for it alone.
            std = self.seed_error * math.sqrt(max(self.n, 1)) * size
        freedom = self.seed_freedom
        return replace(self, value=self.value * factor, scale=scale, std=std, sampling=sampling, freedom=freedom)

    def numbers(self) -> list["Number"]:
        """Itself, as groups and curves give theirs."""
        return [self]

    def plain(self) -> dict[str, float]:
        """For JSON, rounded."""
        return {"value": round(self.value, 6), "error": round(self.error, 6), "n": self.n}

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


@cache
def student(freedom: float) -> float:
    """The quantile of Student's t that leaves half of what the level of confidence leaves on either side."""
    # scipy.stats itself takes a second to import.
    from scipy.special import ndtri, stdtrit

    share = (1 + tolerance("confidence")) / 2
    return float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))


def welch(numbers: Sequence[Number]) -> float:
    """Degrees of freedom of a sum or difference of independent means (Welch and Satterthwaite)."""
    squares = [number.seed_error**2 for number in numbers]
    parts = math.fsum(square**2 / number.seed_freedom for square, number in zip(squares, numbers, strict=True))
    return math.fsum(squares) ** 2 / parts if parts else math.inf


@dataclass(frozen=True)
class Curve:
    """A value per layer.

    `leads` says how certain the lead of the whole curve's peak over each layer is: standard deviation over seeds and
    standard error over sentences of the difference. Layers of one model move together, so it is far surer than two
    single values. Two leads bound the difference of any two layers, so a part of a curve keeps them.
    """

    points: Mapping[int, Number]
    leads: Mapping[int, tuple[float | None, float | None]] = field(default_factory=dict)

    @property
    def peak(self) -> int:
        """The layer of the largest value; of equal ones the lowest."""
        return max(sorted(self.points), key=lambda layer: self.points[layer].value)

    def lead(self, layer: int) -> Number:
        """By how much the peak lies above a layer."""
        return self.above(self.peak, layer)

    def above(self, upper: int, lower: int) -> Number:
        """By how much one layer lies above another; the leads of both say how certain that is."""
        difference = self.points[upper].minus(self.points[lower])
        leads = [self.leads[layer] for layer in (upper, lower) if layer in self.leads]
        stds, samplings = ([lead[place] for lead in leads if lead[place] is not None] for place in (0, 1))
        if stds:
            difference = replace(difference, std=math.hypot(*stds), n=self.points[upper].n, freedom=None)
        return replace(difference, sampling=math.hypot(*samplings) if samplings else None)

    def within(self, first: int, last: int) -> "Curve":
        """A part of the curve; layers that the model does not have are left out."""
        return Curve({layer: self.points[layer] for layer in sorted(self.points) if first <= layer <= last}, self.leads)

    def mean(self) -> Number:
        """The mean over the layers; as certain as the least certain, for the same runs stand behind all."""
        least = max(self.numbers(), key=lambda point: point.error)
        std = least.seed_error * math.sqrt(max(least.n, 1))
        value = mean([point.value for point in self.numbers()])
        return replace(least, value=value, std=std, significant=None, freedom=least.seed_freedom)

    def numbers(self) -> list[Number]:
        """The value of every layer."""
        return list(self.points.values())

    def plain(self) -> dict[str, float]:
        """For JSON, rounded."""
        return {str(layer): round(point.value, 6) for layer, point in sorted(self.points.items())}

    def __format__(self, form: str) -> str:
        """Forms: none, the peak; `range`, the least and the largest value."""
        values = [point.value for point in self.numbers()]
        if form == "range":
            return f"{min(values):.2f} to {max(values):.2f}"
        return f"layer {self.peak} ({self.points[self.peak].value:.2f})"


@dataclass(frozen=True)
class Group:
    """Named members: numbers or curves."""

    members: Mapping[str, Number | Curve] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Number | Curve]]:
        return iter(self.members.items())

    def __len__(self) -> int:
        return len(self.members)

    def numbers(self) -> list[Number]:
        """Every number of every member."""
        return [number for member in self.members.values() for number in member.numbers()]

    def mean(self) -> Number:
        """The mean of independent numbers."""
        numbers = self.numbers()
        n = min(number.n for number in numbers)
        error = math.sqrt(sum(number.seed_error**2 for number in numbers)) / len(numbers)
        centre = mean([number.value for number in numbers])
        std = error * math.sqrt(max(n, 1))
        return Number(centre, numbers[0].scale, std, n, numbers[0].wanted, numbers[0].terms, freedom=welch(numbers))

    def minus(self, other: "Group") -> "Group":
        """The differences of the members that both have."""
        return Group({name: member.minus(other.members[name]) for name, member in self if name in other.members})

    def plain(self) -> dict[str, dict]:
        """For JSON, rounded."""
        return {name: member.plain() for name, member in self}

    def __format__(self, form: str) -> str:
        """Forms: those of the members, `count`, `mean`, and `names`."""
        if form == "count":
            return str(len(self))
        if form == "names":
            return ", ".join(self.members)
        if form.startswith("mean"):
            return format(self.mean(), form.removeprefix("mean"))
        if len(self) <= NAMED:
            return ", ".join(f"{name} {member:{form}}" for name, member in self)
        if all(isinstance(member, Curve) for member in self.members.values()):
            peaks = sorted(member.peak for member in self.members.values())
            often = max(sorted(set(peaks)), key=peaks.count)
            span = f"layers {peaks[0]} to {peaks[-1]}, most often {often}"
            return f"layer {often}" if peaks[0] == peaks[-1] else span
        ordered = sorted(self.numbers(), key=lambda number: number.value)
        low, high, centre = (format(number, form) for number in (ordered[0], ordered[-1], self.mean()))
        return low if low == high else f"{low} to {high}, mean {centre}"


Value = Number | Curve | Group | str
