"""Attention on the CPU: small products over one grid, with as few passes over memory as they need.

PyTorch's own kernel has a set-up cost per call that short sentences never earn back, and the way between packed tokens
and its layout costs several copies. Here one gather brings queries, keys and values of all heads into place.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crossalign.models.dropout import keep_mask
from crossalign.models.layout import Layout

# Groups of like length pay when one grid for all would be so many times as large as theirs.
_WASTE = 2.5


class _Places:
    """Where the rows of a packed batch (one head of one token) lie in a grid of sequences x heads x positions.

    `grid` and `packed` lead from one to the other; `grid3` and `packed3` do so for queries, keys and values together.
    """

    def __init__(self, layout: Layout, heads: int, causal: bool) -> None:
        batch, length = layout.batch, layout.length
        every = torch.arange(batch * length)
        cells = (every if layout.cells is None else layout.cells).view(batch, 1, length)
        rows = every if layout.rows is None else layout.rows
        head, part = torch.arange(heads), torch.arange(3)
        self.grid = (cells * heads + head[:, None]).reshape(-1)
        self.grid3 = ((cells * 3 + part.view(3, 1, 1, 1)) * heads + head[:, None]).reshape(-1)
        sequence, position = rows[:, None] // length, rows[:, None] % length
        self.packed = ((sequence * heads + head) * length + position).reshape(-1)
        inner = (part.view(3, 1) * batch + sequence[:, None]) * heads + head
        self.packed3 = (inner * length + position[:, None]).reshape(-1)
        self.count, self.length = batch * heads, length
        # Tokens that only fill up a static shape have no cell of their own.
        self.tokens = layout.real(len(rows)) if layout.filled else None
        self.bias = self.real = None
        open_keys = layout.keys()
        if causal:
            past = torch.ones(length, length, dtype=torch.bool).tril()
            open_keys = past if open_keys is None else open_keys & past
        if open_keys is not None:
            bias = torch.zeros(open_keys.shape).masked_fill_(~open_keys, float("-inf"))
            self.bias = bias.expand(batch, heads, length, length).reshape(self.count, length, length)
        if layout.lengths is not None:
            real = layout.mask.view(batch, 1, length, 1).expand(batch, heads, length, 1)
            self.real = real.reshape(self.count, length, 1).float()


def _places(layout: Layout, heads: int, causal: bool) -> _Places:
    """All layers of a batch share them."""
    known = layout.__dict__.setdefault("places", {})
    if (heads, causal) not in known:
        known[heads, causal] = _Places(layout, heads, causal)
    return known[heads, causal]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv: Tensor, places: _Places, heads: int, dropout: float) -> Tensor:
        size = qkv.shape[1] // (3 * heads)
        # Without `contiguous` a slice of a larger batch would be copied twice.
        rows = qkv.contiguous().view(-1, size)
        q, k, v = rows.index_select(0, places.grid3).view(3, places.count, places.length, size)
        if places.bias is None:
            scores = torch.bmm(q, k.transpose(1, 2)).mul_(size**-0.5)
        else:
            scores = torch.baddbmm(places.bias.to(q.dtype), q, k.transpose(1, 2), alpha=size**-0.5)
        weights = torch.softmax(scores, -1)
        keep = keep_mask(weights.shape, dropout).to(q.dtype) if dropout > 0 else None
        out = torch.bmm(weights if keep is None else weights * keep, v)
        ctx.save_for_backward(q, k, v, weights, keep)
        ctx.places, ctx.shape = places, qkv.shape
        return out.view(-1, size).index_select(0, places.packed).view(qkv.shape[0], -1)

    @staticmethod
    def backward(ctx, grad: Tensor):
        q, k, v, weights, keep = ctx.saved_tensors
        places, size = ctx.places, q.shape[-1]
        given = grad.reshape(-1, size).index_select(0, places.grid).view(q.shape)
        if places.real is not None:
            given.mul_(places.real)
        result = torch.empty(3, *q.shape, dtype=q.dtype)
        torch.bmm((weights if keep is None else weights * keep).transpose(1, 2), given, out=result[2])
        dweights = torch.bmm(given, v.transpose(1, 2))
        if keep is not None:
            dweights.mul_(keep)
        dscores = torch._softmax_backward_data(dweights, weights, -1, weights.dtype).mul_(size**-0.5)
        torch.bmm(dscores, k, out=result[0])
        torch.bmm(dscores.transpose(1, 2), q, out=result[1])
        packed = result.view(-1, size).index_select(0, places.packed3).view(ctx.shape)
        return (packed if places.tokens is None else packed * places.tokens), None, None, None


def attend(qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
    """(tokens, 3 * hidden) to (tokens, hidden)."""
    groups = layout.groups
    whole = layout.batch * layout.length**2
    if len(groups) > 1 and whole > _WASTE * sum(group.batch * group.length**2 for group in groups):
        parts = zip(qkv.split(layout.sizes), groups, strict=True)
        return torch.cat([_Attention.apply(p, _places(group, heads, causal), heads, dropout) for p, group in parts])
    return _Attention.apply(qkv, _places(layout, heads, causal), heads, dropout)
