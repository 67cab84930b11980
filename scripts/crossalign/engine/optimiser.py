"""AdamW over a few flat buffers that hold all trainable numbers, and the learning rate of every step.

The parameters of the modules become views into the buffers. In mixed precision the matrices that products use have a
bf16 copy, which the update itself writes: no casts within a step. Gradients of the encoder's blocks are written into
their place by the backward pass (see `ops.Sink`); the others (embeddings, heads) are copied there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine import kernels
from crossalign.engine.ops import Sink, join
from crossalign.runtime.errors import UserError


def learning_rates(peak: float, steps: int, warmup: float = 0.0, schedule: str = "linear") -> np.ndarray:
    """The learning rate of each step: from 0 to `peak` over the first `warmup` share, then down to 0 or constant.

    As in the usual trainers the very first step of a warm-up has rate 0, and the last step of a decay a rate above 0.
    """
    if not 0 <= warmup <= 1:
        raise UserError(f"warm-up {warmup} is not a share between 0 and 1")
    if schedule not in ("linear", "constant"):
        raise UserError(f"schedule '{schedule}' is not one of linear, constant")
    rising = math.ceil(steps * warmup)
    k = np.arange(steps, dtype=np.float64)
    rates = np.ones(steps) if schedule == "constant" else (steps - k) / max(1, steps - rising)
    rates[:rising] = k[:rising] / max(1, rising)
    return peak * rates


# Every parameter starts at a multiple of this, as matrix kernels like it.
_ALIGN = 64


@dataclass
class AdamW:
    """Settings of the optimiser; `clip` is the largest norm of the whole gradient, 0 for none."""

    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float = 1.0

    @classmethod
    def of(cls, settings: Any) -> AdamW:
        """Those among the settings of a training; not all of them decay."""
        decay = getattr(settings, "weight_decay", 0.0)
        return cls(tuple(settings.betas), settings.epsilon, decay, settings.clip)


@dataclass
class _Segment:
    """A stretch of the buffers that is updated alike."""

    start: int
    stop: int
    low: bool
    decay: float


class Arena:
    """Owns parameters, gradients and optimiser state of `modules` (name to module)."""

    def __init__(self, modules: dict[str, nn.Module], settings: AdamW, low_precision: Callable[[str], bool]) -> None:
        self.settings = settings
        named = {
            f"{prefix}.{name}": parameter
            for prefix, module in modules.items()
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }
        first = next(iter(named.values()))
        self.device = first.device
        self.parameters = named
        groups: dict[tuple[bool, bool], list[str]] = {}
        for name, parameter in named.items():
            # As usual no decay on biases, norms and scales.
            decays = settings.weight_decay > 0 and parameter.dim() > 1
            groups.setdefault((low_precision(name), decays), []).append(name)
        self.places: dict[str, tuple[int, torch.Size]] = {}
        self.segments: list[_Segment] = []
        position = 0
        # Low-precision segments first, so that their copy and their gradient are one buffer.
        for (low, decays), names in sorted(groups.items(), reverse=True):
            start = position
            for name in names:
                self.places[name] = (position, named[name].shape)
                position += -(-named[name].numel() // _ALIGN) * _ALIGN
            self.segments.append(_Segment(start, position, low, settings.weight_decay if decays else 0.0))
        self.size = position
        self.low_size = max((s.stop for s in self.segments if s.low), default=0)
        self._allocate()

    def _allocate(self) -> None:
        make = lambda size, dtype: torch.zeros(size, dtype=dtype, device=self.device)  # noqa: E731
        self.master = make(self.size, torch.float32)
        self.exp_avg = make(self.size, torch.float32)
        self.exp_avg_sq = make(self.size, torch.float32)
        self.low = make(self.low_size, torch.bfloat16)
        self.low_grad = make(self.low_size, torch.bfloat16)
        self.grad = make(self.size - self.low_size, torch.float32)
        self.sinks: dict[str, Sink] = {}
        for name, parameter in self.parameters.items():
            start, shape = self.places[name]
            stop = start + shape.numel()
            self.master[start:stop].copy_(parameter.data.reshape(-1))
            if start < self.low_size:
                value, grad = self.low[start:stop], self.low_grad[start:stop]
            else:
                value, grad = self.master[start:stop], self.grad[start - self.low_size : stop - self.low_size]
            parameter.data = value.view(shape)
            parameter.grad = None
            self.sinks[name] = Sink(grad.view(shape))
        self.refresh()

    def attach(self, direct: Callable[[str], bool]) -> None:
        """Let the backward pass write the gradients of the parameters that `direct` names straight into the buffer."""
        for name, parameter in self.parameters.items():
            if direct(name):
                parameter.sink = self.sinks[name]

    def detach(self) -> None:
        """Give the modules ordinary parameters again, in fp32 and of their own."""
        for name, parameter in self.parameters.items():
            start, shape = self.places[name]
            parameter.data = self.master[start : start + shape.numel()].view(shape).clone()
            parameter.grad = None
            if hasattr(parameter, "sink"):
                del parameter.sink

    def refresh(self) -> None:
        """Make the low-precision copy anew from the master values."""
        self.low.copy_(self.master[: self.low_size])

    def begin(self, first: bool) -> None:
        """Before a backward pass: what it contributes replaces the gradient (`first` of a step) or is added to it."""
        for name, parameter in self.parameters.items():
            self.sinks[name].fresh = first
            parameter.grad = None

    def collect(self) -> None:
        """After a backward pass: bring in what was not written directly, clear what is left from an earlier step."""
        join()
        with_grad = [name for name, parameter in self.parameters.items() if parameter.grad is not None]
        copied = [name for name in with_grad if self.sinks[name].fresh]
        added = [name for name in with_grad if not self.sinks[name].fresh]
        untouched = [s.grad for name, s in self.sinks.items() if s.fresh and self.parameters[name].grad is None]
        for names, combine in ((copied, torch._foreach_copy_), (added, torch._foreach_add_)):
            if names:
                combine([self.sinks[name].grad for name in names], [self.parameters[name].grad for name in names])
        if untouched:
            torch._foreach_zero_(untouched)
        for parameter in self.parameters.values():
            parameter.grad = None

    def norm(self) -> Tensor:
        """Euclidean norm of the whole gradient."""
        norms = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in self.gradients() if g.numel()]
        return norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))

    def numbers(self, rates: np.ndarray) -> Tensor:
        """What `update` needs to know at each step: learning rate, step counted from 1, the two bias corrections."""
        steps = np.arange(1, len(rates) + 1, dtype=np.float64)
        beta1, beta2 = self.settings.betas
        table = np.stack([rates, steps, 1 - beta1**steps, np.sqrt(1 - beta2**steps)], axis=1)
        return torch.tensor(table, dtype=torch.float32, device=self.device)

    def update(self, numbers: Tensor) -> None:
        """One step of AdamW with a row of `numbers`, on the device."""
        scale = None
        if self.settings.clip > 0:
            scale = self._clipping()
        for segment in self.segments:
            start, stop = segment.start, segment.stop
            if segment.low:
                grad, low = self.low_grad[start:stop], self.low[start:stop]
            else:
                grad, low = self.grad[start - self.low_size : stop - self.low_size], None
            state = [buffer[start:stop] for buffer in (self.master, self.exp_avg, self.exp_avg_sq)]
            self._update_segment(*state, grad, low, numbers, scale, segment.decay)

    def _clipping(self) -> Tensor:
        if self.device.type == "cuda" and kernels.available():
            from crossalign.engine.kernels import update

            return update.clipping(self.gradients(), self.settings.clip)
        return torch.clamp(self.settings.clip / (self.norm() + 1e-6), max=1.0)

    def _update_segment(self, master, exp_avg, exp_avg_sq, grad, low, numbers, scale, decay) -> None:
        settings = self.settings
        if master.is_cuda and kernels.available():
            from crossalign.engine.kernels import update

            update.adamw(master, exp_avg, exp_avg_sq, grad, low, numbers, scale, settings, decay)
            return
        if low is not None:
            grad = grad.float()
        if scale is not None:
            grad.mul_(scale)
        # PyTorch's own fused kernel behind torch.optim.AdamW(fused=True).
        torch._fused_adamw_(
            [master], [grad], [exp_avg], [exp_avg_sq], [], [numbers[1:2]],
            lr=numbers[0:1], beta1=settings.betas[0], beta2=settings.betas[1], weight_decay=decay, eps=settings.eps,
            amsgrad=False, maximize=False,
        )  # fmt: skip
        if low is not None:
            low.copy_(master)

    def gradients(self) -> list[Tensor]:
        """The gradient buffers."""
        return [self.low_grad, self.grad]

    def state(self) -> dict[str, Tensor]:
        """The buffers that a checkpoint needs."""
        return {"master": self.master, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take over buffers of an arena of the same modules."""
        for name, buffer in self.state().items():
            buffer.copy_(state[name])
        self.refresh()
