"""Numbers with their spread: what one cell or one point of a curve is made of."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


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

    @classmethod
    def over(cls, runs: Sequence[float], missing: Iterable[str] = (), **ends: float | None) -> "Value":
        """The value of some runs, and the addresses of those that are not there."""
        missing = tuple(missing)
        return cls(mean(runs), deviation(runs), len(runs), len(runs) + len(missing), missing, **ends)

    def scaled(self, factor: float) -> "Value":
        """The same value in another unit."""
        numbers = {name: getattr(self, name) for name in ("mean", "std", "low", "high")}
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
