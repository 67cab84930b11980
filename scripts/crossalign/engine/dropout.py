"""Dropout."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


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
