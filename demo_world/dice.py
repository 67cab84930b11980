"""Random choice that gives the same world on every platform and Python version.

Only `Random.random()` is used, whose sequence is fixed, and seeds come from SHA-256, never from `hash()`.
"""

import bisect
import hashlib
import random
from collections.abc import Sequence
from typing import Any


def dice(*keys: Any) -> random.Random:
    """A generator that depends on the keys alone, so that every file and every word is independent of the others."""
    text = "\x1f".join(str(key) for key in keys)
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))


def chance(*keys: Any) -> float:
    """One number in [0, 1) that depends on the keys alone."""
    text = "\x1f".join(str(key) for key in keys)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / (1 << 48)


def pick(rng: random.Random, items: Sequence[Any]) -> Any:
    """One item, all equally likely."""
    return items[int(rng.random() * len(items))]


def between(rng: random.Random, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return low + int(rng.random() * (high - low + 1))


def shuffle(rng: random.Random, items: list[Any]) -> list[Any]:
    """The items in random order, as a new list."""
    return [item for _, _, item in sorted((rng.random(), i, item) for i, item in enumerate(items))]


class Bag:
    """Items with weights, ready for many draws."""

    def __init__(self, items: Sequence[Any], weights: Sequence[float]) -> None:
        self.items = list(items)
        total = 0.0
        self.cumulative = []
        for weight in weights:
            total += weight
            self.cumulative.append(total)

    def draw(self, rng: random.Random) -> Any:
        """One item by weight."""
        return self.items[bisect.bisect_right(self.cumulative, rng.random() * self.cumulative[-1])]


def zipf(count: int) -> list[float]:
    """Weights that fall as 1/(rank + 2): division only, which is exact everywhere, unlike powers."""
    return [1.0 / (rank + 2) for rank in range(count)]
