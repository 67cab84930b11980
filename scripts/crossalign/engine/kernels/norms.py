"""The end of a Post-LN block in one kernel, sums over rows, and the random numbers of dropout."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Up to so many rows one program per stretch of columns is quickest.
SUMMED_ROWS = 2048
# Most programs of the backward pass of a norm: each leaves one row of partial sums.
_PROGRAMS = 1056
# From so many rows on memory binds a norm; below it is waiting that takes the time.
_MANY_ROWS = 8192
# Rounds of Philox: seven of the usual ten pass all common tests.
_ROUNDS = tl.constexpr(7)


@triton.jit
def kept(seed, base, first, columns, stride, dropout, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Which cells of a tile of ROWS rows, beginning at row `first` (a multiple of 4), dropout leaves.

    A cell's number depends on its row, its column and `base` only. Philox gives four numbers at a time, here to
    four rows below each other.
    """
    group = first // 4 + tl.arange(0, ROWS // 4)
    a, b, c, d = tl.rand4x(seed, base + group[:, None] * stride + columns[None, :], _ROUNDS)
    four = tl.permute(tl.join(tl.join(a, b), tl.join(c, d)), (0, 3, 2, 1))
    return tl.reshape(four, (ROWS, BLOCK)) >= dropout


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


def row_sums(value: Tensor, target: Tensor, add: bool) -> None:
    """Write the sum over the rows of a contiguous matrix to `target`, or add it."""
    rows, columns = value.shape
    _row_sums[(triton.cdiv(columns, 32),)](value, target, rows, columns, ADD=add, ROWS=256, BLOCK=32, num_warps=8)


def _tile(rows: int, columns: int) -> dict[str, int]:
    """What a norm's program takes at a time, and its threads."""
    block = triton.next_power_of_2(columns)
    if rows < _MANY_ROWS:
        return {"ROWS": max(4, 4096 // block), "BLOCK": block, "num_warps": 8}
    # With eight columns to a thread no sum over the rows of a tile leaves the thread: a quarter of the time.
    return {"ROWS": 4, "BLOCK": block, "num_warps": max(1, min(16, block // 256))}


def add_norm(
    x: Tensor,
    residual: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    dropout: float,
    seed: Tensor | None,
    base: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """LayerNorm(residual + dropout(x)); also the sum that was normalised, its means and its inverse deviations."""
    rows, columns = x.shape
    y, total = torch.empty_like(residual), torch.empty_like(residual)
    mean, rstd = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
    tile = _tile(rows, columns)
    _add_norm_forward[(triton.cdiv(rows, tile["ROWS"]),)](
        x, residual, weight, bias, y, total, mean, rstd, mean if seed is None else seed, base, rows, columns, eps,
        dropout, DROP=dropout > 0, **tile,
    )  # fmt: skip
    return y, total, mean, rstd


def add_norm_backward(
    dy: Tensor, total: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor,
    dropout: float, seed: Tensor | None, base: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of x and of the residual (one tensor where they are equal), and parts of three sums."""
    rows, columns = total.shape
    dresidual = torch.empty_like(total)
    dx = torch.empty_like(total) if dropout > 0 else dresidual
    tile = _tile(rows, columns)
    programs = min(triton.cdiv(rows, tile["ROWS"]), _PROGRAMS)
    partial = torch.empty(programs, 3, columns, dtype=torch.float32, device=dy.device)
    _add_norm_backward[(programs,)](
        dy.contiguous(), total, weight, mean, rstd, dx, dresidual, partial, mean if seed is None else seed, base, rows,
        columns, dropout, DROP=dropout > 0, TWO=dx is not dresidual, STAGES=3 if rows >= _MANY_ROWS else 1, **tile,
    )  # fmt: skip
    return dx, dresidual, partial


def three_sums(partial: Tensor, targets: list[Tensor], add: list[bool]) -> None:
    """Gradients of the norm's weight and bias and of the bias before it, from the parts of `add_norm_backward`."""
    programs, _, columns = partial.shape
    _three_sums[(triton.cdiv(columns, 32), 3)](
        partial, *targets, programs, columns, ADD1=add[0], ADD2=add[1], ADD3=add[2], ROWS=128, BLOCK=32, num_warps=8
    )
