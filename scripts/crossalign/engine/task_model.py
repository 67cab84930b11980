"""An encoder with the head of a task: predictions, and files that hold only what training changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from crossalign.engine.batches import Store, by_length
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.folders import load_weights
from crossalign.engine.identity import folder_identity
from crossalign.engine.parts import run_encoder
from crossalign.engine.random_init import ALL, random_init
from crossalign.engine.weights import write_tensors
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_json, write_json

# Tokens per batch: enough to fill a GPU, few enough to stay in a CPU's cache.
BUDGET = {"cuda": 32768, "cpu": 2048}


class TaskModel(nn.Module):
    """An encoder with the head of a task."""

    def __init__(self, encoder: BaseEncoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def place(self, device: torch.device, precision: str = "fp32") -> TaskModel:
        """Move to a device for evaluation; with bf16 the layers' products run in bf16."""
        self.to(device)
        if precision == "bf16":
            for name, parameter in self.encoder.named_parameters():
                if self.encoder.is_low(name):
                    parameter.data = parameter.data.bfloat16()
        return self.eval()


def predict_all(
    model: TaskModel, task: Any, examples: Sequence[dict[str, Any]] | Store, device: torch.device | str
) -> list[dict[str, np.ndarray]]:
    """What `task.predict` gives for each example, in the examples' order; rows are padded as their batch was.

    The longest examples come first, so that running out of memory shows at once.
    """
    device = torch.device(device)
    store = examples if isinstance(examples, Store) else make_store(model.encoder, examples, task.fields)
    low = any(parameter.dtype == torch.bfloat16 for parameter in model.encoder.layers.parameters())

    def batches() -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        for members in by_length(store.lengths, BUDGET[device.type]):
            batch, states = run_encoder(model.encoder, store, members, device)
            yield members, task.predict(model.head, states, batch)

    with torch.autocast(device.type, torch.bfloat16) if low else contextlib.nullcontext():
        return collect(model, len(store), batches())


@torch.inference_mode()
def collect(
    model: nn.Module, count: int, batches: Iterable[tuple[np.ndarray, dict[str, Tensor]]]
) -> list[dict[str, np.ndarray]]:
    """The outputs of each of `count` examples from those of batches, which the model, without dropout, computes now."""
    outputs: list[dict[str, np.ndarray]] = [{} for _ in range(count)]
    training = model.training
    model.eval()
    try:
        for members, tensors in batches:
            for name, tensor in tensors.items():
                tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
                for member, row in zip(members, tensor.cpu().numpy(), strict=True):
                    outputs[member][name] = row
    finally:
        model.train(training)
    return outputs


def make_store(encoder: BaseEncoder, examples: Sequence[dict[str, Any]], fields: dict[str, Any]) -> Store:
    """A store of examples for this encoder."""
    return Store(examples, fields, encoder.config.position_offset, encoder.config.max_length)


def save_tuned(folder: str | Path, base: str | Path, model: TaskModel, task: Any, info: dict[str, Any]) -> None:
    """Write the head, the changed layers and the changed embedding rows."""
    folder, backend = Path(folder), model.encoder.backend
    # Read again rather than kept since the start: files are mapped, so that mBERT takes 0.1 s of CPU time; a copy takes
    # as long, and the memory of a whole model while training runs.
    before = {f"encoder.{name}": value for name, value in load_weights(base, backend=backend).named_parameters()}
    rows = model.encoder.rows
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        value = parameter.detach().float().cpu()
        if parameter is model.encoder.word.weight:
            rows = torch.arange(len(value)) if rows is None else rows.cpu()
            changed = (value != before[name].detach()[rows]).any(1)
            tensors[f"{name}.rows"] = rows[changed]
            tensors[f"{name}.values"] = value[changed]
        elif name not in before or not torch.equal(value, before[name]):
            tensors[name] = value
    config = {
        **info,
        "base": Path(base).name,
        "base_identity": folder_identity(base),
        "backend": backend,
        "task": task.name,
        "labels": list(task.labels),
    }
    write_tensors(folder / "model.safetensors", tensors)
    write_json(folder / "config.json", config, ensure_ascii=False)


def read_info(folder: str | Path, base: str | Path) -> dict[str, Any]:
    """What is known of a tuned model without its weights, among it its `task` and `labels`."""
    path = Path(folder) / "config.json"
    if (info := read_json(path)) is None:
        raise UserError(f"{path} is missing: {folder} is not a tuned model")
    if info.get("base_identity") != folder_identity(base):
        raise UserError(f"{folder} was tuned from '{info.get('base')}'; {base} holds other weights")
    return info


def load_tuned_model(folder: str | Path, base: str | Path, task: Any) -> TaskModel:
    """Only the weights of a tuned model, laid over its base model."""
    encoder = _start(folder, base)
    task.causal = encoder.config.causal
    model = TaskModel(encoder, task.make_head(encoder.config.hidden, encoder.config.hidden_dropout))
    _overlay(model, Path(folder) / "model.safetensors")
    return model.eval()


def load_tuned_encoder(folder: str | Path, base: str | Path) -> BaseEncoder:
    """Only the encoder of a tuned model, for embeddings."""
    model = TaskModel(_start(folder, base), torch.nn.Identity())
    _overlay(model, Path(folder) / "model.safetensors", "encoder.")
    return model.encoder.eval()


def _start(folder: str | Path, base: str | Path) -> BaseEncoder:
    """What training began with, where its file is silent: words that it did not meet are drawn anew as well."""
    info = read_info(folder, base)
    encoder = load_weights(base, backend=info["backend"])
    if info.get("init") == ALL:
        random_init(encoder, ALL, info["seed"])
    return encoder


@torch.no_grad()
def _overlay(model: TaskModel, path: Path, part: str = "") -> None:
    try:
        tensors = load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    tensors = {name: value for name, value in tensors.items() if name.startswith(part)}
    parameters = dict(model.named_parameters())
    word = next(name for name, parameter in parameters.items() if parameter is model.encoder.word.weight)
    if f"{word}.rows" in tensors:
        parameters[word][tensors.pop(f"{word}.rows")] = tensors.pop(f"{word}.values")
    wanted = {name for name in parameters if name.startswith("head.")}
    wrong = {name for name, value in tensors.items() if name not in parameters or value.shape != parameters[name].shape}
    wrong |= wanted - tensors.keys()
    if wrong:
        raise UserError(f"{path} does not fit its task and its base model: {', '.join(sorted(wrong))}")
    for name, value in tensors.items():
        parameters[name].copy_(value)
