"""The sentence vectors of one language at one layer, read in blocks of rows, centred in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossalign.analysis.backends import Array, Backend
from crossalign.runtime.errors import UserError

# Numbers of a matrix that is kept once it is centred: the work on a small one is mostly that of reading it.
SMALL = 1 << 16


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
        self._kept: Array | None = None

    def rows(self, rows: slice | np.ndarray) -> Array:
        """A new float64 array of those rows, not centred."""
        return self.backend.double(self._array[rows])

    def centred(self, rows: slice) -> Array:
        """A float64 array of those rows minus the mean of all rows, not to be overwritten."""
        if self._kept is not None and rows == slice(0, self.sentences):
            return self._kept
        block = self.rows(rows)
        whole = len(block) == self.sentences
        if self._mean is None and whole:
            self._set_mean(block.sum(0))
        block -= self.mean
        if whole and self.sentences * self.neurons <= SMALL:
            self._kept = block
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
