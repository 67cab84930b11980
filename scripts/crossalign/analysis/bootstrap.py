"""Bootstrap over sentences: how far a similarity would stray with other sentences.

Sentences are dealt into parts (`parts`), and each resample draws as many parts as there are, with replacement. The
draws depend on the number of parts only, so all layers, pairs and models see the same resamples, and the difference of
two layers has a standard error of its own. What is taken out of the vectors, the mean or a function of the length, is
that of all sentences in every resample; with 100 sentences that changes a standard error by one part in a hundred.

A part that is drawn w times is not paired with its own copies: in the sum of overlaps over pairs of parts, which makes
the norms in CKA, a part with itself counts w times, not w^2 times. CKA is too high when sentences are few for many
neurons. Copies are no new sentences and would raise it further, by an amount that differs between resamples. With 1,000
sentences and 256 nearly independent neurons the standard error would be six times too large; so it is 1.25 times.

The parts are the price of speed: a standard error from 50 of them is itself uncertain by a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from crossalign.analysis.backends import Array, Backend
from crossalign.analysis.moments import Moments, Products

PARTS = 50
RESAMPLES = 200
SEED = 1
# With fewer sentences a standard error would say nothing.
FEWEST = 10


@dataclass(frozen=True)
class Resamples:
    """How often each part is drawn: resamples x parts."""

    sentences: int
    parts: int

    @cached_property
    def weights(self) -> np.ndarray:
        """The same for the same number of parts."""
        rng = np.random.default_rng((SEED, self.parts))
        return rng.multinomial(self.parts, [1.0 / self.parts] * self.parts, RESAMPLES).astype(np.float64)

    @cached_property
    def _pairs(self) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """The pairs of parts, each once, and how often each pair is drawn: pairs x resamples."""
        left, right = np.triu_indices(self.parts)
        times = self.weights[:, left] * np.where(left == right, 1.0, 2.0 * self.weights[:, right])
        return (left, right), times.T

    def norms(self, found: Sequence[Moments | Products], backend: Backend) -> np.ndarray:
        """Squared Frobenius norms of Gram matrices or products, from their overlaps: matrices x resamples."""
        places, times = self._pairs
        return np.stack([backend.host(one.overlaps)[places] for one in found]) @ times

    def means(self, counts: np.ndarray) -> np.ndarray:
        """Of each resample, the mean of a number that each sentence has."""
        places = np.arange(self.sentences) % self.parts
        sums = np.bincount(places, counts, self.parts), np.bincount(places, minlength=self.parts)
        return (self.weights @ sums[0]) / (self.weights @ sums[1])


@lru_cache(4)
def resamples(sentences: int) -> Resamples | None:
    """The resamples of so many sentences; None where they are too few."""
    return Resamples(sentences, min(PARTS, sentences)) if sentences >= FEWEST else None


def cka(cross: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """CKA of each resample from squared norms. That of a product, without the copies, may be a little below zero."""
    return cross / np.sqrt(left) / np.sqrt(right)


def lengths(moments: Moments, weights: Array, backend: Backend) -> Array:
    """Resamples x neurons: the length of each neuron. A constant one is infinitely long and so correlates with none."""
    xp = backend.xp
    found = xp.sqrt(weights @ moments.shares)
    return xp.where((found > 0) & moments.varies, found, xp.full_like(found, float("inf")))


def anc(product: Products, left: Array, right: Array, weights: Array, backend: Backend) -> dict[str, np.ndarray]:
    """ANC of each resample, with absolute values and signed, from the lengths of both sides."""
    found = (weights @ product.shares) / (left * right)
    return {"anc": backend.host(backend.xp.abs(found).mean(1)), "anc-signed": backend.host(found.mean(1))}


def standard_errors(curve: Sequence[float], draws: Sequence[np.ndarray | None]) -> list[tuple[float, float] | None]:
    """Of each layer: the standard error of its value, and that of its distance from the highest layer of the curve.

    A layer without a value, or that was not resampled, has none.
    """
    known = [layer for layer, drawn in enumerate(draws) if drawn is not None and not math.isnan(curve[layer])]
    found: list[tuple[float, float] | None] = [None] * len(curve)
    if known:
        drawn = np.stack([draws[layer] for layer in known])
        top = max(range(len(known)), key=lambda place: curve[known[place]])
        errors = drawn.std(1, ddof=1).tolist(), (drawn - drawn[top]).std(1, ddof=1).tolist()
        for layer, *both in zip(known, *errors, strict=True):
            found[layer] = tuple(both)
    return found
