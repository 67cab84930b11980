"""Self-attention over packed sequences, with the best of the kernels that work on the device."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from crossalign.engine import kernels, ops
from crossalign.engine.layout import Gather, Layout
from crossalign.engine.ops import Gradients

# The kernel for short sequences: how long they may be (for longer ones the general kernels are better), sizes of heads.
_SHORT, _SHORT_SIZES = 128, (16, 32, 64, 128)


def attention(
    qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool = False, into: Gradients | None = None
) -> Tensor:
    """Self-attention within each sequence: (tokens, 3 * hidden) to (tokens, heads, hidden / heads).

    Causal: each token sees itself and those before it; padding must stand behind the tokens.
    """
    if layout.lengths is not None and layout.cells is not None:
        works = packed_kernels(qkv, heads)
        bounds = layout.bounds(qkv.shape[0]) if works else None
        if "short" in works and not causal and layout.length <= _SHORT and (into is not None or dropout == 0):
            random = into.random(qkv) if dropout > 0 else None
            return _short(qkv, bounds, layout.length, layout.filled, heads, dropout, random)
        if "long" in works:
            return _long(qkv, bounds, layout.longest or layout.length, heads, dropout, causal)
    return _grid_attention(qkv, layout, heads, dropout, causal)


def _grid_attention(qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
    if layout.groups:
        parts = zip(qkv.split(layout.sizes), layout.groups, strict=True)
        return torch.cat([_grid_attention(part, group, heads, dropout, causal) for part, group in parts])
    if not qkv.is_cuda:
        return _short_grids(qkv, layout, heads, dropout, causal)
    grid = layout.to_grid(qkv).view(layout.batch, layout.length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    # Causal: the filling stands where no token looks, so that no other mask is needed.
    keys = None if causal else layout.keys()
    out = functional.scaled_dot_product_attention(*grid, attn_mask=keys, dropout_p=dropout, is_causal=causal)
    return layout.from_grid(out.transpose(1, 2)).view(qkv.shape[0], heads, -1)


def _short_grids(qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
    """On a CPU PyTorch's own attention has a set-up cost that short sentences never earn back."""
    size = qkv.shape[1] // (3 * heads)
    to_grid, to_packed, from_grid, from_packed, filling, real = layout.places(heads)
    grid = Gather.apply(qkv.reshape(-1, size), to_grid, to_packed, filling)
    q, k, v = grid.view(3, layout.batch * heads, layout.length, size)
    bias = layout.bias(heads, causal).to(q.dtype)
    weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=size**-0.5).softmax(-1)
    out = ops.drop(weights, dropout) @ v
    return Gather.apply(out.reshape(-1, size), from_grid, from_packed, real).view(qkv.shape[0], heads, size)


def _long(qkv: Tensor, bounds: Tensor, longest: int, heads: int, dropout: float, causal: bool = False) -> Tensor:
    q, k, v = qkv.view(qkv.shape[0], 3, heads, -1).unbind(1)
    # The public varlen_attn of PyTorch has no dropout; this is the operator below it.
    return torch.ops.aten._flash_attention_forward(q, k, v, bounds, bounds, longest, longest, dropout, causal, False)[0]


def _short(qkv: Tensor, bounds: Tensor, length: int, filled: bool, heads: int, dropout: float, random) -> Tensor:
    from crossalign.engine.kernels.attention import ShortAttention

    out = ShortAttention.apply(qkv, bounds, length, filled, heads, dropout, random)
    return out.view(qkv.shape[0], heads, -1)


def packed_kernels(qkv: Tensor, heads: int) -> frozenset[str]:
    """The kernels for packed sequences that run here."""
    if not qkv.is_cuda or qkv.dtype not in (torch.bfloat16, torch.float16):
        return frozenset()
    size = qkv.shape[1] // (3 * heads)
    # Both are made for GPUs from A100 on; older ones work on a padded grid, and so do heads of odd sizes.
    if torch.cuda.get_device_capability(qkv.device) < (8, 0) or size % 8 or size > 256:
        return frozenset()
    return frozenset({"long", "short"} if kernels.available() and size in _SHORT_SIZES else {"long"})
