"""Canonical correlations of two matrices.

With orthonormal bases Q_x and Q_y of the neurons of X and Y, from singular value decompositions, the canonical
correlations are the singular values of T = Q_x^T Q_y. Neurons are scaled to unit length first, which canonical
correlations do not notice and rounding does. Directions whose share of the largest squared singular value is under
`RANK` are dropped: float32 input cannot resolve them (its own rounding is a share of about 4e-15), so they are
dependencies, not information.

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

import torch
from torch import Tensor

from crossalign.analysis.matrices import Matrix, standardised

RANK = 1e-12


def leading(values: Tensor, most: int | None = None) -> Tensor:
    """The left singular vectors of a centred matrix, the `most` largest, never more than its rank."""
    left, sizes, _ = torch.linalg.svd(values, full_matrices=False)
    tolerance = max(RANK, 10 * len(sizes) * 2.2e-16)
    return left[:, : int((sizes**2 > tolerance * sizes[0] ** 2).sum())][:, :most]


def basis(values: Tensor) -> Tensor:
    """An orthonormal basis of the neurons, whatever their sizes."""
    return leading(standardised(values))


def correlations(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Canonical correlations of two bases, largest first, and the canonical variates of the left one (columns)."""
    directions, rho, _ = torch.linalg.svd(left.T @ right, full_matrices=False)
    return rho.clamp(max=1.0), left @ directions


def projection_weighted(rho: Tensor, variates: Tensor, values: Tensor) -> float:
    """PWCCA (Morcos et al. 2018): correlations weighted by how much of X each canonical variate accounts for."""
    weights = (variates.T @ values).abs().sum(1)
    return float((weights * rho).sum() / weights.sum())


EPSILON = 1e-10
SHARE = 0.98


class EccoSide:
    """One matrix: which neurons count, and powers of its scaled covariance matrix."""

    def __init__(self, matrix: Matrix) -> None:
        gram = matrix.values.T @ matrix.values
        self.largest = gram.abs().max()
        self.kept = gram.diagonal() / self.largest >= EPSILON
        self.values, self.mean = matrix.values[:, self.kept], matrix.mean[self.kept]
        sizes, vectors = torch.linalg.eigh((gram / self.largest)[self.kept][:, self.kept])
        self.inverse_root = (vectors / (sizes + EPSILON).sqrt()) @ vectors.T
        # X - m = Q root with orthonormal Q, whatever the signs of rounded eigenvalues.
        self.root = (vectors * (self.largest * sizes.clamp(min=0.0)).sqrt()) @ vectors.T


def ecco(left: EccoSide, right: EccoSide) -> dict[str, float]:
    """Both indexes; NaN where a matrix does not vary."""
    if not (left.largest > 0 and right.largest > 0):
        return {"cca-ecco": float("nan"), "pwcca-ecco": float("nan")}
    cross = left.values.T @ right.values / left.largest.sqrt() / right.largest.sqrt()
    directions, rho, _ = torch.linalg.svd(left.inverse_root @ cross @ right.inverse_root, full_matrices=False)
    count = 1 + int((rho.cumsum(0) < SHARE * rho.sum()).sum())
    # With the constant column 1 / sqrt(n), Q is a basis in which all that step 4 speaks of is small: the means are
    # sqrt(n) m along that column, the mixtures u^T (X - m) + m have the coordinates `mixed`, the neurons `neurons`.
    means = (len(left.values) ** 0.5 * left.mean)[None, :]
    directions = directions * directions.gather(0, directions.abs().argmax(0, keepdim=True)).sign()
    mixed = torch.cat([left.root @ directions, means[:, : len(rho)]])
    neurons = torch.cat([left.root, means])
    weights = (torch.linalg.qr(mixed)[0].T @ neurons).abs().sum(1)
    return {"cca-ecco": float(rho[:count].mean()), "pwcca-ecco": float((weights * rho).sum() / weights.sum())}
