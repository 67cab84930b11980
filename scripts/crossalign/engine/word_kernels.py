"""A Triton kernel for the cross-entropy of long rows: one reading for the sum, one more that writes the gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


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
    """The loss of each row; scores, contiguous, become their gradient. As `word_loss.plain_cross_entropy`."""
    rows, columns = scores.shape
    losses = torch.empty(rows, dtype=torch.float32, device=scores.device)
    _cross_entropy[(rows,)](scores, targets, losses, size, columns, BLOCK=4096, num_warps=8)
    return losses
