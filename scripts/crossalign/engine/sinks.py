"""Where gradients go, and a second stream for those that nobody waits for before the update."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor


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
        if value.is_cuda and value.is_contiguous():
            from crossalign.engine import kernels

            if kernels.available() and value.shape[0] <= kernels.SUMMED_ROWS:
                kernels.row_sums(value, self)
                return
        if self.fresh:
            torch.sum(value, 0, out=self.grad)
        else:
            self.grad.add_(value.sum(0))
        self.fresh = False


def sink_of(parameter: Tensor) -> Sink | None:
    """The parameter's sink, when it has one and gradients are being recorded."""
    return getattr(parameter, "sink", None) if torch.is_grad_enabled() else None


class Branch:
    """Where a tensor feeds both a linear layer and, past it, a residual: the gradient of the residual waits here, and
    the product that gives the linear layer's adds to it, which saves a kernel."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: Tensor | None = None

    def take(self) -> Tensor | None:
        """What waits here, once."""
        pending, self.pending = self.pending, None
        return pending


class _Side:
    """A second stream beside the one that computes, for what nobody waits for before the update."""

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
    if not tensors[0].is_cuda:
        yield
        return
    device = tensors[0].device
    if device not in _SIDES:
        _SIDES[device] = _Side(device)
    side = _SIDES[device]
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
    """After a step that broke off, perhaps within a capture: what was put aside must not be waited for any more."""
    _SIDES.clear()
