"""Numbers with their spread: what one cell or one point of a curve is made of."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

# The numbers of a value that have its unit.
_SCALED = ("mean", "std", "low", "high")


@dataclass(frozen=True)
class Value:
    """A mean over runs. `mean` is None when no run is there; `std` (sample, n - 1) is None below two runs.

    `low` and `high` are the ends of a run's bootstrap interval over sentences, averaged over the runs: what other
    sentences of the same kind would do to the score. None where the runs' files do not tell. Those of a correlation
    come from a bootstrap over languages.
    """

    mean: float | None = None
    std: float | None = None
    n: int = 0
    wanted: int = 0
    missing: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def scaled(self, factor: float) -> "Value":
        """The same value in another unit."""
        numbers = {name: getattr(self, name) for name in _SCALED}
        return replace(self, **{name: value * factor for name, value in numbers.items() if value is not None})

    def minus(self, other: "Value") -> "Value":
        """Difference of two means. Its spread is that of independent runs: sqrt(s1^2 + s2^2)."""
        missing = tuple(dict.fromkeys((*self.missing, *other.missing)))
        wanted = max(self.wanted, other.wanted)
        if self.mean is None or other.mean is None:
            return Value(wanted=wanted, missing=missing)
        known = self.std is not None and other.std is not None
        std = math.hypot(self.std, other.std) if known else None
        return Value(self.mean - other.mean, std, min(self.n, other.n), wanted, missing)


@dataclass(frozen=True)
class Sample:
    """One number per seed, the addresses of the runs that are not there, and the runs' intervals where all have one."""

    values: dict[int, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    intervals: dict[int, tuple[float, float]] = field(default_factory=dict)

    def value(self) -> Value:
        """Mean, standard deviation, count and interval."""
        numbers = [self.values[seed] for seed in sorted(self.values)]
        ends = [self.intervals[seed] for seed in sorted(self.values) if seed in self.intervals]
        low, high = (mean([end[side] for end in ends]) if len(ends) == len(numbers) else None for side in (0, 1))
        wanted = len(numbers) + len(self.missing)
        return Value(mean(numbers), deviation(numbers), len(numbers), wanted, self.missing, low, high)


def known(number: float | None) -> bool:
    """Whether there is a number: neither None nor NaN, which is how pandas says None."""
    return number is not None and not math.isnan(number)


def mean(numbers: Sequence[float]) -> float | None:
    """The mean; None of nothing. Exact sums: the order of the numbers does not matter."""
    return math.fsum(numbers) / len(numbers) if len(numbers) else None


def deviation(numbers: Sequence[float]) -> float | None:
    """The sample standard deviation; None below two numbers."""
    if len(numbers) < 2:
        return None
    centre = mean(numbers)
    return math.sqrt(math.fsum((number - centre) ** 2 for number in numbers) / (len(numbers) - 1))


_SEED = re.compile(r"(?P<stem>.*)/seed(?P<seed>\d+)")


def brief(addresses: Iterable[str]) -> list[str]:
    """Addresses that differ in the seed alone as one line: `tuned/mbert/pos-en_ewt/ref/seed1,2,5`."""
    seeds: dict[str, list[int]] = {}
    for address in addresses:
        found = _SEED.fullmatch(address)
        stem = found["stem"] if found else address
        seeds.setdefault(stem, []).extend([int(found["seed"])] if found else [])
    return [
        f"{stem}/seed{','.join(map(str, sorted(set(numbers))))}" if numbers else stem
        for stem, numbers in sorted(seeds.items())
    ]
