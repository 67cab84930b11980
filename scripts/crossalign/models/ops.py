"""The arithmetic of the encoder's blocks, with gradients written straight to where the optimiser reads them.

A parameter may carry a `sink` (see `Sink`). Then the backward pass writes its gradient there, in one product and
without the allocation, the addition and the zeroing of the usual accumulation. Without a sink all is plain PyTorch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.models.layout import Layout


class Sink:
    """Where the gradient of one parameter goes. The first contribution of a step overwrites, the others add."""

    __slots__ = ("fresh", "grad")

    def __init__(self, grad: Tensor) -> None:
        self.grad = grad
        self.fresh = True

    def product(self, left: Tensor, right: Tensor) -> None:
        """Contribute left @ right."""
        if self.fresh:
            torch.mm(left, right, out=self.grad)
        else:
            self.grad.addmm_(left, right)
        self.fresh = False

    def add(self, value: Tensor) -> None:
        """Contribute a ready gradient."""
        if self.fresh:
            self.grad.copy_(value)
        else:
            self.grad.add_(value)
        self.fresh = False

    def column_sums(self, value: Tensor) -> None:
        """Contribute the sum over rows."""
        if self.fresh:
            torch.sum(value, 0, out=self.grad)
        else:
            self.grad.add_(value.sum(0))
        self.fresh = False


def sink_of(parameter: Tensor) -> Sink | None:
    """The parameter's sink, when it has one and gradients are being recorded."""
    return getattr(parameter, "sink", None) if torch.is_grad_enabled() else None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, with_bias: bool) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.sinks = weight.sink, bias.sink if with_bias else None
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, weight = ctx.saved_tensors
        weight_sink, bias_sink = ctx.sinks
        weight_sink.product(grad.t(), x)
        if bias_sink is not None:
            bias_sink.column_sums(grad)
        return (grad.mm(weight) if ctx.needs_input_grad[0] else None), None, None, None


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
    return _Linear.apply(x, module.weight, module.bias, True)


def layer_norm(x: Tensor, module: nn.LayerNorm) -> Tensor:
    """Layer normalisation."""
    if sink_of(module.weight) is None:
        return functional.layer_norm(x, module.normalized_shape, module.weight, module.bias, module.eps)
    return _LayerNorm.apply(x, module.weight, module.bias, module.eps)


def linear_add_norm(x: Tensor, module: nn.Linear, residual: Tensor, norm: nn.LayerNorm, dropout: float, layout: Layout):
    """LayerNorm(residual + dropout(linear(x))), the end of both Post-LN blocks."""
    if x.is_cuda and sink_of(module.weight) is not None:
        from crossalign.models import kernels

        if kernels.available():
            y = _Linear.apply(x, module.weight, module.bias, False)
            random = layout.random(y) if dropout > 0 else None
            sinks = norm.weight.sink, norm.bias.sink, module.bias.sink
            return kernels.AddNorm.apply(y, residual, norm.weight, norm.bias, norm.eps, dropout, random, sinks)
    return layer_norm(residual + drop(linear(x, module), dropout), norm)


def drop(x: Tensor, dropout: float) -> Tensor:
    """Dropout; the caller passes 0 outside training."""
    if dropout <= 0:
        return x
    return functional.dropout(x, dropout) if x.is_cuda else x * _keep(x.shape, dropout)


def _keep(shape: torch.Size, dropout: float) -> Tensor:
    """A dropout mask, 0 or 1 / (1 - dropout), on the CPU: 16 bits of PyTorch's generator per number.

    Five times as fast as its own dropout, which draws a double for each number.
    """
    count = shape.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).numpy().view(np.uint16)[:count]
    keep = (bits >= round(dropout * 65536)).astype(np.float32)
    keep *= 1 / (1 - dropout)
    return torch.from_numpy(keep).view(shape)


def attention(qkv: Tensor, layout: Layout, heads: int, dropout: float) -> Tensor:
    """Self-attention within each sequence: (tokens, 3 * hidden) to (tokens, heads, hidden / heads)."""
    if layout.lengths is not None and layout.cells is not None and packed_attention_works(qkv, heads):
        q, k, v = qkv.view(qkv.shape[0], 3, heads, -1).unbind(1)
        return _flash(q, k, v, layout.bounds(qkv.shape[0]), layout.longest or layout.length, dropout)
    if layout.groups:
        parts = zip(qkv.split(layout.sizes), layout.groups, strict=True)
        return torch.cat([_grid_attention(part, group, heads, dropout) for part, group in parts])
    return _grid_attention(qkv, layout, heads, dropout)


def _grid_attention(qkv: Tensor, layout: Layout, heads: int, dropout: float) -> Tensor:
    grid = layout.to_grid(qkv).view(layout.batch, layout.length, 3, heads, -1)
    q, k, v = grid.permute(2, 0, 3, 1, 4).unbind(0)
    if dropout > 0 and not qkv.is_cuda:
        out = _plain_attention(q, k, v, layout.keys(), dropout)
    else:
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=layout.keys(), dropout_p=dropout)
    return layout.from_grid(out.transpose(1, 2)).view(qkv.shape[0], heads, -1)


def _plain_attention(q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None, dropout: float) -> Tensor:
    # PyTorch's own way with dropout on the CPU looks for rows without any key, at some cost; here there are none.
    weights = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if keys is not None:
        weights = weights + torch.zeros(keys.shape).masked_fill(~keys, float("-inf"))
    return drop(torch.softmax(weights, -1), dropout) @ v


def _flash(q: Tensor, k: Tensor, v: Tensor, bounds: Tensor, longest: int, dropout: float) -> Tensor:
    # The public varlen_attn of PyTorch has no dropout; this is the operator below it.
    return torch.ops.aten._flash_attention_forward(q, k, v, bounds, bounds, longest, longest, dropout, False, False)[0]


_PACKED: dict[tuple, bool] = {}


def packed_attention_works(qkv: Tensor, heads: int) -> bool:
    """Whether the packed kernel runs here and gives the right answer; tried once per type and head size."""
    if not qkv.is_cuda or qkv.dtype not in (torch.bfloat16, torch.float16):
        return False
    size = qkv.shape[1] // (3 * heads)
    key = (qkv.device, qkv.dtype, size)
    if key not in _PACKED:
        if torch.cuda.is_current_stream_capturing():
            return False
        _PACKED[key] = _try_packed(qkv, heads, size)
    return _PACKED[key]


def _try_packed(qkv: Tensor, heads: int, size: int) -> bool:
    generator = torch.Generator(qkv.device).manual_seed(1)
    sample = torch.randn(24, 3, heads, size, device=qkv.device, generator=generator).to(qkv.dtype)
    bounds = torch.tensor([0, 16, 24], dtype=torch.int32, device=qkv.device)
    try:
        # The first caller may be an evaluation, where no gradients exist.
        with torch.inference_mode(False), torch.enable_grad():
            sample = sample.clone().requires_grad_()
            got = _flash(*sample.unbind(1), bounds, 64, 0.0)
            (grad,) = torch.autograd.grad(got.float().square().sum(), sample)
            want = torch.cat(
                [
                    functional.scaled_dot_product_attention(*(x.transpose(0, 1) for x in part.unbind(1))).transpose(
                        0, 1
                    )
                    for part in (sample[:16], sample[16:])
                ]
            )
            (want_grad,) = torch.autograd.grad(want.float().square().sum(), sample)
        return bool(torch.allclose(got.float(), want.float(), atol=0.03)) and bool(
            torch.allclose(grad.float(), want_grad.float(), atol=0.2, rtol=0.1)
        )
    except RuntimeError:
        return False
