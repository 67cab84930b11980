"""Self-attention over packed sequences, with the best of the kernels that work on the device."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from crossalign.engine import kernels, ops
from crossalign.engine.layout import Layout
from crossalign.engine.ops import Gradients

# The kernel for short sequences: how long they may be (for longer ones the general kernels are better), sizes of heads.
_SHORT, _SHORT_SIZES = 128, (16, 32, 64, 128)


def attention(
    qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool = False, into: Gradients | None = None
) -> Tensor:
    """Self-attention within each sequence: (tokens, 3 * hidden) to (tokens, heads, hidden / heads).

    Causal: each token sees itself and those before it; padding must stand behind the tokens.
    """
    size, works = qkv.shape[1] // (3 * heads), packed_kernels(qkv, heads)
    if "short" in works and not causal and layout.length <= _SHORT and (into is not None or dropout == 0):
        from crossalign.engine.kernels.attention import ShortAttention

        random = into.random(qkv) if dropout > 0 else None
        out = ShortAttention.apply(qkv, layout.bounds, layout.length, layout.filled, heads, dropout, random)
    elif "long" in works:
        q, k, v = qkv.view(-1, 3, heads, size).unbind(1)
        # The public varlen_attn of PyTorch has no dropout; this is the operator below it.
        ends, longest = (layout.bounds, layout.bounds), (layout.longest, layout.longest)
        out = torch.ops.aten._flash_attention_forward(q, k, v, *ends, *longest, dropout, causal, False)[0]
    elif layout.groups:
        parts = zip(qkv.split([group.tokens for group in layout.groups]), layout.groups, strict=True)
        out = torch.cat([_on_grid(part, group, heads, dropout, causal) for part, group in parts])
    else:
        out = _on_grid(qkv, layout, heads, dropout, causal)
    return out.view(-1, heads, size)


def _on_grid(qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
    grid = layout.to_grid(qkv).view(layout.batch, layout.length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    if qkv.is_cuda:
        # Causal: the filling stands where no token looks, so that no other mask is needed.
        mask = None if causal else layout.keys()[:, None, None, :]
        out = functional.scaled_dot_product_attention(*grid, mask, dropout, is_causal=causal)
    else:
        # PyTorch's own attention has a set-up cost on a CPU that short sentences never earn back.
        q, k, v = grid.reshape(3, layout.batch * heads, layout.length, -1)
        seen = layout.keys().repeat_interleave(heads, 0)[:, None, :]
        if causal:
            seen = seen & torch.ones(layout.length, layout.length, dtype=torch.bool).tril()
        bias = torch.zeros(seen.shape, dtype=q.dtype).masked_fill_(~seen, float("-inf"))
        weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5).softmax(-1)
        out = (ops.drop(weights, dropout) @ v).view(layout.batch, heads, layout.length, -1)
    return layout.from_grid(out.transpose(1, 2))


def packed_kernels(qkv: Tensor, heads: int) -> frozenset[str]:
    """The kernels for packed sequences that run here."""
    if not qkv.is_cuda or qkv.dtype not in (torch.bfloat16, torch.float16):
        return frozenset()
    size = qkv.shape[1] // (3 * heads)
    # Both are made for GPUs from A100 on; older ones work on a padded grid, and so do heads of odd sizes.
    if torch.cuda.get_device_capability(qkv.device) < (8, 0) or size % 8 or size > 256:
        return frozenset()
    return frozenset({"long", "short"} if kernels.available() and size in _SHORT_SIZES else {"long"})
