"""Predictions for many examples: sorted by length, within a budget of tokens per batch, without padding."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.models.encoder import Encoder
from crossalign.training.batches import Store, by_length
from crossalign.training.engine import batch_inputs

# Tokens per batch: enough to fill a GPU, few enough to stay in a CPU's cache.
BUDGET = {"cuda": 32768, "cpu": 2048}


class TaskModel(nn.Module):
    """An encoder with the head of a task."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def place(self, device: torch.device, precision: str = "fp32") -> TaskModel:
        """Move to a device for evaluation; with bf16 the layers' products run in bf16."""
        self.to(device)
        if precision == "bf16":
            self.encoder.layers.to(torch.bfloat16)
            if self.encoder.final_norm is not None:
                self.encoder.final_norm.to(torch.bfloat16)
        return self.eval()


def iterate_batches(
    encoder: Encoder, store: Store, device: torch.device, budget: int | None = None, all_layers: bool = False
) -> Iterator[tuple[np.ndarray, dict[str, Tensor], Tensor | list[Tensor]]]:
    """Batch after batch: the numbers of its examples, its fields and masks, and its hidden states as a grid.

    With `all_layers` the hidden states are a list, embeddings first. The longest examples come first, so that running
    out of memory shows at once.
    """
    for members in by_length(store, budget or BUDGET[device.type]):
        shape = store.exact_shape(members)
        views = store.views(torch.from_numpy(store.assemble(members, shape)).to(device), shape)
        layout, batch = batch_inputs(views, shape)
        states = encoder.packed(views["ids"], views["positions"], views.get("types"), layout, all_layers)
        grid = [layout.to_grid(state) for state in states] if all_layers else layout.to_grid(states)
        yield members, batch, grid


def predict_all(
    model: TaskModel,
    task: Any,
    examples: Sequence[dict[str, Any]] | Store,
    device: torch.device | str,
    budget: int | None = None,
) -> list[dict[str, np.ndarray]]:
    """What `task.predict` gives for each example, in the examples' order; rows are padded as their batch was."""
    device = torch.device(device)
    store = examples if isinstance(examples, Store) else make_store(model.encoder, examples, task.fields)
    outputs: list[dict[str, np.ndarray]] = [{} for _ in range(len(store))]
    training = model.training
    model.eval()
    low = len(model.encoder.layers) and model.encoder.layers[0].qkv.weight.dtype == torch.bfloat16
    mixed = torch.autocast(device.type, torch.bfloat16) if low else contextlib.nullcontext()
    try:
        with torch.inference_mode(), mixed:
            for members, batch, hidden in iterate_batches(model.encoder, store, device, budget):
                for name, tensor in task.predict(model.head, hidden, batch).items():
                    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
                    for member, row in zip(members, tensor.cpu().numpy(), strict=True):
                        outputs[member][name] = row
    finally:
        model.train(training)
    return outputs


def make_store(encoder: Encoder, examples: Sequence[dict[str, Any]], fields: dict[str, Any]) -> Store:
    """A store of examples for this encoder."""
    return Store(examples, fields, encoder.config.position_offset, encoder.config.max_length)
