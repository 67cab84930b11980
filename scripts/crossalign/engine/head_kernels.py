"""A Triton kernel for the parser's label scores at given heads: many small products of a matrix and a vector."""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


if triton is not None:

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
