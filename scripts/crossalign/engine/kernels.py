"""Triton kernels for the parts of a step that memory or launches bind: the end of a Post-LN block, sums over rows.

PyTorch's CUDA builds bring Triton. Where it is missing, or CROSSALIGN_TRITON=0, plain PyTorch does the same.
`attention_kernels` and `update_kernels` hold the others.
"""

from __future__ import annotations

import functools
import os

import torch
from torch import Tensor

from crossalign.engine.sinks import Branch, Sink, aside

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
    from crossalign.engine.random_kernels import kept

    @triton.jit
    def _add_norm_forward(
        x, residual, weight, bias, y, total, mean, rstd, seed, base, rows, columns, eps, dropout,
        DROP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        c = tl.arange(0, BLOCK)
        inside = (r < rows)[:, None] & (c < columns)[None, :]
        at = r[:, None] * columns + c[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        if DROP:
            keep = kept(tl.load(seed), base, tl.program_id(0) * ROWS, c, columns, dropout, ROWS, BLOCK)
            value = tl.where(keep, value / (1.0 - dropout), 0.0)
        value += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
        # The statistics belong to the rounded sum, because that is what the backward pass sees.
        rounded = value.to(total.dtype.element_ty)
        tl.store(total + at, rounded, mask=inside)
        value = rounded.to(tl.float32)
        m = tl.sum(value, 1) / columns
        centred = tl.where(inside, value - m[:, None], 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / columns + eps)
        w = tl.load(weight + c, mask=c < columns, other=0.0).to(tl.float32)
        b = tl.load(bias + c, mask=c < columns, other=0.0).to(tl.float32)
        result = centred * scale[:, None] * w[None, :] + b[None, :]
        tl.store(y + at, result.to(y.dtype.element_ty), mask=inside)
        tl.store(mean + r, m, mask=r < rows)
        tl.store(rstd + r, scale, mask=r < rows)

    @triton.jit
    def _add_both(left1, left2, right1, right2):
        return left1 + right1, left2 + right2

    @triton.jit
    def _add_norm_backward(
        dy, total, weight, mean, rstd, dx, dresidual, partial, seed, base, rows, columns, dropout,
        DROP: tl.constexpr, TWO: tl.constexpr, STAGES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0)
        c = tl.arange(0, BLOCK)
        w = tl.load(weight + c, mask=c < columns, other=0.0).to(tl.float32)[None, :]
        sum_w = tl.zeros((BLOCK,), tl.float32)
        sum_b = tl.zeros((BLOCK,), tl.float32)
        sum_x = tl.zeros((BLOCK,), tl.float32)
        for start in tl.range(program * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
            r = start + tl.arange(0, ROWS)
            inside = (r < rows)[:, None] & (c < columns)[None, :]
            at = r[:, None] * columns + c[None, :]
            g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
            s = tl.load(total + at, mask=inside, other=0.0).to(tl.float32)
            m = tl.load(mean + r, mask=r < rows, other=0.0)[:, None]
            scale = tl.load(rstd + r, mask=r < rows, other=0.0)[:, None]
            normal = tl.where(inside, (s - m) * scale, 0.0)
            wg = w * g
            along, across = tl.reduce((wg * normal, wg), 1, _add_both)
            d = (wg - normal * (along / columns)[:, None] - (across / columns)[:, None]) * scale
            d = tl.where(inside, d, 0.0)
            tl.store(dresidual + at, d.to(dresidual.dtype.element_ty), mask=inside)
            sum_w += tl.sum(g * normal, 0)
            sum_b += tl.sum(g, 0)
            if DROP:
                keep = kept(tl.load(seed), base, start, c, columns, dropout, ROWS, BLOCK)
                d = tl.where(keep, d / (1.0 - dropout), 0.0)
            if TWO:
                tl.store(dx + at, d.to(dx.dtype.element_ty), mask=inside)
            sum_x += tl.sum(d, 0)
        out = partial + program * 3 * columns + c
        tl.store(out, sum_w, mask=c < columns)
        tl.store(out + columns, sum_b, mask=c < columns)
        tl.store(out + 2 * columns, sum_x, mask=c < columns)

    @triton.jit
    def _put(target, at, inside, sums, ADD: tl.constexpr):
        if ADD:
            sums += tl.load(target + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(target + at, sums.to(target.dtype.element_ty), mask=inside)

    @triton.jit
    def _three_sums(
        partial, first, second, third, programs, columns,
        ADD1: tl.constexpr, ADD2: tl.constexpr, ADD3: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        which = tl.program_id(1)
        inside = c < columns
        sums = tl.zeros((ROWS, BLOCK), tl.float32)
        for start in range(0, programs, ROWS):
            r = start + tl.arange(0, ROWS)
            at = partial + r[:, None] * 3 * columns + which * columns + c[None, :]
            sums += tl.load(at, mask=(r[:, None] < programs) & inside[None, :], other=0.0)
        sums = tl.sum(sums, 0)
        if which == 0:
            _put(first, c, inside, sums, ADD1)
        elif which == 1:
            _put(second, c, inside, sums, ADD2)
        else:
            _put(third, c, inside, sums, ADD3)

    @triton.jit
    def _row_sums(value, target, rows, columns, ADD: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
        c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = c < columns
        sums = tl.zeros((ROWS, BLOCK), tl.float32)
        for start in range(0, rows, ROWS):
            r = start + tl.arange(0, ROWS)
            mask = (r < rows)[:, None] & inside[None, :]
            sums += tl.load(value + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
        _put(target, c, inside, tl.sum(sums, 0), ADD)


# Up to so many rows one program per stretch of columns is quickest.
SUMMED_ROWS = 2048
# Most programs of the backward pass of a norm: each leaves one row of partial sums.
_PROGRAMS = 1056
# From so many rows on memory binds a norm; below it is waiting that takes the time.
_MANY_ROWS = 8192


def row_sums(value: Tensor, sink: Sink) -> None:
    """Contribute the sum over the rows of a contiguous matrix."""
    rows, columns = value.shape
    _row_sums[(triton.cdiv(columns, 32),)](
        value, sink.grad, rows, columns, ADD=not sink.fresh, ROWS=256, BLOCK=32, num_warps=8
    )
    sink.fresh = False


def _tile(rows: int, columns: int) -> dict[str, int]:
    """What a norm's program takes at a time, and its threads."""
    block = triton.next_power_of_2(columns)
    if rows < _MANY_ROWS:
        return {"ROWS": max(4, 4096 // block), "BLOCK": block, "num_warps": 8}
    # With eight columns to a thread no sum over the rows of a tile leaves the thread: a quarter of the time.
    return {"ROWS": 4, "BLOCK": block, "num_warps": max(1, min(16, block // 256))}


class AddNorm(torch.autograd.Function):
    """LayerNorm(residual + dropout(x)) in one kernel, its backward in two.

    The gradients of the norm's weight and bias, and of the bias of the linear layer that made x, go to `sinks`; that of
    the residual waits in `branch` for the linear layer that it also feeds, if there is one.
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
        branch: Branch | None = None,
    ) -> Tensor:
        rows, columns = x.shape
        y, total = torch.empty_like(residual), torch.empty_like(residual)
        mean, rstd = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
        seed, base = random if dropout > 0 else (mean, 0)
        tile = _tile(rows, columns)
        _add_norm_forward[(triton.cdiv(rows, tile["ROWS"]),)](
            x, residual, weight, bias, y, total, mean, rstd, seed, base, rows, columns, eps, dropout,
            DROP=dropout > 0, **tile,
        )  # fmt: skip
        ctx.save_for_backward(total, weight, mean, rstd, seed)
        ctx.base, ctx.dropout, ctx.sinks, ctx.branch = base, dropout, sinks, branch
        return y

    @staticmethod
    def backward(ctx, dy: Tensor):
        total, weight, mean, rstd, seed = ctx.saved_tensors
        rows, columns = total.shape
        dresidual = torch.empty_like(total)
        # Two tensors even where they are equal if one of them will be added to.
        dx = torch.empty_like(total) if ctx.dropout > 0 or ctx.branch is not None else dresidual
        tile = _tile(rows, columns)
        programs = min(triton.cdiv(rows, tile["ROWS"]), _PROGRAMS)
        partial = torch.empty(programs, 3, columns, dtype=torch.float32, device=dy.device)
        _add_norm_backward[(programs,)](
            dy.contiguous(), total, weight, mean, rstd, dx, dresidual, partial, seed, ctx.base, rows, columns,
            ctx.dropout, DROP=ctx.dropout > 0, TWO=dx is not dresidual, STAGES=3 if rows >= _MANY_ROWS else 1, **tile,
        )  # fmt: skip
        first, second, third = ctx.sinks
        with aside(partial):
            _three_sums[(triton.cdiv(columns, 32), 3)](
                partial, first.grad, second.grad, third.grad, programs, columns,
                ADD1=not first.fresh, ADD2=not second.fresh, ADD3=not third.fresh, ROWS=128, BLOCK=32, num_warps=8,
            )  # fmt: skip
        for sink in ctx.sinks:
            sink.fresh = False
        if ctx.branch is not None:
            ctx.branch.pending = dresidual
            dresidual = None
        return dx, dresidual, None, None, None, None, None, None, None
