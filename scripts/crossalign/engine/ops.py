"""The arithmetic of the encoder's blocks, with gradients written straight to where the optimiser reads them.

A parameter may carry a `sink` (see `sinks.Sink`). Then the backward pass writes its gradient there, in one product and
without the allocation, the addition and the zeroing of the usual accumulation. Without a sink all is plain PyTorch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine.attention import attention
from crossalign.engine.dropout import drop
from crossalign.engine.layout import Layout
from crossalign.engine.sinks import Branch, aside, sink_of

__all__ = ["attention", "drop", "layer_norm", "linear", "linear_add_norm"]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, with_bias: bool, branch: Branch | None = None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.branch = branch
        ctx.sinks = weight.sink, bias.sink if with_bias else None
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, weight = ctx.saved_tensors
        weight_sink, bias_sink = ctx.sinks
        with aside(grad, x):
            weight_sink.product(grad.t(), x)
            if bias_sink is not None:
                bias_sink.column_sums(grad)
        if not ctx.needs_input_grad[0]:
            return None, None, None, None, None
        waiting = None if ctx.branch is None else ctx.branch.take()
        result = grad.mm(weight) if waiting is None else waiting.addmm_(grad, weight)
        return result, None, None, None, None


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        y, mean, rstd = torch.native_layer_norm(x, weight.shape, weight, bias, eps)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.sinks = weight.sink, bias.sink
        return y

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, weight, bias, mean, rstd = ctx.saved_tensors
        dx, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
            grad.contiguous(), x, weight.shape, mean, rstd, weight, bias, [True, True, True]
        )
        ctx.sinks[0].add(dweight)
        ctx.sinks[1].add(dbias)
        return dx, None, None, None


def linear(x: Tensor, module: nn.Linear) -> Tensor:
    """x @ weight^T + bias for packed tokens (tokens, n)."""
    if sink_of(module.weight) is None:
        return functional.linear(x, module.weight, module.bias)
    branch = None
    if x.is_cuda and x.requires_grad:
        # `linear_add_norm` looks for it when x is its residual.
        branch = x.branch = Branch()
    return _Linear.apply(x, module.weight, module.bias, True, branch)


def layer_norm(x: Tensor, module: nn.LayerNorm) -> Tensor:
    """Layer normalisation."""
    if sink_of(module.weight) is None:
        return functional.layer_norm(x, module.normalized_shape, module.weight, module.bias, module.eps)
    return _LayerNorm.apply(x, module.weight, module.bias, module.eps)


def linear_add_norm(x: Tensor, module: nn.Linear, residual: Tensor, norm: nn.LayerNorm, dropout: float, layout: Layout):
    """LayerNorm(residual + dropout(linear(x))), the end of both Post-LN blocks; x stems from `linear` of residual."""
    if x.is_cuda and sink_of(module.weight) is not None:
        from crossalign.engine import kernels

        if kernels.available():
            y = _Linear.apply(x, module.weight, module.bias, False)
            random = layout.random(y) if dropout > 0 else None
            sinks = norm.weight.sink, norm.bias.sink, module.bias.sink
            branch = getattr(residual, "branch", None)
            return kernels.AddNorm.apply(y, residual, norm.weight, norm.bias, norm.eps, dropout, random, sinks, branch)
    return layer_norm(residual + drop(linear(x, module), dropout), norm)
