"""A whole Post-LN layer as one node of the gradient's graph, for training small models on the CPU.

Products of a hundred tokens take as long as the bookkeeping of a node. The arithmetic is that of `ops`, step by step,
so the numbers are the same to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from crossalign.engine import cpu_attention
from crossalign.engine.sinks import sink_of

if TYPE_CHECKING:
    from crossalign.engine.encoder import Layer
    from crossalign.engine.layout import Layout


def serves(layer: Layer, x: Tensor, dropout: float) -> bool:
    """Whether this layer may run here: a training step on the CPU without dropout behind the products."""
    return x.device.type == "cpu" and dropout == 0 and sink_of(layer.qkv.weight) is not None


class PostLayer(torch.autograd.Function):
    """The layer's gradients go into the sinks of its parameters. `weight` only makes the graph record the node."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, layer: Layer, layout: Layout) -> Tensor:
        config = layer.config
        dropout = config.attention_dropout if layer.training else 0.0
        qkv = _linear(x, layer.qkv)
        heads, kept = cpu_attention.forward(qkv, layout, config.heads, dropout, config.causal)
        middle = x + _linear(heads, layer.out)
        y, *first = _norm(middle, layer.attention_norm)
        up = _linear(y, layer.up)
        inner = torch._C._nn.gelu(up)
        last = y + _linear(inner, layer.down)
        z, *second = _norm(last, layer.output_norm)
        ctx.layer, ctx.kept = layer, (x, kept, heads, middle, first, y, up, inner, last, second)
        return z

    @staticmethod
    def backward(ctx, grad: Tensor):
        layer, (x, kept, heads, middle, first, y, up, inner, last, second) = ctx.layer, ctx.kept
        grad = _norm_backward(grad.contiguous(), last, layer.output_norm, *second)
        given = torch.ops.aten.gelu_backward(_linear_backward(grad, inner, layer.down), up)
        grad = grad + _linear_backward(given, y, layer.up)
        grad = _norm_backward(grad, middle, layer.attention_norm, *first)
        given = cpu_attention.backward(_linear_backward(grad, heads, layer.out), kept)
        below = _linear_backward(given, x, layer.qkv, ctx.needs_input_grad[0])
        return None if below is None else grad + below, None, None, None


def _linear(x: Tensor, module: nn.Linear) -> Tensor:
    return torch.addmm(module.bias, x, module.weight.t())


def _linear_backward(grad: Tensor, x: Tensor, module: nn.Linear, wanted: bool = True) -> Tensor | None:
    module.weight.sink.product(grad.t(), x)
    module.bias.sink.column_sums(grad)
    return grad.mm(module.weight) if wanted else None


def _norm(x: Tensor, module: nn.LayerNorm) -> tuple[Tensor, Tensor, Tensor]:
    return torch.native_layer_norm(x, module.normalized_shape, module.weight, module.bias, module.eps)


def _norm_backward(grad: Tensor, x: Tensor, module: nn.LayerNorm, mean: Tensor, rstd: Tensor) -> Tensor:
    result, weight, bias = torch.ops.aten.native_layer_norm_backward(
        grad, x, module.normalized_shape, mean, rstd, module.weight, module.bias, [True, True, True]
    )
    module.weight.sink.add(weight)
    module.bias.sink.add(bias)
    return result
