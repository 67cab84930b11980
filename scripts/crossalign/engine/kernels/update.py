"""Triton kernels of the update: the norm of the gradient, and AdamW in one pass. Memory binds both."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Programs that sum squares: each leaves one number.
_PROGRAMS = 1024


@triton.jit
def _adamw(
    master, exp_avg, exp_avg_sq, grad, low, numbers, scale, count, beta1, beta2, eps, decay,
    HAS_LOW: tl.constexpr, HAS_SCALE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    rate, correction1, correction2 = tl.load(numbers), tl.load(numbers + 2), tl.load(numbers + 3)
    g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_SCALE:
        g *= tl.load(scale)
    p = tl.load(master + at, mask=inside, other=0.0)
    m = tl.load(exp_avg + at, mask=inside, other=0.0)
    v = tl.load(exp_avg_sq + at, mask=inside, other=0.0)
    p *= 1.0 - rate * decay
    m += (1.0 - beta1) * (g - m)
    v = beta2 * v + (1.0 - beta2) * g * g
    p -= (rate / correction1) * m / (tl.sqrt(v) / correction2 + eps)
    tl.store(master + at, p, mask=inside)
    tl.store(exp_avg + at, m, mask=inside)
    tl.store(exp_avg_sq + at, v, mask=inside)
    if HAS_LOW:
        tl.store(low + at, p.to(low.dtype.element_ty), mask=inside)


@triton.jit
def _squares(grad, partial, count, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(program * BLOCK, count, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(grad + at, mask=at < count, other=0.0).to(tl.float32)
        sums += g * g
    tl.store(partial + program, tl.sum(sums, 0))


@triton.jit
def _clip(partial, scale, count, clip, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(partial + at, mask=at < count, other=0.0), 0)
    tl.store(scale, tl.minimum(clip / (tl.sqrt(total) + 1e-6), 1.0))


def clipping(gradients: list[Tensor], clip: float) -> Tensor:
    """The factor that brings the norm of all gradients together down to `clip`; 1 where it is smaller anyway."""
    partial = torch.empty(len(gradients), _PROGRAMS, dtype=torch.float32, device=gradients[0].device)
    for gradient, row in zip(gradients, partial, strict=True):
        _squares[(_PROGRAMS,)](gradient, row, gradient.numel(), BLOCK=4096, num_warps=8)
    scale = torch.empty(1, dtype=torch.float32, device=partial.device)
    size = triton.next_power_of_2(partial.numel())
    _clip[(1,)](partial, scale, partial.numel(), clip, BLOCK=size, num_warps=8)
    return scale


def adamw(
    master: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, grad: Tensor, low: Tensor | None, numbers: Tensor,
    scale: Tensor | None, settings, decay: float,
) -> None:  # fmt: skip
    """AdamW in one pass, with clipping (`scale`) and the low-precision copy; `numbers` as in `Arena.update`."""
    count, block = master.numel(), 2048
    _adamw[(triton.cdiv(count, block),)](
        master, exp_avg, exp_avg_sq, grad, master if low is None else low, numbers, numbers if scale is None else scale,
        count, settings.betas[0], settings.betas[1], settings.eps, decay,
        HAS_LOW=low is not None, HAS_SCALE=scale is not None, BLOCK=block, num_warps=8,
    )  # fmt: skip
