"""A part of the objective: a loss with its own examples, and what that loss gets of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import Shape, Store
from crossalign.engine.layout import Layout

# encode() gives the hidden states of the batch as a grid (sequences, length, hidden), encode(other) those of another
# encoder with the same vocabulary.
Encode = Callable[..., Tensor]
# (encode, batch) -> scalar loss.
Loss = Callable[[Encode, dict[str, Tensor]], Tensor]

# Pieces of a batch's vector that no loss reads.
FOR_ENCODER = {"ids", "positions", "rows", "cells", "lengths", "split", "types"}


@dataclass
class Part:
    """One term of the objective with its own examples. The loss is a mean: over targets, or else over examples.

    Alone: its loss runs other encoders too, so its batches should not share a pass with those of other parts.
    """

    store: Store
    loss: Loss
    batch_size: int
    weight: float = 1.0
    alone: bool = False

    def static_shape(self, members: np.ndarray, pieces: int = 1) -> Shape:
        """A shape out of a small set for these examples, one of so many pieces of a batch."""
        return self.store.static_shape(members, -(-self.batch_size // pieces))

    def objective(self, encode: Encode, batch: dict[str, Tensor], shape: Shape) -> Tensor:
        """The weighted loss of a batch."""
        return self.loss(encode, batch) * self.weight


def batch_inputs(views: dict[str, Tensor], shape: Shape) -> tuple[Layout, dict[str, Tensor]]:
    """The layout of a batch, and what losses and heads get: the fields, `attention_mask` and `word_mask`."""
    bound = max(shape.length, 64, shape.tokens // 8 + 1) if shape.filled else shape.length
    layout = Layout(shape.batch, shape.length, views["lengths"], views["cells"], views["rows"], shape.filled, bound)
    if layout.lengths.device.type == "cpu" and not shape.filled:
        layout.group()
    return layout, loss_inputs(views, shape, layout.mask)


def loss_inputs(views: dict[str, Tensor], shape: Shape, mask: Tensor) -> dict[str, Tensor]:
    """What losses and heads get; `mask`: the cells of the grid that hold a token."""
    batch = {name: view for name, view in views.items() if name not in FOR_ENCODER and name != "word_counts"}
    batch["attention_mask"] = mask
    if "word_counts" in views:
        counts = views["word_counts"]
        batch["word_mask"] = torch.arange(shape.words, device=counts.device) < counts[:, None]
    return batch
