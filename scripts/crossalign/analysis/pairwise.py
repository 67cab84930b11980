"""Indexes that look at all pairs of sentences: CKA with a Gaussian kernel, and sentence matching.

Their work grows with the square of the number of sentences. The n x n matrices exist one tile at a time; only the
median of the Gaussian kernel keeps all distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement

import numpy as np

from crossalign.analysis.backends import Array
from crossalign.analysis.matrices import Matrix, blocks, ranges
from crossalign.runtime.errors import UserError

# A squared distance below this share of the squared lengths is rounding: the two sentences have the same vector.
SAME = 1e-12
# Cosines closer than this are equal: two copies of a sentence tie, whatever the order of the additions.
TIE = 1e-12


def squared_distances(left: Array, right: Array) -> Array:
    """Squared Euclidean distances of rows, exactly zero for equal rows."""
    lengths = (left * left).sum(1)[:, None]
    # In place: these are the largest arrays there are, and most of the time goes into reading and writing them.
    distances = left @ right.T
    distances *= -2.0
    distances += lengths
    distances += (right * right).sum(1)[None, :]
    # Equal rows have equal lengths, so one of the two lengths is enough to judge by.
    distances *= distances > 2.0 * SAME * lengths
    return distances


def median_square(matrix: Matrix) -> float:
    """The median of the non-zero squared distances between sentences; NaN where all sentences have the same vector.

    All of them are kept: the index is for the thousand sentences of a parallel treebank.
    """
    xp, kept = matrix.backend.xp, []
    for rows, columns in _pairs_of_tiles(matrix):
        left = matrix.centred(rows)
        distances = squared_distances(left, left if rows == columns else matrix.centred(columns))
        distances = xp.triu(distances, 1) if rows == columns else distances
        kept.append(distances[distances > 0])
    near = xp.concatenate(kept)
    count = len(near)
    return sum(matrix.backend.smallest(near, [(count - 1) // 2, count // 2])) / 2 if count else float("nan")


def _pairs_of_tiles(matrix: Matrix) -> Iterator[tuple[slice, slice]]:
    """Tiles of a symmetric matrix: one off the diagonal stands for its mirror image too."""
    yield from combinations_with_replacement(_tiles(matrix), 2)


def _tiles(matrix: Matrix) -> Iterator[slice]:
    yield from ranges(matrix.sentences, matrix.backend.tile)


def rbf_cka(reference: Matrix, others: Sequence[Matrix]) -> list[float]:
    """CKA with the kernel exp(-d^2 / (2 sigma^2)), sigma^2 = median of the non-zero squared distances of the matrix.

    The variant of the public code of `align-predict`. NaN where a matrix has one and the same vector for all sentences.
    """
    everyone = [reference, *others]
    count = reference.sentences
    backend = reference.backend
    bandwidths = [median_square(matrix) for matrix in everyone]
    sums = [backend.zeros(count) for _ in everyone]
    squares = [0.0] * len(everyone)
    crosses = [0.0] * len(everyone)
    for rows, columns in _pairs_of_tiles(reference):
        times = 1.0 if rows == columns else 2.0
        first = None
        for place, matrix in enumerate(everyone):
            distances = squared_distances(matrix.centred(rows), matrix.centred(columns))
            distances *= -0.5 / bandwidths[place]
            kernel = backend.xp.exp(distances)
            first = kernel if first is None else first
            sums[place][rows] += kernel.sum(1)
            if rows != columns:
                sums[place][columns] += kernel.sum(0)
            squares[place] = squares[place] + times * (kernel * kernel).sum()
            crosses[place] = crosses[place] + times * (first * kernel).sum()
    # HSIC of centred kernels, without centring them: sum KL - 2/n <k, l> + sum k sum l / n^2, k and l the row sums.
    own = [float(square - _outside(total, total)) for square, total in zip(squares, sums, strict=True)]
    return [
        float(crosses[place] - _outside(sums[0], sums[place])) / (own[0] * own[place]) ** 0.5
        if own[0] * own[place] > 0
        else float("nan")
        for place in range(1, len(everyone))
    ]


def _outside(left: Array, right: Array) -> Array:
    return 2.0 / len(left) * (left @ right) - left.sum() * right.sum() / len(left) ** 2


def matching(reference: Matrix, others: Sequence[Matrix]) -> list[np.ndarray]:
    """Which reference sentences have the translation with the highest cosine of all sentences of the other language.

    Not centred. A tie counts as found; a sentence whose vector is zero in either language is never found. The
    products are float32; where the outcome lies within their worst rounding error, the sentence is looked up again in
    float64, so the answer is exact.
    """
    for other in others:
        if other.neurons != reference.neurons:
            raise UserError(
                f"{other.name}: {other.neurons} neurons, but {reference.name} has {reference.neurons}; "
                "sentence matching needs the same number"
            )
    rounded = _rounded_units(reference)
    return [_matching(reference, other, rounded) for other in others]


def _matching(reference: Matrix, other: Matrix, rounded: Array) -> np.ndarray:
    backend = reference.backend
    # Both vectors rounded to float32, and a sum of products in any order.
    margin = 2.0 * (reference.neurons + 4) * 2.0**-24
    rivals = _rounded_units(other)
    hits = np.zeros(reference.sentences, dtype=bool)
    for rows in _tiles(reference):
        left, right = _units(reference, rows), _units(other, rows)
        own = (left * right).sum(1)
        known = ((left * left).sum(1) > 0.5) & ((right * right).sum(1) > 0.5)
        places = np.arange(rows.start, rows.stop)
        lead = own - backend.double(_best_rival(rounded[rows], places, other, lambda columns: rivals[columns]))
        hits[rows] = backend.host(known & (lead > margin))
        unsure = backend.host(known & (backend.xp.abs(lead) <= margin)).nonzero()[0]
        if len(unsure):
            best = _best_rival(left[unsure], places[unsure], other, lambda columns: _units(other, columns))
            hits[places[unsure]] = backend.host(own[unsure] >= best - TIE)
    return hits


def _units(matrix: Matrix, rows: slice) -> Array:
    """Rows of length one; zero rows stay zero."""
    xp = matrix.backend.xp
    block = matrix.rows(rows)
    lengths = xp.sqrt((block * block).sum(1))
    block /= xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]
    return block


def _rounded_units(matrix: Matrix) -> Array:
    """All rows of length one, as float32: the size of the data, and needed once per tile."""
    return matrix.backend.xp.concatenate([matrix.backend.single(_units(matrix, rows)) for rows in blocks(matrix)])


def _best_rival(left: Array, places: np.ndarray, other: Matrix, units: Callable[[slice], Array]) -> Array:
    """The highest cosine of each row of `left` with a sentence other than its translation, which is at `places`."""
    xp = other.backend.xp
    best = None
    for columns in _tiles(other):
        cosines = left @ units(columns).T
        here = np.flatnonzero((places >= columns.start) & (places < columns.stop))
        if len(here):
            cosines[here, places[here] - columns.start] = -2.0
        top = xp.amax(cosines, 1)
        best = top if best is None else xp.maximum(best, top)
    return best
