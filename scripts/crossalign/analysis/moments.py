"""Second moments of one matrix and many others, and their products: all that the linear indexes need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossalign.analysis import parts as in_parts
from crossalign.analysis.backends import Array
from crossalign.analysis.matrices import Matrix, blocks

# A neuron that strays from its mean by less than this share of its size is constant: what is left is rounding.
CONSTANT = 1e-12


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
    """Second moments of one centred matrix: its Gram matrix, or only the diagonal where no more is needed.

    `shares` is the diagonal by parts (of one part where there is no bootstrap), `overlaps` what `parts` says.
    """

    matrix: Matrix
    gram: Array | None = None
    shares: Array | None = None
    overlaps: Array | None = None

    @property
    def squares(self) -> Array:
        """The diagonal."""
        return self.shares.sum(0) if self.gram is None else self.gram.diagonal()

    @property
    def varies(self) -> Array:
        """Which neurons are not constant."""
        return self.squares > self.matrix.sentences * (CONSTANT * self.matrix.size) ** 2


@dataclass
class Products:
    """What the linear indexes need of two centred matrices: X^T Y, or only its diagonal; the rest as in `Moments`."""

    cross: Array | None = None
    shares: Array | None = None
    overlaps: Array | None = None

    @property
    def diagonal(self) -> Array:
        """The product of each neuron with its like."""
        return self.shares.sum(0) if self.cross is None else self.cross.diagonal()


def accumulate(
    reference: Matrix, others: Sequence[Matrix], full: bool, parts: int = 0, shares: int = 0
) -> tuple[list[Moments], list[Products]]:
    """Moments of the reference and of the others (in this order), and products of the reference with each other one.

    The Gram matrix of a language serves all its pairs. Without `full` only diagonals are computed, in time proportional
    to the number of neurons instead of its square. For the bootstrap, the overlaps of so many `parts` come along, and
    `shares`, the diagonals of so many.
    """
    moments, products = [Moments(matrix) for matrix in (reference, *others)], [Products() for _ in others]
    if full and parts and not _by_sentences(reference, others, parts):
        for moment in moments:
            moment.gram, moment.overlaps = in_parts.products(moment.matrix, moment.matrix, parts)
        for product, other in zip(products, others, strict=True):
            product.cross, product.overlaps = in_parts.products(reference, other, parts)
    elif full:
        _fill(moments, products, _at_once(reference, others), "gram", "cross")
        if parts:
            _fill(moments, products, in_parts.overlaps(reference, others, parts), "overlaps", "overlaps")
    if shares or not full:
        _fill(moments, products, in_parts.diagonals(reference, others, shares or 1), "shares", "shares")
    return moments, products


def _fill(
    moments: list[Moments], products: list[Products], found: tuple[list[Array], list[Array]], own: str, mixed: str
) -> None:
    for moment, array in zip(moments, found[0], strict=True):
        setattr(moment, own, array)
    for product, array in zip(products, found[1], strict=True):
        setattr(product, mixed, array)


def _by_sentences(reference: Matrix, others: Sequence[Matrix], parts: int) -> bool:
    widest = max(matrix.neurons for matrix in others)
    return in_parts.by_sentences(reference.sentences, reference.neurons, widest, parts)


def _at_once(reference: Matrix, others: Sequence[Matrix]) -> tuple[list[Array], list[Array]]:
    """Gram matrices of all, and products of the reference with each other one; every row is read once."""
    grams, crosses = Sums(), Sums()
    for rows in blocks(reference):
        left = reference.centred(rows)
        grams.add(0, left.T @ left)
        rights = (matrix.centred(rows) for matrix in others)
        for place, (gram, cross) in enumerate(reference.backend.products(left, rights)):
            grams.add(place + 1, gram)
            crosses.add(place, cross)
    return grams.totals, crosses.totals
