"""The diagonal prior of Dyer, Chahuneau and Smith (2013), section 2, for all sentence sizes at once.

Target position j of m is linked to source position i of n with probability proportional to
exp(-tension * |i/n - j/m|), to no word with probability p0. The partition function and its derivative are
geometric series on both sides of the diagonal (section 3.1 of the paper).
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Sizes:
    """The distinct (source length n, target length m) of a bitext, and which of them each sentence has."""

    source: np.ndarray
    target: np.ndarray
    count: np.ndarray
    of_sentence: np.ndarray

    @classmethod
    def of(cls, source_lengths: np.ndarray, target_lengths: np.ndarray) -> "Sizes":
        """Count the sizes."""
        base = int(target_lengths.max()) + 1
        keys, inverse, count = np.unique(
            source_lengths * base + target_lengths, return_inverse=True, return_counts=True
        )
        return cls(keys // base, keys % base, count, inverse.astype(np.int32))

    @property
    def distinct(self) -> int:
        """How many sizes occur, not counting pairs that were left out."""
        return int(np.count_nonzero(self.source))

    def starts(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each size begins in arrays over target positions and in arrays over source positions."""
        return _strung(self.target)[2], _strung(self.source)[2]


@dataclass
class Prior:
    """Probability of link (i, j) as a product of one factor of i and one of j.

    Below the diagonal (j/m <= i/n) it is `rise[j] * shrink[i]`, above it `fall[j] * grow[i]`; so the inner loops
    need no exponential. Arrays of all sizes are strung together; `Sizes.starts` says where each begins.
    """

    rise: np.ndarray
    fall: np.ndarray
    grow: np.ndarray
    shrink: np.ndarray
    null: np.ndarray


def _strung(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For lengths 2, 3: owners 0 0 1 1 1, positions 1 2 1 2 3, starts 0 2."""
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return owner, np.arange(len(owner)) - starts[owner] + 1, starts


def _series(nearest: np.ndarray, terms: np.ndarray, n: np.ndarray, tension: float) -> tuple[np.ndarray, np.ndarray]:
    """Sum of exp(-tension * x) and of x * exp(-tension * x) for x = nearest, nearest + 1/n, ... (`terms` values)."""
    ratio = np.exp(-tension / n)
    rest = -np.expm1(-tension / n)
    first = np.exp(-tension * nearest)
    power = np.exp(-tension / n * terms)
    total = first * (1 - power) / rest
    # sum of k * ratio**k for k < terms
    steps = ratio * (1 - power) / rest**2 - terms * power / rest
    return np.where(terms > 0, total, 0.0), np.where(terms > 0, nearest * total + first * steps / n, 0.0)


def partition(sizes: Sizes, tension: float) -> tuple[np.ndarray, np.ndarray]:
    """The partition function of each (size, target position), and the model's expectation of -|i/n - j/m| there."""
    owner, j, _ = _strung(sizes.target)
    n, m = sizes.source[owner], sizes.target[owner]
    below = j * n // m
    lower, lower_distance = _series(j / m - below / n, below, n, tension)
    upper, upper_distance = _series((below + 1) / n - j / m, n - below, n, tension)
    total = lower + upper
    return total, -(lower_distance + upper_distance) / total


def diagonal_prior(sizes: Sizes, tension: float, p0: float, use_null: bool) -> Prior:
    """The prior with the given tension. Without a null word the others still share 1 - p0, as in fast_align."""
    owner, j, _ = _strung(sizes.target)
    total, _ = partition(sizes, tension)
    scale = (1.0 - p0) / total
    bend = tension * j / sizes.target[owner]
    owner, i, _ = _strung(sizes.source)
    slope = tension * i / sizes.source[owner]
    null = np.full(len(sizes.source), p0 if use_null else 0.0)
    return Prior(scale * np.exp(bend), scale * np.exp(-bend), np.exp(slope), np.exp(-slope), null)


def uniform_prior(sizes: Sizes, use_null: bool) -> Prior:
    """The prior of IBM Model 1: every source word and the null word alike."""
    owner, _, _ = _strung(sizes.target)
    each = 1.0 / np.maximum(sizes.source + use_null, 1)
    ones = np.ones(int(sizes.source.sum()))
    null = each if use_null else np.zeros(len(each))
    return Prior(each[owner], each[owner], ones, ones, null)


def model_feature(sizes: Sizes, tension: float, target_words: int) -> float:
    """The model's mean of -|i/n - j/m| over all target words."""
    owner, _, _ = _strung(sizes.target)
    return float(np.sum(sizes.count[owner] * partition(sizes, tension)[1])) / target_words


def tune_tension(
    sizes: Sizes, tension: float, observed: float, target_words: int
) -> tuple[float, list[tuple[float, float]]]:
    """Eight gradient steps of size 20 towards the observed feature, in [0.1, 14]; also (feature, tension) per step."""
    steps = []
    for _ in range(8):
        expected = model_feature(sizes, tension, target_words)
        steps.append((expected, tension))
        tension = min(max(tension + 20.0 * (observed - expected), 0.1), 14.0)
    return tension, steps
