"""What makes small models quick on the CPU: attention over short sentences, and a whole layer as one step.

Where PyTorch has MKL, its own attention has a set-up cost per call that short sentences never earn back, and the way
between packed tokens and its layout costs several copies: one gather brings queries, keys and values of all heads into
place instead. Without MKL, and without dropout, its own attention is the quicker one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine import fused, ops
from crossalign.engine.layout import Layout
from crossalign.engine.ops import keep_mask, norm_backward, sink_of, turned

# Groups of like length pay when one grid for all would be so many times as large as theirs.
_WASTE = 2.5
# PyTorch's softmax of a row that does not fill a vector register takes ten times as long; predictions fill it up.
_VECTOR = 16


class _Places:
    """Where the rows of a packed batch (one head of one token) lie in a grid of sequences x heads x positions.

    `grid` and `packed` lead from one to the other; `grid3` and `packed3` do so for queries, keys and values together.
    """

    def __init__(self, layout: Layout, heads: int, causal: bool, least: int) -> None:
        batch, length = layout.batch, max(layout.length, least)
        every = torch.arange(batch * layout.length)
        cells = (every if layout.cells is None else layout.cells).view(batch, 1, layout.length)
        cells = functional.pad(cells, (0, length - layout.length))
        rows = every if layout.rows is None else layout.rows
        head, part = torch.arange(heads), torch.arange(3)
        self.grid = (cells * heads + head[:, None]).reshape(-1)
        self.grid3 = ((cells * 3 + part.view(3, 1, 1, 1)) * heads + head[:, None]).reshape(-1)
        sequence, position = rows[:, None] // layout.length, rows[:, None] % layout.length
        self.packed = ((sequence * heads + head) * length + position).reshape(-1)
        inner = (part.view(3, 1) * batch + sequence[:, None]) * heads + head
        self.packed3 = (inner * length + position[:, None]).reshape(-1)
        self.count, self.length = batch * heads, length
        # Tokens that only fill up a static shape have no cell of their own.
        self.tokens = layout.real(len(rows)) if layout.filled else None
        self.bias = self.real = None
        open_keys = layout.keys()
        if length > layout.length:
            shown = torch.ones(batch, 1, 1, layout.length, dtype=torch.bool) if open_keys is None else open_keys
            open_keys = functional.pad(shown, (0, length - layout.length))
        if causal:
            past = torch.ones(length, length, dtype=torch.bool).tril()
            open_keys = past if open_keys is None else open_keys & past
        if open_keys is not None:
            bias = torch.zeros(open_keys.shape).masked_fill_(~open_keys, float("-inf"))
            self.bias = bias.expand(batch, heads, length, length).reshape(self.count, length, length)
        if layout.lengths is not None and length == layout.length:
            real = layout.mask.view(batch, 1, length, 1).expand(batch, heads, length, 1)
            self.real = real.reshape(self.count, length, 1).float()


def _places(layout: Layout, heads: int, causal: bool, least: int) -> _Places:
    """All layers of a batch share them."""
    known = layout.__dict__.setdefault("places", {})
    if (heads, causal, least) not in known:
        known[heads, causal, least] = _Places(layout, heads, causal, least)
    return known[heads, causal, least]


class _Kept(NamedTuple):
    """What the backward pass of one group needs."""

    places: _Places
    tokens: int
    q: Tensor
    k: Tensor
    v: Tensor
    weights: Tensor
    keep: Tensor | None

    def backward(self, grad: Tensor) -> Tensor:
        places, tokens, q, k, v, weights, keep = self
        size = q.shape[-1]
        given = grad.reshape(-1, size).index_select(0, places.grid).view(q.shape)
        if places.real is not None:
            given.mul_(places.real)
        result = torch.empty(3, *q.shape, dtype=q.dtype)
        torch.bmm((weights if keep is None else weights * keep).transpose(1, 2), given, out=result[2])
        dweights = torch.bmm(given, turned(v))
        if keep is not None:
            dweights.mul_(keep)
        dscores = torch._softmax_backward_data(dweights, weights, -1, weights.dtype).mul_(size**-0.5)
        torch.bmm(dscores, k, out=result[0])
        torch.bmm(dscores.transpose(1, 2), q, out=result[1])
        packed = result.view(-1, size).index_select(0, places.packed3).view(tokens, -1)
        return packed if places.tokens is None else packed * places.tokens


def _forward(qkv: Tensor, places: _Places, heads: int, dropout: float) -> tuple[Tensor, _Kept]:
    size = qkv.shape[1] // (3 * heads)
    # Without `contiguous` a slice of a larger batch would be copied twice.
    rows = qkv.contiguous().view(-1, size)
    q, k, v = rows.index_select(0, places.grid3).view(3, places.count, places.length, size)
    if places.bias is None:
        scores = torch.bmm(q, turned(k)).mul_(size**-0.5)
    else:
        scores = torch.baddbmm(places.bias.to(q.dtype), q, turned(k), alpha=size**-0.5)
    weights = torch.softmax(scores, -1)
    keep = keep_mask(weights.shape, dropout).to(q.dtype) if dropout > 0 else None
    out = torch.bmm(weights if keep is None else weights * keep, v)
    packed = out.view(-1, size).index_select(0, places.packed).view(qkv.shape[0], -1)
    return packed, _Kept(places, qkv.shape[0], q, k, v, weights, keep)


class _Fused(NamedTuple):
    """What the backward pass of PyTorch's attention needs for one group."""

    layout: Layout
    tokens: int
    qkv: Tensor
    out: Tensor
    sums: Tensor
    bias: Tensor | None

    def backward(self, grad: Tensor) -> Tensor:
        layout = self.layout
        _, batch, heads, length, size = self.qkv.shape
        given = grad if layout.cells is None else grad.index_select(0, layout.cells)
        given = given.view(batch, length, heads, size).transpose(1, 2)
        if layout.lengths is not None:
            given = given * layout.mask.view(batch, 1, length, 1)
        gradients = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            given, *self.qkv, self.out, self.sums, 0.0, False, attn_mask=self.bias
        )
        grid = torch.stack([gradient.transpose(1, 2) for gradient in gradients], 2).view(batch * length, -1)
        packed = grid if layout.rows is None else grid.index_select(0, layout.rows)
        return packed * layout.real(self.tokens) if layout.filled else packed


def _fused(qkv: Tensor, layout: Layout, heads: int) -> tuple[Tensor, _Fused]:
    """PyTorch's own attention: products of small matrices one by one cost less there than as a batch without MKL."""
    grid = qkv if layout.cells is None else qkv.index_select(0, layout.cells)
    parts = grid.view(layout.batch, layout.length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    bias = layout.__dict__.get("bias")
    if bias is None and layout.lengths is not None:
        keys = layout.keys()
        bias = layout.bias = torch.zeros(keys.shape, dtype=qkv.dtype).masked_fill_(~keys, float("-inf"))
    out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*parts, 0.0, False, attn_mask=bias)
    flat = out.transpose(1, 2).reshape(layout.batch * layout.length, -1)
    packed = flat if layout.rows is None else flat.index_select(0, layout.rows)
    return packed, _Fused(layout, qkv.shape[0], parts, out, sums, bias)


def _attention(
    qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool, least: int = 0
) -> tuple[Tensor, list[_Kept | _Fused]]:
    """(tokens, 3 * hidden) to (tokens, hidden), and what the gradient needs; grids have at least `least` positions."""

    def run(part: Tensor, group: Layout) -> tuple[Tensor, _Kept | _Fused]:
        if ops.SLOW_PATHS and dropout == 0 and not causal:
            return _fused(part, group, heads)
        return _forward(part, _places(group, heads, causal, least), heads, dropout)

    groups = layout.groups
    whole = layout.batch * layout.length**2
    if len(groups) > 1 and whole > _WASTE * sum(group.batch * group.length**2 for group in groups):
        done = [run(part, group) for part, group in zip(qkv.split(layout.sizes), groups, strict=True)]
        return torch.cat([out for out, _ in done]), [kept for _, kept in done]
    out, kept = run(qkv, layout)
    return out, [kept]


def _attention_backward(grad: Tensor, kept: list[_Kept | _Fused]) -> Tensor:
    if len(kept) == 1:
        return kept[0].backward(grad)
    parts = grad.split([part.tokens for part in kept])
    return torch.cat([one.backward(part) for part, one in zip(parts, kept, strict=True)])


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
        out, ctx.kept = _attention(qkv, layout, heads, dropout, causal)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        return _attention_backward(grad, ctx.kept), None, None, None, None


def attend(qkv: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
    """(tokens, 3 * hidden) to (tokens, hidden)."""
    if torch.is_inference_mode_enabled():
        return _attention(qkv, layout, heads, dropout, causal, _VECTOR)[0]
    if dropout == 0 and not causal and fused.suits(qkv, layout, heads, qkv.shape[1] // 3):
        return fused.FusedAttention.apply(qkv, layout, heads)
    return _Attention.apply(qkv, layout, heads, dropout, causal)


def _gelu(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """GELU, and the share of the normal distribution below x, which the gradient needs too."""
    if not ops.SLOW_PATHS:
        return functional.gelu(x), None
    below = torch.erf(x * 2**-0.5).add_(1.0).mul_(0.5)
    return x * below, below


def _gelu_backward(grad: Tensor, x: Tensor, below: Tensor | None) -> Tensor:
    if below is None:
        return torch.ops.aten.gelu_backward(grad, x)
    density = torch.square(x).mul_(-0.5).exp_().mul_((2 * math.pi) ** -0.5)
    return density.mul_(x).add_(below).mul_(grad)


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y, below = _gelu(x)
        ctx.save_for_backward(x, below)
        return y

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return _gelu_backward(grad, *ctx.saved_tensors)


def gelu(x: Tensor) -> Tensor:
    """GELU with the gradient that is quick here."""
    quick = ops.SLOW_PATHS and x.device.type == "cpu" and torch.is_grad_enabled()
    return _Gelu.apply(x) if quick else functional.gelu(x)


def serves(layer: nn.Module, x: Tensor, dropout: float) -> bool:
    """Whether `PostLayer` may run this layer: a training step on the CPU without dropout behind the products."""
    return x.device.type == "cpu" and dropout == 0 and sink_of(layer.qkv.weight) is not None


class PostLayer(torch.autograd.Function):
    """A Post-LN layer of the encoder as one node of the gradient's graph, its gradients written to sinks.

    Products of a hundred tokens take as long as the bookkeeping of a node. The arithmetic is that of `ops`, step by
    step, so the numbers are the same to the last bit. `weight` only makes the graph record the node.
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, layer: nn.Module, layout: Layout) -> Tensor:
        config = layer.config
        dropout = config.attention_dropout if layer.training else 0.0
        heads, kept = _attention(_linear(x, layer.qkv), layout, config.heads, dropout, config.causal)
        middle = x + _linear(heads, layer.out)
        y, *first = _norm(middle, layer.attention_norm)
        up = _linear(y, layer.up)
        inner, below = _gelu(up)
        last = y + _linear(inner, layer.down)
        z, *second = _norm(last, layer.output_norm)
        ctx.layer, ctx.kept = layer, (x, kept, heads, middle, first, y, up, below, inner, last, second)
        return z

    @staticmethod
    def backward(ctx, grad: Tensor):
        layer, (x, kept, heads, middle, first, y, up, below, inner, last, second) = ctx.layer, ctx.kept
        grad = _norm_backward(grad.contiguous(), last, layer.output_norm, *second)
        given = _gelu_backward(_linear_backward(grad, inner, layer.down), up, below)
        grad = grad + _linear_backward(given, y, layer.up)
        grad = _norm_backward(grad, middle, layer.attention_norm, *first)
        given = _attention_backward(_linear_backward(grad, heads, layer.out), kept)
        below = _linear_backward(given, x, layer.qkv, ctx.needs_input_grad[0])
        return None if below is None else grad + below, None, None, None


def _linear(x: Tensor, module: nn.Linear) -> Tensor:
    return torch.addmm(module.bias, x, turned(module.weight))


def _linear_backward(grad: Tensor, x: Tensor, module: nn.Linear, wanted: bool = True) -> Tensor | None:
    module.weight.sink.product(grad.t(), x)
    module.bias.sink.column_sums(grad)
    return grad.mm(module.weight) if wanted else None


def _norm(x: Tensor, module: nn.LayerNorm) -> tuple[Tensor, Tensor, Tensor]:
    return torch.native_layer_norm(x, module.normalized_shape, module.weight, module.bias, module.eps)


def _norm_backward(grad: Tensor, x: Tensor, module: nn.LayerNorm, mean: Tensor, rstd: Tensor) -> Tensor:
    sinks = module.weight.sink, module.bias.sink
    return norm_backward(grad, x, module.weight, module.bias, mean, rstd, sinks)
