"""How much of a similarity is the length of sentences?

Translations are long and short together, and the mean of a sentence's token vectors tells its length: of n position
vectors, for one. Two languages then look alike for that reason alone. Two controls, for any index s:

    strangers   s(X, Y) - s(X, PY): P gives each sentence of Y the vector of another one of the same length
    length      s(RX, SY): R and S take a smooth function of the sentences' own length out of every neuron

The smooth function is a linear combination of 1, l, l^2, l^3, 1/l and log l, fitted by least squares to each neuron and
to each language by itself.
"""

from __future__ import annotations

import numpy as np

from crossalign.analysis.backends import Array
from crossalign.analysis.matrices import Matrix, blocks
from crossalign.runtime.errors import UserError

CONTROLS = ("strangers", "length")
# The indexes that have controls.
CONTROLLED = ("cka", "anc")
# Strangers are drawn once and for all: the same lengths have the same strangers in every job.
SEED = 1
# A direction with less than this share of the largest one is a dependency of the functions: few different lengths.
RANK = 1e-10


def strangers(lengths: np.ndarray, seed: int = SEED) -> np.ndarray:
    """For each sentence the number of another one, of the same length or as near as can be; a permutation.

    In order of their lengths, equal ones shuffled, the sentences are cut into twos and threes, and in each of these
    everyone takes the place of the next. The cut is the one with the smallest sum of differences in length.
    """
    if len(lengths) < 2:
        raise UserError("strangers of the same length need at least two sentences")
    order = np.lexsort((np.random.default_rng(seed).random(len(lengths)), lengths))
    others = np.empty(len(order), dtype=np.int64)
    for group in _twos_and_threes(np.asarray(lengths)[order].tolist()):
        others[order[group]] = np.roll(order[group], 1)
    return others


def _twos_and_threes(ordered: list[int]) -> list[slice]:
    """Slices of two or three neighbours that cover all numbers, with the smallest sum of their spans.

    Larger groups would gain nothing: four neighbours are two and two.
    """
    # costs[k]: the least sum of spans for the first k numbers; sizes[k]: how many the last group has.
    costs, sizes = [0.0, float("inf")], [0, 0]
    for stop in range(2, len(ordered) + 1):
        starts = range(max(0, stop - 3), stop - 1)
        cost, size = min((costs[start] + ordered[stop - 1] - ordered[start], stop - start) for start in starts)
        costs.append(cost)
        sizes.append(size)
    found, stop = [], len(ordered)
    while stop:
        found.append(slice(stop - sizes[stop], stop))
        stop -= sizes[stop]
    return found


def functions_of(lengths: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the smooth functions of the length; as many as the different lengths allow."""
    lengths = np.asarray(lengths, dtype=np.float64)
    powers = np.stack([*(lengths**power for power in (0, 1, 2, 3, -1)), np.log(lengths)], 1)
    # Of the same size, and by singular values: with few different lengths the functions depend on each other.
    left, values, _ = np.linalg.svd(powers / np.abs(powers).max(0).clip(min=1e-300), full_matrices=False)
    return left[:, values > RANK * values[0]]


class Lengths:
    """What the controls need of one language, whatever the layer."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.strangers = strangers(lengths)
        self.functions = functions_of(lengths)


class Reordered(Matrix):
    """The same sentences in another order."""

    def __init__(self, matrix: Matrix, order: np.ndarray) -> None:
        self.name, self.backend = matrix.name, matrix.backend
        self.sentences, self.neurons = matrix.sentences, matrix.neurons
        self._inner, self._order, self._mean, self._kept = matrix, order, matrix.mean, None

    def rows(self, rows: slice) -> Array:
        """A new float64 array of the sentences that stand there now."""
        return self._inner.rows(self._order[rows])


class WithoutLength(Matrix):
    """What is left of the vectors when a smooth function of the length is taken out. The mean goes with it."""

    def __init__(self, matrix: Matrix, functions: np.ndarray) -> None:
        self.name, self.backend = matrix.name, matrix.backend
        self.sentences, self.neurons = matrix.sentences, matrix.neurons
        self._inner, self._mean, self._kept = matrix, 0.0 * matrix.mean, None
        self._functions = self.backend.load(functions)
        self._coefficients = squares = 0.0
        for rows in blocks(matrix):
            block = matrix.centred(rows)
            self._coefficients = self._coefficients + self._functions[rows].T @ block
            squares = squares + (block * block).sum(0)
        # A neuron that is a function of the length leaves the rounding of its former self.
        self._size = self.backend.xp.sqrt(matrix.mean**2 + squares / matrix.sentences)

    @property
    def size(self) -> Array:
        """The size of each neuron before."""
        return self._size

    def rows(self, rows: slice) -> Array:
        """A new float64 array of those residuals."""
        return self._inner.centred(rows) - self._functions[rows] @ self._coefficients
