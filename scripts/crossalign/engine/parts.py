"""Parts of the objective: each a loss with its own examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import Batch, Packed
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.layout import Layout
from crossalign.engine.ops import Gradients

# encode() gives the hidden states of the batch as a grid (sequences, length, hidden), encode(other) those of another
# encoder with the same vocabulary.
Encode = Callable[..., Tensor]
# (encode, batch) -> scalar loss. In training, `targets` are how many a loss counts, in the batch and in the whole step.
Loss = Callable[[Encode, dict[str, Tensor]], Tensor]


@dataclass
class Part:
    """One term of the objective with its own examples. The loss is a mean: over targets, or else over examples."""

    store: Packed
    loss: Loss
    batch_size: int
    weight: float = 1.0


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """An array on the device: from pinned memory, or the host would wait for the batch before."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def batch_inputs(batch: Batch) -> tuple[Layout, dict[str, Tensor]]:
    """The layout of a batch on its device, and what losses and heads get: its tensors and their masks."""
    tensors = dict(batch.tensors)
    layout = Layout(tensors["cu_seqlens"], len(tensors["ids"]), batch.length, batch.filled)
    tensors["attention_mask"] = layout.mask
    if "word_counts" in tensors:
        counts = tensors["word_counts"]
        tensors["word_mask"] = torch.arange(batch.words, device=counts.device) < counts[:, None]
    return layout, tensors


def states(encoder: BaseEncoder, layout: Layout, batch: dict[str, Tensor], into: Gradients | None = None) -> Tensor:
    """The hidden states of a batch as a grid."""
    packed = encoder.packed(batch["ids"], batch["positions"], batch.get("types"), layout, into=into)
    return layout.to_grid(packed)


def run_encoder(
    encoder: BaseEncoder, store: Packed, members: np.ndarray, device: torch.device
) -> tuple[dict[str, Tensor], Tensor]:
    """Fields and masks of a batch of examples, and its hidden states as a grid."""
    batch = store.assemble(members)
    layout, tensors = batch_inputs(batch.over(send(batch.vector(), device)))
    return tensors, states(encoder, layout, tensors)
