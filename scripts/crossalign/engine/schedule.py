"""Learning rate of every step, known before the first."""

from __future__ import annotations

import math

import numpy as np

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
