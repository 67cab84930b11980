"""The sentence vectors of one language at one layer, read in blocks of rows, centred in float64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crossalign.analysis.backends import Array, Backend
from crossalign.errors import UserError

# A neuron that strays from its mean by less than this share of its size is constant: what is left is rounding.
CONSTANT = 1e-12


class Matrix:
    """Sentences x neurons. Rows come as float64 blocks, so that the working memory does not grow with the sentences."""

    def __init__(self, array: np.ndarray, backend: Backend, name: str) -> None:
        if array.ndim != 2:
            raise UserError(f"{name}: an array of sentences x neurons is needed, this one has {array.ndim} dimensions")
        if array.dtype.kind != "f":
            raise UserError(f"{name}: floating-point numbers are needed, not {array.dtype}")
        if array.shape[0] < 2 or array.shape[1] < 1:
            shape = " x ".join(map(str, array.shape))
            raise UserError(f"{name}: at least two sentences and one neuron are needed, the array is {shape}")
        self.name = name
        self.backend = backend
        self.sentences, self.neurons = array.shape
        self._array = backend.load(array)
        self._mean: Array | None = None

    def rows(self, rows: slice | np.ndarray) -> Array:
        """A new float64 array of those rows, not centred."""
        return self.backend.double(self._array[rows])

    def centred(self, rows: slice) -> Array:
        """A new float64 array of those rows minus the mean of all rows."""
        block = self.rows(rows)
        if self._mean is None and len(block) == self.sentences:
            self._set_mean(block.sum(0))
        block -= self.mean
        return block

    @property
    def mean(self) -> Array:
        """The mean of each neuron. Refuses matrices that hold NaN or infinity."""
        if self._mean is None:
            self._set_mean(sum(self.rows(rows).sum(0) for rows in blocks(self)))
        return self._mean

    @property
    def size(self) -> Array:
        """What the numbers of each neuron are compared with when the question is whether they vary."""
        return self.backend.xp.abs(self.mean)

    def _set_mean(self, total: Array) -> None:
        # Sums of finite float32 numbers are finite in float64, so one look at the sums finds every bad number.
        if not bool(self.backend.xp.isfinite(total).all()):
            self._refuse()
        self._mean = total / self.sentences

    def _refuse(self) -> None:
        for rows in blocks(self):
            block = self.backend.host(self.rows(rows))
            bad = np.argwhere(~np.isfinite(block))
            if len(bad):
                sentence, neuron = bad[0]
                value = block[sentence, neuron]
                place = f"sentence {rows.start + sentence + 1}, neuron {neuron}"
                raise UserError(f"{self.name}: {place} is {value}; every number must be finite")
        raise UserError(f"{self.name}: numbers too large to add up in float64")


def blocks(matrix: Matrix) -> Iterator[slice]:
    """Ranges of rows that are read at a time."""
    yield from ranges(matrix.sentences, matrix.backend.block)


def ranges(count: int, size: int) -> Iterator[slice]:
    """Slices of `size` that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


class Sums:
    """Running sums of arrays; the first block becomes the total, the others are added to it in place."""

    def __init__(self) -> None:
        self.totals: list[Array] = []

    def add(self, place: int, array: Array) -> None:
        """Add to the sum at `place`; new places come in order."""
        if place == len(self.totals):
            self.totals.append(array)
        else:
            self.totals[place] += array


@dataclass
class Moments:
    """Second moments of one centred matrix: its Gram matrix, or only the diagonal where no more is needed."""

    sentences: int
    mean: Array
    size: Array
    squares: Array
    gram: Array | None

    @property
    def varies(self) -> Array:
        """Which neurons are not constant."""
        return self.squares > self.sentences * (CONSTANT * self.size) ** 2


@dataclass
class Products:
    """What the linear indexes need of two centred matrices: X^T Y, or only its diagonal."""

    diagonal: Array
    cross: Array | None


def accumulate(reference: Matrix, others: Sequence[Matrix], full: bool) -> tuple[list[Moments], list[Products]]:
    """Moments of the reference and of the others (in this order), and products of the reference with each other one.

    Every row is read once, and the Gram matrix of a language serves all its pairs. Without `full` only diagonals are
    computed, in time proportional to the number of neurons instead of its square.
    """
    everyone = [reference, *others]
    backend = reference.backend
    grams, crosses = Sums(), Sums()
    for rows in blocks(reference):
        left = reference.centred(rows)
        grams.add(0, left.T @ left if full else (left * left).sum(0))
        rights = (matrix.centred(rows) for matrix in others)
        pairs = backend.products(left, rights) if full else _diagonals(left, rights)
        for place, (gram, cross) in enumerate(pairs):
            grams.add(place + 1, gram)
            crosses.add(place, cross)
    moments = []
    for matrix, gram in zip(everyone, grams.totals, strict=True):
        squares = backend.xp.diagonal(gram) if full else gram
        moments.append(Moments(matrix.sentences, matrix.mean, matrix.size, squares, gram if full else None))
    products = []
    for cross in crosses.totals:
        diagonal = backend.xp.diagonal(cross) if full else cross
        products.append(Products(diagonal, cross if full else None))
    return moments, products


def _diagonals(left: Array, rights: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
    for right in rights:
        yield (right * right).sum(0), (left * right).sum(0)
