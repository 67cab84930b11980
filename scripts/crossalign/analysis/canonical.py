"""Canonical correlations of one matrix with many others, from Gram matrices.

With X = Q_x R_x and Y = Q_y R_y the canonical correlations are the singular values of T = Q_x^T Q_y. The orthonormal
bases are never formed from a tall decomposition: Q = X B, where B whitens the Gram matrix, so the tall work is one
product per language and one per pair. Neurons are scaled to unit length first, which canonical correlations do not
notice and rounding does.

Rounding: forming a Gram matrix squares the condition number k, so T taken from Gram matrices is off by about u k^2 (u
= 1.1e-16), against u k for a tall QR. `GRAM_LIMIT` bounds k^2; beyond it the rows are orthogonalised once more
(Cholesky QR twice; Yamamoto et al. 2015), which brings the error back to u k. Directions whose share of the largest
eigenvalue of the correlation matrix is under `RANK` are dropped: float32 input cannot resolve them (its own rounding
is a share of about 4e-15), so they are dependencies, not information.

The last part: CCA and PWCCA as the library `ecco` computes them, which the authors of `anc` used for their figures.

Written from the public code of ecco (`analysis.py` and the `svcca_lib` in it), which works on neurons x tokens; S is a
covariance matrix, divided by its largest entry.

    1. Neurons whose variance is below 1e-10 of that entry are left out, and 1e-10 is added to each variance.
    2. u s v^T = S_xx^-1/2 S_xy S_yy^-1/2, a singular value decomposition: s are the canonical correlations.
    3. cca-ecco is the mean of the leading correlations: as few as make up 98 % of the sum of all.
    4. pwcca-ecco is the mean of all correlations, weighted by sum_j |<p_i, x_j>|, where x_j are the neurons with their
       means and p_i are the columns of u^T (X - m) + m, made orthonormal one after the other.

Step 4 differs from Morcos et al. (2018): the directions u belong to the whitened neurons, S_xx^-1/2 X, but are applied
to the neurons as they are; and the means m, one per neuron, are added to directions that are mixtures of neurons. The
weights then lean to the first directions, which point to where X varies most, so the index is higher than `pwcca`.

What a decomposition leaves open, the sign of each u, matters in step 4 because of the means, by some 0.005; here the
largest entry of each u is positive. ecco takes the weights of Y where Y has fewer neurons, from a mixture of X and Y;
here they are always those of X. ecco's SVCCA is the plain mean of the correlations, as `svcca` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossalign.analysis.backends import Array, Backend
from crossalign.analysis.indexes import ECCO
from crossalign.analysis.matrices import Matrix, blocks
from crossalign.analysis.moments import Moments, Products, Sums

GRAM_LIMIT = 1e7
RANK = 1e-12


@dataclass
class Basis:
    """B with (X B)^T (X B) = 1, and the squared condition number of the scaled X, bounded from above."""

    whitener: Array
    condition: float

    @property
    def rank(self) -> int:
        """How many directions X has."""
        return self.whitener.shape[1]


def basis(moments: Moments, backend: Backend) -> Basis:
    """An orthonormal basis of the columns of a centred matrix, as a whitening matrix."""
    xp = backend.xp
    varies = moments.varies
    # The constants are multiplied away below; the one only keeps the division defined.
    inverse = varies / xp.sqrt(xp.where(varies, moments.squares, xp.ones_like(moments.squares)))
    correlation = moments.gram * inverse[:, None] * inverse[None, :]
    if bool(varies.all()) and (whitener := backend.inverse_factor(correlation)) is not None:
        # Frobenius norms: never below the spectral ones, and much cheaper.
        condition = float(xp.linalg.norm(correlation)) * float(xp.linalg.norm(whitener @ whitener.T))
        if condition * RANK < 1.0:
            return Basis(inverse[:, None] * whitener, condition)
    [(values, vectors)] = backend.eigh([correlation])
    tolerance = max(RANK, 10 * len(values) * 2.2e-16)
    kept = (values > tolerance * values[-1]) & (values[-1] > 0)
    values, vectors = values[kept], vectors[:, kept]
    condition = float(values[-1] / values[0]) if len(values) else 1.0
    return Basis(inverse[:, None] * vectors / xp.sqrt(values), condition)


def cross_bases(
    matrices: Sequence[Matrix], moments: Sequence[Moments], products: Sequence[Products]
) -> tuple[list[Basis], list[Array]]:
    """Bases of the reference (first) and of the others, and T = Q_x^T Q_y for each other one."""
    backend = matrices[0].backend
    bases = [basis(moment, backend) for moment in moments]
    left = bases[0].whitener
    crosses = [left.T @ (product.cross @ right.whitener) for product, right in zip(products, bases[1:], strict=True)]
    again = [place for place in range(1, len(bases)) if max(bases[0].condition, bases[place].condition) > GRAM_LIMIT]
    if again:
        refined = _orthogonalise([matrices[0]] + [matrices[k] for k in again], [bases[0]] + [bases[k] for k in again])
        for place, (right, cross) in zip(again, refined, strict=True):
            bases[place], crosses[place - 1] = right, cross
    return bases, crosses


def _orthogonalise(matrices: Sequence[Matrix], bases: Sequence[Basis]) -> list[tuple[Basis, Array]]:
    """Second round: Q itself, row block by row block; corrects the bases of all, and T of the first with each other."""
    backend = matrices[0].backend
    grams, crosses = Sums(), Sums()
    for rows in blocks(matrices[0]):
        left = matrices[0].centred(rows) @ bases[0].whitener
        rights = (matrix.centred(rows) @ found.whitener for matrix, found in zip(matrices, bases, strict=True))
        for place, (gram, cross) in enumerate(backend.products(left, rights)):
            grams.add(place, gram)
            crosses.add(place, cross)
    # Nearly the unit matrix, so it is positive definite and its factor is harmless.
    corrections = [backend.inverse_factor(gram) if len(gram) else gram for gram in grams.totals]
    # The reference's basis changes for pairs that needed no second round too, by no more than their own rounding.
    for found, correction in zip(bases, corrections, strict=True):
        found.whitener = found.whitener @ correction
    return [
        (found, corrections[0].T @ cross @ correction)
        for found, cross, correction in list(zip(bases, crosses.totals, corrections, strict=True))[1:]
    ]


def correlations(crosses: Sequence[Array], backend: Backend) -> list[tuple[Array, Array]]:
    """Canonical correlations, largest first, and the left canonical directions (columns, in the basis Q_x) of each T.

    The directions are eigenvectors of T T^T, the correlations the lengths of T^T u: the square roots of the
    eigenvalues would be off by 1e-8 where a correlation is near zero.
    """
    found = []
    for cross, (_, vectors) in zip(crosses, backend.eigh([cross @ cross.T for cross in crosses]), strict=True):
        count = min(cross.shape)
        directions = vectors[:, vectors.shape[1] - count :]
        lengths = backend.xp.sqrt(((cross.T @ directions) ** 2).sum(0))
        # flip and not a negative step: PyTorch has none.
        flip = backend.xp.flip
        found.append((flip(backend.xp.clip(lengths, 0.0, 1.0), (0,)), flip(directions, (1,))))
    return found


def projection_weighted(rho: Array, directions: Array, coordinates: Array, backend: Backend) -> float:
    """PWCCA (Morcos et al. 2018): correlations weighted by how much of X each canonical variate accounts for.

    `coordinates` is Q_x^T X: the neurons in the basis of the directions.
    """
    weights = backend.xp.abs(directions.T @ coordinates).sum(1)
    return float((weights * rho).sum() / weights.sum())


def leading(moments: Sequence[Moments], bases: Sequence[Basis], backend: Backend, directions: int) -> list[Array]:
    """So many leading left singular vectors of each centred matrix, never more than its rank, in the basis Q (columns):
    the SV of SVCCA."""
    xp = backend.xp
    found = []
    decompositions = backend.eigh([moment.gram for moment in moments], directions)
    for moment, base, (values, vectors) in zip(moments, bases, decompositions, strict=True):
        values, vectors = xp.flip(values, (0,)), xp.flip(vectors, (1,))
        count = min(directions, base.rank, int((values > RANK * values[0]).sum()))
        coordinates = base.whitener.T @ (moment.gram @ vectors[:, :count]) / xp.sqrt(values[:count])
        found.append(xp.linalg.qr(coordinates)[0])
    return found


EPSILON = 1e-10
SHARE = 0.98


class _EccoSide:
    """One matrix: which neurons count, and powers of its scaled covariance matrix."""

    def __init__(self, moments: Moments, backend: Backend) -> None:
        xp = backend.xp
        self.largest = xp.abs(moments.gram).max()
        scaled = moments.gram / self.largest
        self.kept = scaled.diagonal() >= EPSILON
        [(values, vectors)] = backend.eigh([scaled[self.kept][:, self.kept]])
        self.inverse_root = (vectors / xp.sqrt(values + EPSILON)) @ vectors.T
        # X - m = Q root with orthonormal Q, whatever the signs of rounded eigenvalues.
        self.root = (vectors * xp.sqrt(self.largest * xp.clip(values, 0.0, None))) @ vectors.T
        self.mean = moments.matrix.mean[self.kept]


def ecco(moments: Sequence[Moments], products: Sequence[Products], backend: Backend) -> list[dict[str, float]]:
    """Both indexes for the first matrix with each of the others; NaN where a matrix does not vary."""
    usable = [bool(moment.varies.any()) for moment in moments]
    sides = [_EccoSide(moment, backend) if known else None for moment, known in zip(moments, usable, strict=True)]
    return [
        _ecco_pair(sides[0], side, product.cross, moments[0].matrix.sentences, backend)
        if sides[0] and side
        else dict.fromkeys(ECCO, float("nan"))
        for side, product in zip(sides[1:], products, strict=True)
    ]


def _ecco_pair(left: _EccoSide, right: _EccoSide, cross: Array, sentences: int, backend: Backend) -> dict[str, float]:
    xp = backend.xp
    cross = cross[left.kept][:, right.kept] / xp.sqrt(left.largest) / xp.sqrt(right.largest)
    directions, rho, _ = xp.linalg.svd(left.inverse_root @ cross @ right.inverse_root, full_matrices=False)
    values = backend.host(rho)
    count = 1 + int((np.cumsum(values) < SHARE * values.sum()).sum())
    # With the constant column 1 / sqrt(n), Q is a basis in which all that step 4 speaks of is small: the means are
    # sqrt(n) m along that column, the mixtures u^T (X - m) + m have the coordinates `mixed`, the neurons `neurons`.
    means = (sentences**0.5 * left.mean)[None, :]
    directions = directions * _signs(backend.host(directions), backend)
    mixed = xp.concatenate([left.root @ directions, means[:, : len(rho)]])
    neurons = xp.concatenate([left.root, means])
    weights = xp.abs(xp.linalg.qr(mixed)[0].T @ neurons).sum(1)
    return {"cca-ecco": float(values[:count].mean()), "pwcca-ecco": float((weights * rho).sum() / weights.sum())}


def _signs(directions: np.ndarray, backend: Backend) -> Array:
    """What makes the largest entry of each column positive."""
    rows = np.abs(directions).argmax(0)
    return backend.load(np.where(directions[rows, np.arange(len(rows))] < 0, -1.0, 1.0))
