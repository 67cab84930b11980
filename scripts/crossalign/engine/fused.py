"""A Post-LN layer on one thread of a CPU whose PyTorch lacks MKL: NumPy's products and the kernels of `compiled`.

Between the products of a step PyTorch makes some thirty passes over memory a layer, most of them slower here than they
need be. This makes nine.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine import ops
from crossalign.engine.layout import Layout

_NO_BIAS = np.zeros(0, np.float32)


@functools.cache
def _known() -> bool:
    return ops.SLOW_PATHS and importlib.util.find_spec("numba") is not None


def suits(x: Tensor, layout: Layout, heads: int, width: int) -> bool:
    """Whether the kernels can run attention with vectors of `width` neurons, and are the quicker way."""
    packed = layout.lengths is None or (layout.cells is not None and not layout.filled)
    single = x.device.type == "cpu" and x.dtype == torch.float32 and torch.get_num_threads() == 1
    return single and packed and width // heads % 8 == 0 and _known()


def serves(layer: nn.Module, x: Tensor, layout: Layout) -> bool:
    """Whether `FusedLayer` may run this layer: a training step without dropout. Predictions would gain nothing."""
    config = layer.config
    dropout = layer.training and (config.hidden_dropout or config.attention_dropout)
    if dropout or config.causal or ops.sink_of(layer.qkv.weight) is None:
        return False
    return suits(x, layout, config.heads, config.hidden)


def starts_of(layout: Layout) -> np.ndarray:
    """Where the sequences of a packed batch start, and the end; all layers share them."""
    starts = layout.__dict__.get("starts")
    if starts is None:
        lengths = np.full(layout.batch, layout.length) if layout.lengths is None else layout.lengths.numpy()
        starts = layout.starts = np.concatenate([[0], np.cumsum(lengths)])
    return starts


class Attended(NamedTuple):
    """What the gradient of attention needs."""

    qkv: np.ndarray
    starts: np.ndarray
    heads: int
    weights: np.ndarray

    def backward(self, grad: np.ndarray, bias_grad: np.ndarray = _NO_BIAS, fresh: bool = True) -> np.ndarray:
        """The gradient of queries, keys and values; its column sums go to `bias_grad`."""
        from crossalign.engine import compiled

        given = np.empty_like(self.qkv)
        grad = np.ascontiguousarray(grad)
        compiled.attend_backward(grad, self.qkv, self.starts, self.heads, self.weights, given, bias_grad, fresh)
        return given


def attend(qkv: np.ndarray, layout: Layout, heads: int, bias: np.ndarray = _NO_BIAS) -> tuple[np.ndarray, Attended]:
    """Attention within each sequence, (tokens, 3 * hidden) to (tokens, hidden); `bias` is added to `qkv` in place."""
    from crossalign.engine import compiled

    starts = starts_of(layout)
    out = np.empty((len(qkv), qkv.shape[1] // 3), np.float32)
    counts = np.diff(starts)
    weights = np.empty(heads * int((counts * (-(-counts // 8) * 8)).sum()), np.float32)
    compiled.attend(qkv, bias, starts, heads, weights, out)
    return out, Attended(qkv, starts, heads, weights)


class _Parameters:
    """The arrays of a layer."""

    def __init__(self, layer: nn.Module) -> None:
        self.eps = layer.attention_norm.eps
        for name in ("qkv", "out", "up", "down", "attention_norm", "output_norm"):
            module = getattr(layer, name)
            setattr(self, name, (module.weight.detach().numpy(), module.bias.detach().numpy()))


def forward(x: np.ndarray, layer: nn.Module, layout: Layout) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The layer's output and what its gradient needs."""
    from crossalign.engine import compiled

    own = _Parameters(layer)
    tokens = len(x)
    heads, attended = attend(x @ own.qkv[0].T, layout, layer.config.heads, own.qkv[1])
    first, inverse = heads @ own.out[0].T, np.empty(tokens, np.float32)
    y = np.empty_like(first)
    compiled.add_norm(x, first, own.out[1], *own.attention_norm, own.eps, inverse, y)
    slope = y @ own.up[0].T
    inner = np.empty_like(slope)
    compiled.gelu(slope, own.up[1], inner)
    second, last_inverse = inner @ own.down[0].T, np.empty(tokens, np.float32)
    z = np.empty_like(second)
    compiled.add_norm(y, second, own.down[1], *own.output_norm, own.eps, last_inverse, z)
    return z, (own, x, attended, heads, first, inverse, y, slope, inner, second, last_inverse)


def backward(grad: np.ndarray, layer: nn.Module, kept: tuple[Any, ...], wanted: bool) -> np.ndarray | None:
    """The gradient of the layer's input, if `wanted`; those of its parameters go to their sinks. `grad` is changed."""
    own, x, attended, heads, first, inverse, y, slope, inner, second, last_inverse = kept
    from crossalign.engine import compiled

    def norm(value: np.ndarray, normal: np.ndarray, inverse: np.ndarray, name: str, linear: nn.Linear) -> None:
        module, weight = getattr(layer, name), getattr(own, name)[0]
        sinks = module.weight.sink, module.bias.sink, linear.bias.sink
        fresh = sinks[0].fresh
        compiled.norm_backward(value, normal, inverse, weight, *(sink.grad.numpy() for sink in sinks), fresh)
        for sink in sinks:
            sink.fresh = False

    norm(grad, second, last_inverse, "output_norm", layer.down)
    _product(layer.down, grad, inner)
    given = grad @ own.down[0]
    sink = layer.up.bias.sink
    compiled.gelu_backward(given, slope, sink.grad.numpy(), sink.fresh)
    sink.fresh = False
    _product(layer.up, given, y)
    middle = given @ own.up[0]
    middle += grad
    norm(middle, first, inverse, "attention_norm", layer.out)
    _product(layer.out, middle, heads)
    sink = layer.qkv.bias.sink
    given = attended.backward(middle @ own.out[0], sink.grad.numpy(), sink.fresh)
    sink.fresh = False
    _product(layer.qkv, given, x)
    if not wanted:
        return None
    result = given @ own.qkv[0]
    result += middle
    return result


def _product(module: nn.Linear, grad: np.ndarray, x: np.ndarray) -> None:
    sink = module.weight.sink
    value = sink.grad.numpy()
    if sink.fresh:
        np.matmul(grad.T, x, out=value)
    else:
        value += grad.T @ x
    sink.fresh = False


class FusedLayer(torch.autograd.Function):
    """The layer as one node of the gradient's graph. `weight` only makes the graph record the node."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, layer: nn.Module, layout: Layout) -> Tensor:
        z, ctx.kept = forward(x.detach().contiguous().numpy(), layer, layout)
        ctx.layer = layer
        return torch.from_numpy(z)

    @staticmethod
    def backward(ctx, grad: Tensor):
        # The graph may still need the gradient that it hands over, and the kernels write to it.
        given = backward(grad.contiguous().numpy().copy(), ctx.layer, ctx.kept, ctx.needs_input_grad[0])
        return None if given is None else torch.from_numpy(given), None, None, None


class FusedAttention(torch.autograd.Function):
    """Attention alone, for layers of other kinds."""

    @staticmethod
    def forward(ctx, qkv: Tensor, layout: Layout, heads: int) -> Tensor:
        out, ctx.kept = attend(qkv.detach().contiguous().numpy(), layout, heads)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return torch.from_numpy(ctx.kept.backward(grad.numpy())), None, None
