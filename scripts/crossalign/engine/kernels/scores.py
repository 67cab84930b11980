"""Label scores of the parser (many products of a small matrix and a vector), and the cross-entropy of long rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _score(matrices, vectors, scores, labels, size, LABELS: tl.constexpr, SIZE: tl.constexpr):
    n = tl.program_id(0).to(tl.int64)
    row, k = tl.arange(0, LABELS), tl.arange(0, SIZE)
    inside = (row < labels)[:, None] & (k < size)[None, :]
    at = (n * labels + row[:, None]) * size + k[None, :]
    m = tl.load(matrices + at, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(vectors + n * size + k, mask=k < size, other=0.0).to(tl.float32)
    tl.store(scores + n * labels + row, tl.sum(m * v[None, :], 1), mask=row < labels)


@triton.jit
def _score_backward(
    matrices, vectors, given, dmatrices, dvectors, labels, size, LABELS: tl.constexpr, SIZE: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    row, k = tl.arange(0, LABELS), tl.arange(0, SIZE)
    inside = (row < labels)[:, None] & (k < size)[None, :]
    at = (n * labels + row[:, None]) * size + k[None, :]
    m = tl.load(matrices + at, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(vectors + n * size + k, mask=k < size, other=0.0).to(tl.float32)
    g = tl.load(given + n * labels + row, mask=row < labels, other=0.0).to(tl.float32)[:, None]
    tl.store(dmatrices + at, (g * v[None, :]).to(dmatrices.dtype.element_ty), mask=inside)
    dv = tl.sum(g * m, 0)
    tl.store(dvectors + n * size + k, dv.to(dvectors.dtype.element_ty), mask=k < size)


class MatrixVector(torch.autograd.Function):
    """(..., labels, size) times (..., size) to (..., labels), summed and given back in fp32."""

    @staticmethod
    def forward(ctx, matrices: Tensor, vectors: Tensor) -> Tensor:
        matrices, vectors = matrices.contiguous(), vectors.contiguous()
        *outer, labels, size = matrices.shape
        scores = torch.empty(*outer, labels, dtype=torch.float32, device=matrices.device)
        ctx.save_for_backward(matrices, vectors)
        ctx.sizes = {"LABELS": triton.next_power_of_2(labels), "SIZE": triton.next_power_of_2(size), "num_warps": 8}
        _score[(vectors.numel() // size,)](matrices, vectors, scores, labels, size, **ctx.sizes)
        return scores

    @staticmethod
    def backward(ctx, given: Tensor):
        matrices, vectors = ctx.saved_tensors
        labels, size = matrices.shape[-2:]
        dmatrices, dvectors = torch.empty_like(matrices), torch.empty_like(vectors)
        _score_backward[(vectors.numel() // size,)](
            matrices, vectors, given.contiguous(), dmatrices, dvectors, labels, size, **ctx.sizes
        )
        return dmatrices, dvectors


@triton.jit
def _cross_entropy(scores, targets, losses, size, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = scores + row * columns
    target = tl.load(targets + row)
    # Read before anything is overwritten.
    truth = tl.load(start + tl.maximum(target, 0)).to(tl.float32)
    c = tl.arange(0, BLOCK)
    # Each lane keeps its own maximum and sum. Not minus infinity: the difference of two of them is no number.
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, size, BLOCK):
        value = tl.load(start + first + c, mask=first + c < size, other=-1e30).to(tl.float32)
        higher = tl.maximum(top, value)
        total = total * tl.exp(top - higher) + tl.exp(value - higher)
        top = higher
    highest = tl.max(top, 0)
    log_sum = highest + tl.log(tl.sum(total * tl.exp(top - highest), 0))
    tl.store(losses + row, tl.where(target >= 0, log_sum - truth, 0.0))
    for first in range(0, columns, BLOCK):
        at = first + c
        value = tl.load(start + at, mask=at < size, other=-1e30).to(tl.float32)
        gradient = tl.exp(value - log_sum) - tl.where(at == target, 1.0, 0.0)
        tl.store(start + at, gradient.to(scores.dtype.element_ty), mask=at < columns)


def cross_entropy_(scores: Tensor, targets: Tensor, size: int) -> Tensor:
    """The loss of each row; scores, contiguous, become their gradient. As `lm_heads.plain_cross_entropy`."""
    rows, columns = scores.shape
    losses = torch.empty(rows, dtype=torch.float32, device=scores.device)
    _cross_entropy[(rows,)](scores, targets, losses, size, columns, BLOCK=4096, num_warps=8)
    return losses
