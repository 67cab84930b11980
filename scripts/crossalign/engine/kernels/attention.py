"""Attention within packed short sequences, in one Triton kernel forward and one backward.

General kernels are made for long sequences: for sentences of a few dozen tokens most of their time goes into set-up,
conversions and additions between blocks. Here a block of 64 tokens usually is the whole sentence. No atomic additions,
so the same input always gives the same bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from crossalign.engine.kernels.norms import kept

BLOCK = 64
# Of the forward and the backward kernel.
WARPS = (4, 4)


@triton.jit
def _load(base, rows, columns, length, stride):
    return tl.load(base + rows[:, None] * stride + columns[None, :], mask=rows[:, None] < length, other=0.0)


@triton.jit
def _store(base, rows, columns, length, stride, value):
    at = base + rows[:, None] * stride + columns[None, :]
    tl.store(at, value.to(base.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def _zeros(base, program, programs, length, stride, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    # Tokens that only fill up a static shape: anything finite will do.
    columns = tl.arange(0, SIZE)
    for start in range(program * BLOCK, length, programs * BLOCK):
        rows = start + tl.arange(0, BLOCK)
        _store(base, rows, columns, length, stride, tl.zeros((BLOCK, SIZE), tl.float32))


@triton.jit
def _attend(
    qkv, out, logs, bounds, seed_at, base, tokens, scale, dropout, last,
    HEADS: tl.constexpr, SIZE: tl.constexpr, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program, sequence, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    hidden: tl.constexpr = HEADS * SIZE
    stride: tl.constexpr = 3 * HEADS * SIZE
    begin = tl.load(bounds + sequence)
    length = tl.load(bounds + sequence + 1) - begin
    target = out + begin.to(tl.int64) * hidden + head * SIZE
    if sequence == last:
        _zeros(target, program, tl.num_programs(0), length, hidden, SIZE, BLOCK)
    elif program * BLOCK < length:
        columns = tl.arange(0, SIZE)
        source = qkv + begin.to(tl.int64) * stride + head * SIZE
        rows = program * BLOCK + tl.arange(0, BLOCK)
        q = _load(source, rows, columns, length, stride)
        highest = tl.full((BLOCK,), -1e30, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        sums = tl.zeros((BLOCK, SIZE), tl.float32)
        if DROP:
            seed = tl.load(seed_at) + ((base + head.to(tl.int64) + 1) << 32)
        for start in range(0, length, BLOCK):
            keys = start + tl.arange(0, BLOCK)
            k = _load(source + hidden, keys, columns, length, stride)
            v = _load(source + 2 * hidden, keys, columns, length, stride)
            s = tl.where(keys[None, :] < length, tl.dot(q, tl.trans(k)) * scale, -1e30)
            high = tl.maximum(highest, tl.max(s, 1))
            p = tl.exp(s - high[:, None])
            shrink = tl.exp(highest - high)
            total = total * shrink + tl.sum(p, 1)
            if DROP:
                keep = kept(seed, begin * WIDTH, program * BLOCK, keys, WIDTH, dropout, BLOCK, BLOCK)
                p = tl.where(keep, p / (1.0 - dropout), 0.0)
            sums = sums * shrink[:, None] + tl.dot(p.to(v.dtype), v)
            highest = high
        _store(target, rows, columns, length, hidden, sums / total[:, None])
        tl.store(logs + head * tokens + begin + rows, highest + tl.log(total), mask=rows < length)


@triton.jit
def _tile(
    q, k, v, do, delta, log, first, rows, keys, length, seed, base, scale, dropout,
    DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Weights after dropout, and the gradient of the scores, of some queries and keys."""
    inside = (keys[None, :] < length) & (rows[:, None] < length)
    p = tl.where(inside, tl.exp(tl.dot(q, tl.trans(k)) * scale - log[:, None]), 0.0)
    dp = tl.dot(do, tl.trans(v))
    dropped = p
    if DROP:
        keep = kept(seed, base, first, keys, WIDTH, dropout, BLOCK, BLOCK)
        dropped = tl.where(keep, p / (1.0 - dropout), 0.0)
        dp = tl.where(keep, dp / (1.0 - dropout), 0.0)
    return dropped.to(q.dtype), (p * (dp - delta[:, None]) * scale).to(q.dtype)


@triton.jit
def _queries(source, given, result, logs, rows, columns, length, stride, hidden):
    """What the backward pass needs of some queries."""
    q = _load(source, rows, columns, length, stride)
    do = _load(given, rows, columns, length, hidden)
    o = _load(result, rows, columns, length, hidden)
    delta = tl.sum(do.to(tl.float32) * o.to(tl.float32), 1)
    return q, do, delta, tl.load(logs + rows, mask=rows < length, other=0.0)


@triton.jit
def _attend_backward(
    qkv, out, dout, dqkv, logs, bounds, seed_at, base, tokens, scale, dropout, last, blocks,
    HEADS: tl.constexpr, SIZE: tl.constexpr, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    SINGLE: tl.constexpr,
):  # fmt: skip
    program, sequence, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    # One block of tokens: everything at once. Several: some programs take the keys of a block, others its queries.
    for_keys = SINGLE or program < blocks
    block = program if for_keys else program - blocks
    hidden: tl.constexpr = HEADS * SIZE
    stride: tl.constexpr = 3 * HEADS * SIZE
    begin = tl.load(bounds + sequence)
    length = tl.load(bounds + sequence + 1) - begin
    target = dqkv + begin.to(tl.int64) * stride + head * SIZE
    if sequence == last:
        for part in tl.static_range(3):
            _zeros(target + part * hidden, program, tl.num_programs(0), length, stride, SIZE, BLOCK)
    elif block * BLOCK < length:
        columns = tl.arange(0, SIZE)
        source = qkv + begin.to(tl.int64) * stride + head * SIZE
        given = dout + begin.to(tl.int64) * hidden + head * SIZE
        result = out + begin.to(tl.int64) * hidden + head * SIZE
        logs += head * tokens + begin
        seed = tl.load(seed_at).to(tl.int64)
        if DROP:
            seed += (base + head.to(tl.int64) + 1) << 32
        mine = block * BLOCK + tl.arange(0, BLOCK)
        if SINGLE:
            k = _load(source + hidden, mine, columns, length, stride)
            v = _load(source + 2 * hidden, mine, columns, length, stride)
            q, do, delta, log = _queries(source, given, result, logs, mine, columns, length, stride, hidden)
            dropped, ds = _tile(
                q, k, v, do, delta, log, 0, mine, mine, length, seed, begin * WIDTH, scale, dropout,
                DROP, WIDTH, BLOCK,
            )  # fmt: skip
            _store(target + 2 * hidden, mine, columns, length, stride, tl.dot(tl.trans(dropped), do))
            _store(target, mine, columns, length, stride, tl.dot(ds, k))
            _store(target + hidden, mine, columns, length, stride, tl.dot(tl.trans(ds), q))
        elif for_keys:
            k = _load(source + hidden, mine, columns, length, stride)
            v = _load(source + 2 * hidden, mine, columns, length, stride)
            dk = tl.zeros((BLOCK, SIZE), tl.float32)
            dv = tl.zeros((BLOCK, SIZE), tl.float32)
            for start in range(0, length, BLOCK):
                rows = start + tl.arange(0, BLOCK)
                q, do, delta, log = _queries(source, given, result, logs, rows, columns, length, stride, hidden)
                dropped, ds = _tile(
                    q, k, v, do, delta, log, start, rows, mine, length, seed, begin * WIDTH, scale, dropout,
                    DROP, WIDTH, BLOCK,
                )  # fmt: skip
                dv += tl.dot(tl.trans(dropped), do)
                dk += tl.dot(tl.trans(ds), q)
            _store(target + hidden, mine, columns, length, stride, dk)
            _store(target + 2 * hidden, mine, columns, length, stride, dv)
        else:
            q, do, delta, log = _queries(source, given, result, logs, mine, columns, length, stride, hidden)
            dq = tl.zeros((BLOCK, SIZE), tl.float32)
            for start in range(0, length, BLOCK):
                keys = start + tl.arange(0, BLOCK)
                k = _load(source + hidden, keys, columns, length, stride)
                v = _load(source + 2 * hidden, keys, columns, length, stride)
                _, ds = _tile(
                    q, k, v, do, delta, log, block * BLOCK, mine, keys, length, seed, begin * WIDTH, scale,
                    dropout, DROP, WIDTH, BLOCK,
                )  # fmt: skip
                dq += tl.dot(ds, k)
            _store(target, mine, columns, length, stride, dq)


class ShortAttention(torch.autograd.Function):
    """(tokens, 3 * hidden) to (tokens, hidden). `bounds`: starts of the sequences and the end; none is longer than
    `length` except, when `filled`, the last, which holds no real tokens."""

    @staticmethod
    def forward(
        ctx, qkv: Tensor, bounds: Tensor, length: int, filled: bool, heads: int, dropout: float, random
    ) -> Tensor:
        tokens, width = qkv.shape
        size = width // (3 * heads)
        out = torch.empty(tokens, heads * size, dtype=qkv.dtype, device=qkv.device)
        logs = torch.empty(heads, tokens, dtype=torch.float32, device=qkv.device)
        seed, base = random if dropout > 0 else (bounds, 0)
        sequences = bounds.shape[0] - 1
        ctx.grid = (triton.cdiv(length, BLOCK), sequences, heads)
        ctx.numbers = (base, tokens, size**-0.5, dropout, sequences - 1 if filled else sequences)
        ctx.constants = {
            "HEADS": heads, "SIZE": size, "DROP": dropout > 0, "WIDTH": 512, "BLOCK": BLOCK, "num_stages": 1,
        }  # fmt: skip
        _attend[ctx.grid](qkv, out, logs, bounds, seed, *ctx.numbers, **ctx.constants, num_warps=WARPS[0])
        ctx.save_for_backward(qkv, out, logs, bounds, seed)
        return out

    @staticmethod
    def backward(ctx, dout: Tensor):
        qkv, out, logs, bounds, seed = ctx.saved_tensors
        dqkv = torch.empty_like(qkv)
        blocks, sequences, heads = ctx.grid
        _attend_backward[(1 if blocks == 1 else 2 * blocks, sequences, heads)](
            qkv, out, dout.contiguous(), dqkv, logs, bounds, seed, *ctx.numbers, blocks, **ctx.constants,
            SINGLE=blocks == 1, num_warps=WARPS[1],
        )  # fmt: skip
        return dqkv, None, None, None, None, None, None
