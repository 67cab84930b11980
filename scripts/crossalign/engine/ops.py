"""The arithmetic of the encoder's blocks, with gradients written straight to where the optimiser reads them.

Training gives the encoder `Gradients`: then the backward pass of the blocks writes there, in one product and without
the allocation, the addition and the zeroing of the usual accumulation. Without them all is plain PyTorch.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine import kernels

# Pieces of work that the second stream may be behind; they hold memory.
_HELD = 16


class Gradients:
    """The gradient of every parameter: where backward passes write it, or bring it once PyTorch has worked it out.

    Of a step's contributions to a gradient the first overwrites what the last step left, the others add. On a GPU a
    second stream does what nothing waits for before the update.
    """

    def __init__(self, places: Mapping[nn.Parameter, Tensor]) -> None:
        self.places = places
        self._written: set[Tensor] = set()
        self._stream: torch.cuda.Stream | None = None
        # What the second stream still reads, with the event after which it does not.
        self._held: deque[tuple[torch.cuda.Event, tuple[Tensor, ...]]] = deque()
        self._seed: Tensor | None = None
        self._used = 0

    def begin(self, first: bool) -> None:
        """Before a forward and backward pass, perhaps the `first` of a step."""
        if first:
            self._written.clear()
        if self._held:
            # The pass before broke off, perhaps within a capture.
            self._held.clear()
            self._stream = None
        self._seed, self._used = None, 0
        for parameter in self.places:
            parameter.grad = None

    def collect(self) -> None:
        """After a backward pass: bring in what was not written directly, clear what is left from an earlier step."""
        if self._held:
            torch.cuda.current_stream().wait_stream(self._stream)
            self._held.clear()
        usual = {parameter: parameter.grad for parameter in self.places if parameter.grad is not None}
        copied = [parameter for parameter in usual if parameter not in self._written]
        added = [parameter for parameter in usual if parameter in self._written]
        for parameters, combine in ((copied, torch._foreach_copy_), (added, torch._foreach_add_)):
            if parameters:
                combine([self.places[one] for one in parameters], [usual[one] for one in parameters])
        untouched = [place for one, place in self.places.items() if one not in self._written and one not in usual]
        if untouched:
            torch._foreach_zero_(untouched)
        self._written.update(self.places)
        for parameter in usual:
            parameter.grad = None

    def place(self, parameter: Tensor) -> tuple[Tensor, bool]:
        """Where a contribution goes, and whether it adds to others."""
        add = parameter in self._written
        self._written.add(parameter)
        return self.places[parameter], add

    def product(self, parameter: Tensor, left: Tensor, right: Tensor) -> None:
        """Contribute left @ right."""
        place, add = self.place(parameter)
        if add:
            place.addmm_(left, right)
        else:
            torch.mm(left, right, out=place)

    def row_sums(self, parameter: Tensor, value: Tensor) -> None:
        """Contribute the sum over rows."""
        place, add = self.place(parameter)
        if kernels.serve(value) and value.is_contiguous():
            from crossalign.engine.kernels import norms

            if value.shape[0] <= norms.SUMMED_ROWS:
                norms.row_sums(value, place, add)
                return
        if add:
            place.add_(value.sum(0))
        else:
            torch.sum(value, 0, out=place)

    @contextlib.contextmanager
    def aside(self, *tensors: Tensor) -> Iterator[None]:
        """Run the body on the second stream, on a GPU; `tensors` are what it reads. `collect` waits for it."""
        if not tensors[0].is_cuda:
            yield
            return
        main = torch.cuda.current_stream()
        if self._stream is None:
            self._stream = torch.cuda.Stream(tensors[0].device)
        self._stream.wait_stream(main)
        with torch.cuda.stream(self._stream):
            yield
            done = torch.cuda.Event()
            done.record()
        # Memory that is given back is used again by the main stream at once: hold it until the second is through.
        self._held.append((done, tensors))
        if len(self._held) > _HELD:
            main.wait_event(self._held.popleft()[0])

    def random(self, like: Tensor) -> tuple[Tensor, int]:
        """For dropout in kernels: a seed drawn for this pass, and how many of its numbers are used up."""
        if self._seed is None:
            self._seed = torch.empty(1, dtype=torch.int64, device=like.device).random_(0, 2**31)
        used = self._used
        self._used += like.numel()
        return self._seed, used


class Linear(torch.autograd.Function):
    """x @ weight^T + bias. The gradients of weight and bias go `into` their places, the latter if it `sums` them."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, into: Gradients, sums: bool) -> Tensor:
        ctx.save_for_backward(x)
        ctx.weight, ctx.bias, ctx.into = weight, bias if sums else None, into
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx, grad: Tensor):
        (x,) = ctx.saved_tensors
        with ctx.into.aside(grad, x):
            ctx.into.product(ctx.weight, grad.t(), x)
            if ctx.bias is not None:
                ctx.into.row_sums(ctx.bias, grad)
        return grad.mm(ctx.weight) if ctx.needs_input_grad[0] else None, None, None, None, None


class AddNorm(torch.autograd.Function):
    """LayerNorm(residual + dropout(x)) in one kernel, its backward in two.

    The gradients of the norm's weight and bias go `into` their places, and so does that of `before`, the bias of the
    linear layer that made x.
    """

    @staticmethod
    def forward(ctx, x, residual, weight, bias, before, eps: float, dropout: float, into: Gradients) -> Tensor:
        from crossalign.engine.kernels import norms

        seed, ctx.base = into.random(x) if dropout > 0 else (None, 0)
        ctx.dropout, ctx.into, ctx.parameters = dropout, into, (weight, bias, before)
        y, *kept = norms.add_norm(x, residual, weight, bias, eps, dropout, seed, ctx.base)
        ctx.save_for_backward(*kept, seed)
        return y

    @staticmethod
    def backward(ctx, grad: Tensor):
        from crossalign.engine.kernels import norms

        total, mean, rstd, seed = ctx.saved_tensors
        dx, dresidual, partial = norms.add_norm_backward(
            grad, total, ctx.parameters[0], mean, rstd, ctx.dropout, seed, ctx.base
        )
        places, add = zip(*map(ctx.into.place, ctx.parameters), strict=True)
        with ctx.into.aside(partial):
            norms.three_sums(partial, places, add)
        return dx, dresidual, None, None, None, None, None, None


def linear(x: Tensor, module: nn.Linear, into: Gradients | None) -> Tensor:
    """x @ weight^T + bias for packed tokens (tokens, n)."""
    if into is None:
        return functional.linear(x, module.weight, module.bias)
    return Linear.apply(x, module.weight, module.bias, into, True)


def linear_add_norm(
    x: Tensor, module: nn.Linear, residual: Tensor, norm: nn.LayerNorm, dropout: float, into: Gradients | None
) -> Tensor:
    """LayerNorm(residual + dropout(linear(x))), the end of both Post-LN blocks."""
    if into is not None and kernels.serve(x):
        y = Linear.apply(x, module.weight, module.bias, into, False)
        return AddNorm.apply(y, residual, norm.weight, norm.bias, module.bias, norm.eps, dropout, into)
    return norm(residual + drop(linear(x, module, into), dropout))


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
