"""Predictions for many examples: sorted by length, within a budget of tokens per batch, without padding."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine.batches import Store, by_length
from crossalign.engine.encoder import Encoder
from crossalign.engine.parts import batch_inputs

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
        vector = torch.from_numpy(store.assemble(members, shape))
        # From pinned memory, or the host would wait for the batch before.
        vector = vector.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else vector.to(device)
        views = store.views(vector, shape)
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
            waiting: Callable[[], None] | None = None
            for members, batch, hidden in iterate_batches(model.encoder, store, device, budget):
                # A GPU computes this batch while the host fetches the one before.
                before, waiting = waiting, partial(_fetch, outputs, members, task.predict(model.head, hidden, batch))
                if before is not None:
                    before()
            if waiting is not None:
                waiting()
    finally:
        model.train(training)
    return outputs


def _fetch(outputs: list[dict[str, np.ndarray]], members: np.ndarray, tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        for member, row in zip(members, tensor.cpu().numpy(), strict=True):
            outputs[member][name] = row


def warm_up(model: TaskModel, task: Any, device: torch.device | str) -> None:
    """Predict something short and something long, so that a GPU's libraries are loaded and its kernels compiled."""
    examples = []
    for length in (12, 30, 60, 120):
        size = min(length, model.encoder.config.max_length)
        extent = {"sequence": [0] * size, "words": [0] * size, "scalar": 0}
        values = {name: extent[field.shape] for name, field in task.fields.items()}
        examples.append({"input_ids": [0] * size, **values})
    device = torch.device(device)
    # Each thread has a current GPU of its own.
    with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
        predict_all(model, task, examples, device, budget=1)


def make_store(encoder: Encoder, examples: Sequence[dict[str, Any]], fields: dict[str, Any]) -> Store:
    """A store of examples for this encoder."""
    return Store(examples, fields, encoder.config.position_offset, encoder.config.max_length)
