"""Bootstrap over sentences: how far a similarity would stray with other sentences.

Sentences are dealt into parts: sentence i belongs to part i mod P. Each resample draws P parts with replacement, part b
w_b times. The draws depend on the number of parts only, so all layers, pairs and models see the same resamples, and the
difference of two layers has a standard error of its own. What is taken out of the vectors, the mean or a function of
the length, is that of all sentences in every resample; with 100 sentences that changes a standard error by one part in
a hundred.

The second moments of a resample are sums over parts, C(w) = sum_b w_b C_b with C_b = X_b^T Y_b. CKA needs their norms,

    |C(w)|^2 = w^T O w,   O_bc = <C_b, C_c>,

so P x P numbers, the overlaps, serve all resamples. ANC needs the diagonals of the C_b.

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
import torch
from torch import Tensor

PARTS = 50
RESAMPLES = 200
SEED = 1
# With fewer sentences a standard error would say nothing.
FEWEST = 10
# Numbers of the matrices C_b that are held at a time: neurons of Y come in blocks where all would be more.
ROOM = 1 << 26


def dealt(rows: Tensor, parts: int) -> Tensor:
    """Rows as rounds x parts x neurons; zeros, which add nothing, fill up the last round."""
    padded = torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % parts))
    return padded.reshape(-1, parts, rows.shape[1])


def overlaps(left: Tensor, right: Tensor, parts: int) -> Tensor:
    """O of two matrices; their sum is the squared norm of the whole product."""
    first, second = dealt(left, parts).permute(1, 2, 0), dealt(right, parts).transpose(0, 1)
    found = left.new_zeros(parts, parts)
    for some in second.split(max(1, ROOM // (parts * left.shape[1])), dim=2):
        products = (first @ some).flatten(1)
        found += products @ products.T
    return found


def diagonals(left: Tensor, right: Tensor, parts: int) -> Tensor:
    """Parts x neurons: what each part adds to the product of each neuron with its like."""
    return dealt(left * right, parts).sum(0)


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

    def norms(self, found: Tensor) -> np.ndarray:
        """Squared norms of the product in each resample, from its overlaps."""
        overlap = found.cpu().numpy()
        alone = np.diagonal(overlap)
        return ((self.weights @ overlap) * self.weights).sum(1) + (self.weights - self.weights**2) @ alone

    def means(self, counts: np.ndarray) -> np.ndarray:
        """Of each resample, the mean of a number that each sentence has."""
        places = np.arange(self.sentences) % self.parts
        sums = np.bincount(places, counts, self.parts), np.bincount(places, minlength=self.parts)
        return (self.weights @ sums[0]) / (self.weights @ sums[1])


@lru_cache(4)
def resamples(sentences: int) -> Resamples | None:
    """The resamples of so many sentences; None where they are too few."""
    return Resamples(sentences, min(PARTS, sentences)) if sentences >= FEWEST else None


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
