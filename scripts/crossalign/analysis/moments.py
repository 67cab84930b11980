"""Second moments of one matrix and many others, and their products: all that the linear indexes need.

For the bootstrap, sentences are dealt into parts: sentence i belongs to part i mod P. A resample draws P parts with
replacement, part b w_b times, and its second moments are sums over parts, C(w) = sum_b w_b C_b with C_b = X_b^T Y_b.
CKA needs their Frobenius norms only,

    |C(w)|^2 = w^T O w,   O_bc = <C_b, C_c> = <X_b X_c^T, Y_b Y_c^T>,

so P x P numbers, the overlaps, serve all resamples. They come from the matrices C_b where sentences are many, or from
the kernels X X^T and Y Y^T where neurons are many. ANC needs the diagonals of the C_b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from crossalign.analysis.backends import Array
from crossalign.analysis.matrices import CONSTANT, Matrix, blocks, ranges


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
            moment.gram, moment.overlaps = products_in_parts(moment.matrix, moment.matrix, parts)
        for product, other in zip(products, others, strict=True):
            product.cross, product.overlaps = products_in_parts(reference, other, parts)
    elif full:
        _fill(moments, products, _at_once(reference, others), "gram", "cross")
        if parts:
            _fill(moments, products, overlaps_by_kernels(reference, others, parts), "overlaps", "overlaps")
    if shares or not full:
        _fill(moments, products, diagonals(reference, others, shares or 1), "shares", "shares")
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
    return by_sentences(reference.sentences, reference.neurons, widest, parts)


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


# Bytes of the matrices C_b that are held at a time; columns of Y come in groups where all of them would take more. And
# bytes of the rows that go into them: the more, the less often these matrices are written.
ROOM = 1 << 28


def dealt(rows: Array, parts: int, matrix: Matrix) -> Array:
    """Rows that begin with part 0 as rounds x parts x neurons; zeros, which add nothing, fill up the last round."""
    if missing := -len(rows) % parts:
        rows = matrix.backend.xp.concatenate([rows, matrix.backend.zeros(missing, rows.shape[1])])
    return rows.reshape(-1, parts, rows.shape[1])


def _whole_rounds(matrix: Matrix, size: int, parts: int) -> Iterator[slice]:
    """Ranges of about `size` rows that begin with part 0."""
    yield from ranges(matrix.sentences, max(1, size // parts) * parts)


def diagonals(reference: Matrix, others: Sequence[Matrix], parts: int) -> tuple[list[Array], list[Array]]:
    """Parts x neurons: what each part adds to the squares of all matrices, and to the products with the reference."""
    squares, products = [0.0] * (1 + len(others)), [0.0] * len(others)
    for rows in _whole_rounds(reference, reference.backend.block, parts):
        left = dealt(reference.centred(rows), parts, reference)
        squares[0] = squares[0] + (left * left).sum(0)
        for place, matrix in enumerate(others):
            right = dealt(matrix.centred(rows), parts, matrix)
            squares[place + 1] = squares[place + 1] + (right * right).sum(0)
            products[place] = products[place] + (left * right).sum(0)
    return squares, products


def by_sentences(sentences: int, left: int, right: int, parts: int) -> bool:
    """Whether kernels beside the whole products are cheaper than products in parts.

    Estimated in multiplications. A kernel takes half of n^2 d, because it is symmetric, and a pass over it as long as
    ten n^2. Products in parts cost their overlaps, and half a product more than whole ones: the Gram matrices of parts
    are not computed as symmetric ones.
    """
    return sentences**2 * (right / 2 + 10) < left * right * (parts**2 / 2 + sentences / 2)


def overlaps_by_kernels(reference: Matrix, others: Sequence[Matrix], parts: int) -> tuple[list[Array], list[Array]]:
    """By kernels: overlaps of all matrices with themselves, and of the reference with each other one."""
    own, cross = [0.0] * (1 + len(others)), [0.0] * len(others)
    tiles = _whole_rounds(reference, reference.backend.tile, parts)
    # Kernels are symmetric: a tile off the diagonal stands for its mirror image too.
    for rows, columns in combinations_with_replacement(tiles, 2):
        mirrored = rows != columns
        first = _kernel(reference, rows, columns, parts)
        own[0] = own[0] + _overlap(first, first, reference, mirrored)
        for place, matrix in enumerate(others):
            second = _kernel(matrix, rows, columns, parts)
            own[place + 1] = own[place + 1] + _overlap(second, second, matrix, mirrored)
            cross[place] = cross[place] + _overlap(first, second, matrix, mirrored)
    return own, cross


def _kernel(matrix: Matrix, rows: slice, columns: slice, parts: int) -> Array:
    """A tile of X X^T, filled up to whole rounds: rounds x parts x rounds x parts."""
    left = dealt(matrix.centred(rows), parts, matrix).reshape(-1, matrix.neurons)
    right = left if rows == columns else dealt(matrix.centred(columns), parts, matrix).reshape(-1, matrix.neurons)
    return (left @ right.T).reshape(-1, parts, len(right) // parts, parts)


def _overlap(first: Array, second: Array, matrix: Matrix, mirrored: bool) -> Array:
    """What a tile of two kernels adds to the overlaps of the parts."""
    found = matrix.backend.xp.einsum("abcd,abcd->bd", first, second)
    return found + found.T if mirrored else found


def products_in_parts(left: Matrix, right: Matrix, parts: int) -> tuple[Array, Array]:
    """By neurons: X^T Y, and the overlaps of its parts."""
    backend = left.backend
    totals, found = [], 0.0
    for columns in ranges(right.neurons, max(1, ROOM // (8 * parts * left.neurons))):
        matrices = None
        for rows in _whole_rounds(left, ROOM // (8 * left.neurons), parts):
            first = dealt(left.centred(rows), parts, left).swapaxes(0, 1)
            second = first if right is left else dealt(right.centred(rows), parts, right).swapaxes(0, 1)
            some = first.mT @ second[:, :, columns]
            matrices = some if matrices is None else matrices.__iadd__(some)
        totals.append(matrices.sum(0))
        flat = matrices.reshape(parts, -1)
        found = found + flat @ flat.T
    return backend.xp.concatenate(totals, 1), found
