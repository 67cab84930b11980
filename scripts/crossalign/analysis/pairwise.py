"""Indexes that look at all pairs of sentences: CKA with a Gaussian kernel, and sentence matching.

Their work and their memory grow with the square of the number of sentences.
"""

from __future__ import annotations

import torch
from torch import Tensor

# A squared distance below this share of the squared lengths is rounding: the two sentences have the same vector.
SAME = 1e-12
# Cosines closer than this are equal: two copies of a sentence tie, whatever the order of the additions.
TIE = 1e-12


def rbf_kernel(values: Tensor) -> Tensor:
    """exp(-d^2 / (2 sigma^2)), centred; sigma^2 is the median of the squared distances that are not zero.

    The variant of the public code of `align-predict`. NaN where all sentences have the same vector.
    """
    lengths = (values * values).sum(1)
    distances = lengths[:, None] + lengths[None, :] - 2.0 * (values @ values.T)
    # Equal rows have equal lengths, so one of the two lengths is enough to judge by.
    distances *= distances > 2.0 * SAME * lengths[:, None]
    near = distances[distances > 0].sort().values
    if not len(near):
        return torch.full_like(distances, float("nan"))
    median = (near[(len(near) - 1) // 2] + near[len(near) // 2]) / 2
    kernel = distances.mul_(-0.5 / median).exp_()
    means = kernel.mean(0)
    return kernel - means[:, None] - means[None, :] + means.mean()


def rbf_cka(left: Tensor, right: Tensor) -> float:
    """CKA of two centred kernels."""
    return float((left * right).sum() / (left.norm() * right.norm()))


def matching(reference: Tensor, other: Tensor) -> Tensor:
    """Which sentences have the translation with the highest cosine of all sentences of the other language.

    Not centred. A tie counts as found; a sentence whose vector is zero in either language is never found.
    """
    left, right = (torch.nn.functional.normalize(rows, eps=1e-300) for rows in (reference, other))
    own = (left * right).sum(1)
    cosines = left @ right.T
    cosines.fill_diagonal_(-2.0)
    known = reference.any(1) & other.any(1)
    return known & (own >= cosines.amax(1) - TIE)
