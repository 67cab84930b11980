"""AdamW over a few flat buffers that hold all trainable numbers, and the learning rate of every step.

The parameters of the modules become views into the buffers. In mixed precision the matrices that products use have a
bf16 copy, which the update itself writes: no casts within a step. Gradients of the encoder's blocks are written into
their place by the backward pass (see `ops.Gradients`); the others (embeddings, norms, heads) are copied there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine import kernels
from crossalign.engine.ops import Gradients
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


class Arena:
    """Owns parameters, gradients and optimiser state of `modules` (name to module)."""

    def __init__(self, modules: dict[str, nn.Module], settings: AdamW, low_precision: Callable[[str], bool]) -> None:
        self.settings = settings
        self.parameters = {
            f"{prefix}.{name}": parameter
            for prefix, module in modules.items()
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }
        self.device = next(iter(self.parameters.values())).device
        groups: dict[tuple[bool, bool], list[str]] = {}
        for name, parameter in self.parameters.items():
            # As usual no decay on biases, norms and scales.
            decays = settings.weight_decay > 0 and parameter.dim() > 1
            groups.setdefault((low_precision(name), decays), []).append(name)
        self._starts: dict[str, int] = {}
        # Start, end and weight decay of the stretches that are updated alike.
        self._segments: list[tuple[int, int, float]] = []
        position = low_size = 0
        # Low-precision parameters first, so that their copy and their gradient are one buffer.
        for (low, decays), names in sorted(groups.items(), reverse=True):
            start = position
            for name in names:
                self._starts[name] = position
                position += -(-self.parameters[name].numel() // _ALIGN) * _ALIGN
            self._segments.append((start, position, settings.weight_decay if decays else 0.0))
            low_size = position if low else low_size
        zeros = partial(torch.zeros, device=self.device)
        self.master, self.exp_avg, self.exp_avg_sq = (zeros(position) for _ in range(3))
        self.low, self.low_grad = (zeros(low_size, dtype=torch.bfloat16) for _ in range(2))
        self.grad = zeros(position - low_size)
        places = {}
        for name, parameter in self.parameters.items():
            start, shape = self._starts[name], parameter.shape
            self.master[start : start + parameter.numel()].copy_(parameter.data.reshape(-1))
            value, grad = self._stretch(start, start + parameter.numel())
            parameter.data = value.view(shape)
            places[parameter] = grad.view(shape)
        self.gradients = Gradients(places)
        self.refresh()

    def _stretch(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """What products use of a stretch of the numbers, and its gradient."""
        size = len(self.low)
        if start < size:
            return self.low[start:stop], self.low_grad[start:stop]
        return self.master[start:stop], self.grad[start - size : stop - size]

    def detach(self) -> None:
        """Give the modules ordinary parameters again, in fp32 and of their own."""
        for name, parameter in self.parameters.items():
            start = self._starts[name]
            parameter.data = self.master[start : start + parameter.numel()].view(parameter.shape).clone()
            parameter.grad = None

    def refresh(self) -> None:
        """Make the low-precision copy anew from the master values."""
        self.low.copy_(self.master[: len(self.low)])

    def numbers(self, rates: np.ndarray) -> Tensor:
        """What `update` needs to know at each step: learning rate, step counted from 1, the two bias corrections."""
        steps = np.arange(1, len(rates) + 1, dtype=np.float64)
        beta1, beta2 = self.settings.betas
        table = np.stack([rates, steps, 1 - beta1**steps, np.sqrt(1 - beta2**steps)], axis=1)
        return torch.tensor(table, dtype=torch.float32, device=self.device)

    def update(self, numbers: Tensor) -> None:
        """One step of AdamW with a row of `numbers`, on the device."""
        scale = self._clipping() if self.settings.clip > 0 else None
        for start, stop, decay in self._segments:
            values, grad = self._stretch(start, stop)
            state = [buffer[start:stop] for buffer in (self.master, self.exp_avg, self.exp_avg_sq)]
            self._adamw(*state, grad, values if start < len(self.low) else None, numbers, scale, decay)

    def _clipping(self) -> Tensor:
        """The factor that brings the norm of the whole gradient down to `clip`; 1 where it is smaller anyway."""
        grads = [grad for grad in (self.low_grad, self.grad) if grad.numel()]
        if kernels.serve(self.master):
            from crossalign.engine.kernels import update

            return update.clipping(grads, self.settings.clip)
        norms = [torch.linalg.vector_norm(grad, dtype=torch.float32) for grad in grads]
        norm = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))
        return torch.clamp(self.settings.clip / (norm + 1e-6), max=1.0)

    def _adamw(self, master, exp_avg, exp_avg_sq, grad, low, numbers, scale, decay) -> None:
        settings = self.settings
        if kernels.serve(master):
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

    def state(self) -> dict[str, Tensor]:
        """The buffers that a checkpoint needs."""
        return {"master": self.master, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take over buffers of an arena of the same modules."""
        for name, buffer in self.state().items():
            buffer.copy_(state[name])
        self.refresh()
