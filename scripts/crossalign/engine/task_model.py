"""An encoder with the head of a task: predictions, and files that hold only what training changed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from crossalign.engine.batches import Store, by_length
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.folders import load_weights
from crossalign.engine.identity import folder_identity
from crossalign.engine.parts import run_encoder
from crossalign.engine.random_init import ALL, random_init
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

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


def iterate_batches(
    encoder: BaseEncoder, store: Store, device: torch.device, budget: int | None = None
) -> Iterator[tuple[np.ndarray, dict[str, Tensor], Tensor]]:
    """Batch after batch: the numbers of its examples, its fields and masks, and its hidden states as a grid.

    The longest examples come first, so that running out of memory shows at once.
    """
    for members in by_length(store.lengths, budget or BUDGET[device.type]):
        yield members, *run_encoder(encoder, store, members, device)


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
    low = any(parameter.dtype == torch.bfloat16 for parameter in model.encoder.layers.parameters())
    with torch.autocast(device.type, torch.bfloat16) if low else contextlib.nullcontext():
        batches = iterate_batches(model.encoder, store, device, budget)
        return collect(model, len(store), ((who, task.predict(model.head, states, it)) for who, it, states in batches))


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
            tensors[f"{name}.values"] = value[changed].contiguous()
        elif name not in before or not torch.equal(value, before[name]):
            tensors[name] = value.contiguous()
    config = {
        **info,
        "base": Path(base).name,
        "base_identity": folder_identity(base),
        "backend": backend,
        "task": task.name,
        "labels": list(task.labels),
    }
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    write_json(folder / "config.json", config, ensure_ascii=False)


def read_info(folder: str | Path, base: str | Path) -> dict[str, Any]:
    """What is known of a tuned model without its weights, among it its `task` and `labels`."""
    with readable(folder, "a tuned model"):
        info = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    if info.get("base_identity") != folder_identity(base):
        raise UserError(f"{folder} was tuned from '{info.get('base')}'; {base} holds other weights")
    return {"backend": "own"} | info


def load_tuned_model(folder: str | Path, base: str | Path, task: Any) -> TaskModel:
    """Only the weights of a tuned model, laid over its base model."""
    info, tensors = read_info(folder, base), _read(Path(folder))
    encoder = _start(info, base)
    task.causal = encoder.config.causal
    model = TaskModel(encoder, task.make_head(encoder.config.hidden, encoder.config.hidden_dropout))
    _overlay(model, tensors, Path(folder))
    return model.eval()


def load_tuned_encoder(folder: str | Path, base: str | Path) -> BaseEncoder:
    """Only the encoder of a tuned model, for embeddings."""
    info, tensors = read_info(folder, base), _read(Path(folder))
    model = TaskModel(_start(info, base), torch.nn.Identity())
    _overlay(model, {name: value for name, value in tensors.items() if name.startswith("encoder.")}, Path(folder))
    return model.encoder.eval()


def _start(info: dict[str, Any], base: str | Path) -> BaseEncoder:
    """What training began with, where its file is silent: words that it did not meet are drawn anew as well."""
    encoder = load_weights(base, backend=info["backend"])
    if info.get("init") == ALL:
        random_init(encoder, ALL, info["seed"])
    return encoder


@contextlib.contextmanager
def readable(folder: str | Path, kind: str) -> Iterator[None]:
    """Errors of reading a model folder as UserErrors."""
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is missing: {folder} is not {kind}") from None
    except (ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{folder} cannot be read as {kind}: {error}") from None


def _read(folder: Path) -> dict[str, Tensor]:
    with readable(folder, "a tuned model"):
        return load((folder / "model.safetensors").read_bytes())


@torch.no_grad()
def _overlay(model: TaskModel, tensors: dict[str, Tensor], folder: Path) -> None:
    parameters = dict(model.named_parameters())
    word = next(name for name, parameter in parameters.items() if parameter is model.encoder.word.weight)
    rows, values = tensors.pop(f"{word}.rows", None), tensors.pop(f"{word}.values", None)
    if rows is not None:
        parameters[word][rows] = values
    unknown = sorted(set(tensors) - set(parameters))
    if unknown:
        raise UserError(f"{folder}/model.safetensors has tensors that its task does not know: {', '.join(unknown)}")
    missing = sorted(name for name in parameters if name.startswith("head.") and name not in tensors)
    if missing:
        raise UserError(f"{folder}/model.safetensors lacks {', '.join(missing)}")
    for name, value in tensors.items():
        if value.shape != parameters[name].shape:
            raise UserError(
                f"{folder}: {name} has shape {tuple(value.shape)} instead of {tuple(parameters[name].shape)}"
            )
        parameters[name].copy_(value)
