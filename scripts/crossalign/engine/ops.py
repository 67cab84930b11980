"""The arithmetic of the encoder's blocks, with gradients written straight to where the optimiser reads them.

A parameter may carry a `sink`. Then the backward pass writes its gradient there, in one product and without the
allocation, the addition and the zeroing of the usual accumulation. Without a sink all is plain PyTorch.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine import kernels
from crossalign.engine.layout import Layout


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
        if value.is_cuda and value.is_contiguous() and kernels.available():
            from crossalign.engine.kernels import norms

            if value.shape[0] <= norms.SUMMED_ROWS:
                norms.row_sums(value, self.grad, add=not self.fresh)
                self.fresh = False
                return
        if self.fresh:
            torch.sum(value, 0, out=self.grad)
        else:
            self.grad.add_(value.sum(0))
        self.fresh = False


def sink_of(parameter: Tensor) -> Sink | None:
    """The parameter's sink, when it has one and gradients are being recorded."""
    return getattr(parameter, "sink", None) if torch.is_grad_enabled() else None


class _Side:
    """A second stream for work that nothing waits for before the update."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        # What the stream still reads, with the event after which it does not.
        self.held: deque[tuple[torch.cuda.Event, tuple[Tensor, ...]]] = deque()


_SIDES: dict[torch.device, _Side] = {}
# Pieces of work that the second stream may be behind; they hold memory.
_HELD = 16


@contextlib.contextmanager
def aside(*tensors: Tensor) -> Iterator[None]:
    """Run the body on the second stream, on a GPU; `tensors` are what it reads. `join` waits for it."""
    device = tensors[0].device
    if device.type != "cuda":
        yield
        return
    side = _SIDES.get(device) or _SIDES.setdefault(device, _Side(device))
    main = torch.cuda.current_stream()
    side.stream.wait_stream(main)
    with torch.cuda.stream(side.stream):
        yield
        done = torch.cuda.Event()
        done.record()
    # Memory that is given back is used again by the main stream at once: hold it until the side is through.
    side.held.append((done, tensors))
    if len(side.held) > _HELD:
        main.wait_event(side.held.popleft()[0])


def join() -> None:
    """Let the current stream wait for all work that was put aside."""
    for side in _SIDES.values():
        if side.held:
            torch.cuda.current_stream().wait_stream(side.stream)
            side.held.clear()


def forget() -> None:
    """After a step that broke off, perhaps within a capture: stop waiting for what was put aside."""
    _SIDES.clear()


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
        with aside(grad, x):
            weight_sink.product(grad.t(), x)
            if bias_sink is not None:
                bias_sink.column_sums(grad)
        return grad.mm(weight) if ctx.needs_input_grad[0] else None, None, None, None


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


class AddNorm(torch.autograd.Function):
    """LayerNorm(residual + dropout(x)) in one kernel, its backward in two; `random` is a seed and a base.

    The gradients of the norm's weight and bias, and of the bias of the linear layer that made x, go to `sinks`.
    """

    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps, dropout, random, sinks) -> Tensor:
        from crossalign.engine.kernels import norms

        seed, ctx.base = random if dropout > 0 else (None, 0)
        ctx.dropout, ctx.sinks = dropout, sinks
        y, *kept = norms.add_norm(x, residual, weight, bias, eps, dropout, seed, ctx.base)
        ctx.save_for_backward(*kept, weight, seed)
        return y

    @staticmethod
    def backward(ctx, dy: Tensor):
        from crossalign.engine.kernels import norms

        total, mean, rstd, weight, seed = ctx.saved_tensors
        dx, dresidual, partial = norms.add_norm_backward(
            dy, total, weight, mean, rstd, ctx.dropout, seed, ctx.base,
        )  # fmt: skip
        with aside(partial):
            norms.three_sums(partial, [sink.grad for sink in ctx.sinks], [not sink.fresh for sink in ctx.sinks])
        for sink in ctx.sinks:
            sink.fresh = False
        return dx, dresidual, None, None, None, None, None, None


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
    if x.is_cuda and sink_of(module.weight) is not None and kernels.available():
        y = _Linear.apply(x, module.weight, module.bias, False)
        random = layout.random(y) if dropout > 0 else None
        sinks = norm.weight.sink, norm.bias.sink, module.bias.sink
        return AddNorm.apply(y, residual, norm.weight, norm.bias, norm.eps, dropout, random, sinks)
    return layer_norm(residual + drop(linear(x, module), dropout), norm)


def drop(x: Tensor, dropout: float) -> Tensor:
    """Dropout; the caller passes 0 outside training."""
    if dropout <= 0:
        return x
    return functional.dropout(x, dropout) if x.is_cuda else x * keep_mask(x.shape, dropout)


def keep_mask(shape: torch.Size, dropout: float) -> Tensor:
    """A dropout mask, 0 or 1 / (1 - dropout), on the CPU: 16 bits of PyTorch's generator per number.

    Five times as fast as its own dropout, which draws a double for each number.
    """
    count = shape.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).numpy().view(np.uint16)[:count]
    keep = (bits >= round(dropout * 65536)).astype(np.float32)
    keep *= 1 / (1 - dropout)
    return torch.from_numpy(keep).view(shape)
