"""Triton kernels for the parts of a step that memory or launches bind: AdamW, and the end of a Post-LN block.

PyTorch's CUDA builds bring Triton. Where it is missing, or CROSSALIGN_TRITON=0, plain PyTorch does the same.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from crossalign.models.ops import Sink

if TYPE_CHECKING:
    from crossalign.training.arena import AdamW

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


@functools.cache
def available() -> bool:
    """Whether the kernels can be used."""
    return triton is not None and os.environ.get("CROSSALIGN_TRITON", "1") != "0"


if triton is not None:

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
    def _add_norm_forward(
        x, residual, weight, bias, y, total, mean, rstd, seed, base, columns, eps, dropout,
        DROP: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0)
        c = tl.arange(0, BLOCK)
        inside = c < columns
        at = row * columns + c
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        if DROP:
            keep = tl.rand(tl.load(seed), base + row * columns + c) >= dropout
            value = tl.where(keep, value / (1.0 - dropout), 0.0)
        value += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
        # The statistics belong to the rounded sum, because that is what the backward pass sees.
        rounded = value.to(total.dtype.element_ty)
        tl.store(total + at, rounded, mask=inside)
        value = rounded.to(tl.float32)
        m = tl.sum(value, 0) / columns
        centred = tl.where(inside, value - m, 0.0)
        r = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
        w = tl.load(weight + c, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(bias + c, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, (centred * r * w + b).to(y.dtype.element_ty), mask=inside)
        tl.store(mean + row, m)
        tl.store(rstd + row, r)

    @triton.jit
    def _add_norm_backward(
        dy, total, weight, mean, rstd, dx, dresidual, partial, seed, base, rows, columns, dropout,
        DROP: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0)
        c = tl.arange(0, BLOCK)
        inside = c < columns
        w = tl.load(weight + c, mask=inside, other=0.0).to(tl.float32)
        sum_w = tl.zeros((BLOCK,), tl.float32)
        sum_b = tl.zeros((BLOCK,), tl.float32)
        sum_x = tl.zeros((BLOCK,), tl.float32)
        for row in range(program, rows, tl.num_programs(0)):
            at = row * columns + c
            g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
            s = tl.load(total + at, mask=inside, other=0.0).to(tl.float32)
            r = tl.load(rstd + row)
            normal = tl.where(inside, (s - tl.load(mean + row)) * r, 0.0)
            wg = w * g
            d = (wg - normal * (tl.sum(wg * normal, 0) / columns) - tl.sum(wg, 0) / columns) * r
            d = tl.where(inside, d, 0.0)
            tl.store(dresidual + at, d.to(dresidual.dtype.element_ty), mask=inside)
            sum_w += g * normal
            sum_b += g
            if DROP:
                keep = tl.rand(tl.load(seed), base + row * columns + c) >= dropout
                d = tl.where(keep, d / (1.0 - dropout), 0.0)
                tl.store(dx + at, d.to(dx.dtype.element_ty), mask=inside)
            sum_x += d
        out = partial + program * 3 * columns + c
        tl.store(out, sum_w, mask=inside)
        tl.store(out + columns, sum_b, mask=inside)
        tl.store(out + 2 * columns, sum_x, mask=inside)

    @triton.jit
    def _column_sums(
        partial, first, second, third, programs, columns,
        ADD1: tl.constexpr, ADD2: tl.constexpr, ADD3: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        r = tl.arange(0, ROWS)
        c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        which = tl.program_id(1)
        inside = c < columns
        at = partial + r[:, None] * 3 * columns + which * columns + c[None, :]
        sums = tl.sum(tl.load(at, mask=(r[:, None] < programs) & inside[None, :], other=0.0), 0)
        if which == 0:
            if ADD1:
                sums += tl.load(first + c, mask=inside, other=0.0).to(tl.float32)
            tl.store(first + c, sums.to(first.dtype.element_ty), mask=inside)
        elif which == 1:
            if ADD2:
                sums += tl.load(second + c, mask=inside, other=0.0).to(tl.float32)
            tl.store(second + c, sums.to(second.dtype.element_ty), mask=inside)
        else:
            if ADD3:
                sums += tl.load(third + c, mask=inside, other=0.0).to(tl.float32)
            tl.store(third + c, sums.to(third.dtype.element_ty), mask=inside)


def adamw(
    master: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    grad: Tensor,
    low: Tensor | None,
    numbers: Tensor,
    scale: Tensor | None,
    settings: AdamW,
    decay: float,
) -> None:
    """AdamW in one pass, with clipping (`scale`) and the low-precision copy; `numbers` as in `Arena.update`."""
    count, block = master.numel(), 2048
    _adamw[(triton.cdiv(count, block),)](
        master, exp_avg, exp_avg_sq, grad, master if low is None else low, numbers, numbers if scale is None else scale,
        count, settings.betas[0], settings.betas[1], settings.eps, decay,
        HAS_LOW=low is not None, HAS_SCALE=scale is not None, BLOCK=block, num_warps=8,
    )  # fmt: skip


class AddNorm(torch.autograd.Function):
    """LayerNorm(residual + dropout(x)) in one kernel, its backward in two.

    The gradients of the norm's weight and bias, and of the bias of the linear layer that made x, go to `sinks`.
    """

    @staticmethod
    def forward(
        ctx,
        x: Tensor,
        residual: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        dropout: float,
        random,
        sinks: tuple[Sink, ...],
    ) -> Tensor:
        rows, columns = x.shape
        y, total = torch.empty_like(residual), torch.empty_like(residual)
        mean, rstd = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
        seed, base = random if dropout > 0 else (mean, 0)
        block = triton.next_power_of_2(columns)
        _add_norm_forward[(rows,)](
            x, residual, weight, bias, y, total, mean, rstd, seed, base, columns, eps, dropout,
            DROP=dropout > 0, BLOCK=block, num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(total, weight, mean, rstd, seed)
        ctx.base, ctx.dropout, ctx.sinks, ctx.block = base, dropout, sinks, block
        return y

    @staticmethod
    def backward(ctx, dy: Tensor):
        total, weight, mean, rstd, seed = ctx.saved_tensors
        rows, columns = total.shape
        dresidual = torch.empty_like(total)
        dx = torch.empty_like(total) if ctx.dropout > 0 else dresidual
        programs = min(rows, 128)
        partial = torch.empty(programs, 3, columns, dtype=torch.float32, device=dy.device)
        _add_norm_backward[(programs,)](
            dy.contiguous(), total, weight, mean, rstd, dx, dresidual, partial, seed, ctx.base, rows, columns,
            ctx.dropout, DROP=ctx.dropout > 0, BLOCK=ctx.block, num_warps=4,
        )  # fmt: skip
        first, second, third = ctx.sinks
        _column_sums[(triton.cdiv(columns, 32), 3)](
            partial, first.grad, second.grad, third.grad, programs, columns,
            ADD1=not first.fresh, ADD2=not second.fresh, ADD3=not third.fresh, ROWS=128, BLOCK=32, num_warps=4,
        )  # fmt: skip
        for sink in ctx.sinks:
            sink.fresh = False
        return dx, dresidual, None, None, None, None, None, None
