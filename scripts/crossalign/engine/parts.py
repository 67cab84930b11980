"""Parts of the objective: each a loss with its own examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import Shape, Store
from crossalign.engine.encoder import BaseEncoder
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
    """One term of the objective with its own examples. The loss is a mean: over targets, or else over examples."""

    store: Store
    loss: Loss
    batch_size: int
    weight: float = 1.0


def run_encoder(
    encoder: BaseEncoder, store: Store, members: np.ndarray, device: torch.device
) -> tuple[dict[str, Tensor], Tensor]:
    """Fields and masks of a batch of examples, and its hidden states as a grid."""
    shape = store.exact_shape(members)
    views = store.views(send(store.assemble(members, shape), device), shape)
    layout, batch = batch_inputs(views, shape)
    states = encoder.packed(views["ids"], views["positions"], views.get("types"), layout)
    return batch, layout.to_grid(states)


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """An array on the device: from pinned memory, or the host would wait for the batch before."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def batch_inputs(views: dict[str, Tensor], shape: Shape) -> tuple[Layout, dict[str, Tensor]]:
    """The layout of a batch, and what losses and heads get: the fields, `attention_mask` and `word_mask`."""
    bound = max(shape.length, 64, shape.tokens // 8 + 1) if shape.filled else shape.length
    layout = Layout(shape.batch, shape.length, views["lengths"], views["cells"], views["rows"], shape.filled, bound)
    if layout.lengths.device.type == "cpu" and not shape.filled:
        layout.group()
    batch = {name: view for name, view in views.items() if name not in FOR_ENCODER and name != "word_counts"}
    batch["attention_mask"] = layout.mask
    if "word_counts" in views:
        counts = views["word_counts"]
        batch["word_mask"] = torch.arange(shape.words, device=counts.device) < counts[:, None]
    return layout, batch
