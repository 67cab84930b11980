"""CCA and PWCCA as the library `ecco` computes them, which the authors of `anc` used for their figures.

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

import numpy as np

from crossalign.analysis.backends import Array, Backend
from crossalign.analysis.moments import Moments, Products

EPSILON = 1e-10
SHARE = 0.98
INDEXES = ("cca-ecco", "pwcca-ecco")


class _Side:
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


def similarities(moments: Sequence[Moments], products: Sequence[Products], backend: Backend) -> list[dict[str, float]]:
    """Both indexes for the first matrix with each of the others; NaN where a matrix does not vary."""
    usable = [bool(moment.varies.any()) for moment in moments]
    sides = [_Side(moment, backend) if known else None for moment, known in zip(moments, usable, strict=True)]
    return [
        _pair(sides[0], side, product.cross, moments[0].matrix.sentences, backend)
        if sides[0] and side
        else dict.fromkeys(INDEXES, float("nan"))
        for side, product in zip(sides[1:], products, strict=True)
    ]


def _pair(left: _Side, right: _Side, cross: Array, sentences: int, backend: Backend) -> dict[str, float]:
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
