"""A Post-LN layer on one thread of a CPU whose PyTorch lacks MKL: NumPy's products and the kernels of `compiled`.

Between the products of a step PyTorch makes some thirty passes over memory a layer, most of them slower here than they
need be. This makes nine.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

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
    """Whether `FusedLayer` may run this layer: a training step without dropout, or a prediction."""
    config = layer.config
    dropout = layer.training and (config.hidden_dropout or config.attention_dropout)
    plain = torch.is_grad_enabled() and ops.sink_of(layer.qkv.weight) is None
    if dropout or config.causal or plain or config.intermediate % 8:
        return False
    return suits(x, layout, config.heads, config.hidden)


class _Room(NamedTuple):
    """Where the sequences of a packed batch start, and the end; how many weights attention has for each head."""

    starts: np.ndarray
    weights: int


def _room(layout: Layout) -> _Room:
    """All layers share it."""
    room = layout.__dict__.get("room")
    if room is None:
        lengths = np.full(layout.batch, layout.length) if layout.lengths is None else layout.lengths.numpy()
        # Rows of weights are filled up to a multiple of 8.
        weights = int((lengths * (-(-lengths // 8) * 8)).sum())
        room = layout.room = _Room(np.concatenate([[0], np.cumsum(lengths)]), weights)
    return room


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

    room = _room(layout)
    out = np.empty((len(qkv), qkv.shape[1] // 3), np.float32)
    weights = np.empty(heads * room.weights, np.float32)
    compiled.attend(qkv, bias, room.starts, heads, weights, out)
    return out, Attended(qkv, room.starts, heads, weights)


_NAMES = ("qkv", "out", "up", "down", "attention_norm", "output_norm")


class _Parameters:
    """The arrays of a layer and, where it is trained, those of its gradients; making them anew takes a while."""

    def __init__(self, layer: nn.Module) -> None:
        modules = [getattr(layer, name) for name in _NAMES]
        self.eps = layer.attention_norm.eps
        self.place = layer.qkv.weight.data_ptr()
        self.sink = getattr(layer.qkv.weight, "sink", None)
        for name, module in zip(_NAMES, modules, strict=True):
            setattr(self, name, (module.weight.detach().numpy(), module.bias.detach().numpy()))
        if self.sink is not None:
            self.sinks = [sink for module in modules for sink in (module.weight.sink, module.bias.sink)]
            self.grads = {
                name: (module.weight.sink.grad.numpy(), module.bias.sink.grad.numpy())
                for name, module in zip(_NAMES, modules, strict=True)
            }

    def fit(self, layer: nn.Module) -> bool:
        """Whether they are still the layer's; they move together, into the optimiser's memory and out of it."""
        weight = layer.qkv.weight
        return self.place == weight.data_ptr() and self.sink is getattr(weight, "sink", None)


_PARAMETERS: WeakKeyDictionary[nn.Module, _Parameters] = WeakKeyDictionary()


def _parameters(layer: nn.Module) -> _Parameters:
    own = _PARAMETERS.get(layer)
    if own is None or not own.fit(layer):
        own = _PARAMETERS[layer] = _Parameters(layer)
    return own


def forward(x: np.ndarray, layer: nn.Module, layout: Layout) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The layer's output and what its gradient needs."""
    from crossalign.engine import compiled

    own = _parameters(layer)
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


def backward(grad: np.ndarray, kept: tuple[Any, ...], wanted: bool) -> np.ndarray | None:
    """The gradient of the layer's input, if `wanted`; those of its parameters go to their sinks. `grad` is changed."""
    own, x, attended, heads, first, inverse, y, slope, inner, second, last_inverse = kept
    from crossalign.engine import compiled

    grads, fresh = own.grads, own.sink.fresh

    def norm(value: np.ndarray, normal: np.ndarray, inverse: np.ndarray, name: str, linear: str) -> None:
        weight = getattr(own, name)[0]
        compiled.norm_backward(value, normal, inverse, weight, *grads[name], grads[linear][1], fresh)

    def product(name: str, grad: np.ndarray, x: np.ndarray) -> None:
        value = grads[name][0]
        if fresh:
            np.matmul(grad.T, x, out=value)
        else:
            value += grad.T @ x

    norm(grad, second, last_inverse, "output_norm", "down")
    product("down", grad, inner)
    given = grad @ own.down[0]
    compiled.gelu_backward(given, slope, grads["up"][1], fresh)
    product("up", given, y)
    middle = given @ own.up[0]
    middle += grad
    norm(middle, first, inverse, "attention_norm", "out")
    product("out", middle, heads)
    given = attended.backward(middle @ own.out[0], grads["qkv"][1], fresh)
    product("qkv", given, x)
    for sink in own.sinks:
        sink.fresh = False
    if not wanted:
        return None
    result = given @ own.qkv[0]
    result += middle
    return result


class FusedLayer(torch.autograd.Function):
    """The layer as one node of the gradient's graph. `weight` only makes the graph record the node."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, layer: nn.Module, layout: Layout) -> Tensor:
        z, ctx.kept = forward(x.detach().contiguous().numpy(), layer, layout)
        return torch.from_numpy(z)

    @staticmethod
    def backward(ctx, grad: Tensor):
        # The graph may still need the gradient that it hands over, and the kernels write to it.
        given = backward(grad.contiguous().numpy().copy(), ctx.kept, ctx.needs_input_grad[0])
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
