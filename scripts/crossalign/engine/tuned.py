"""Tuned models on disk: only what training changed, to be laid over the base model again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from crossalign.engine.encoder import Encoder
from crossalign.engine.huggingface import load_tokenizer, load_weights
from crossalign.engine.hyperparameters import folder_identity
from crossalign.engine.predict import TaskModel
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

_WORD = "encoder.embeddings.word.weight"


@dataclass
class Tuned:
    """A tuned model with all that is needed to use it."""

    model: TaskModel
    task: Any
    tokenizer: Any
    info: dict[str, Any]


def save_tuned(
    folder: str | Path, base: str | Path, model: TaskModel, task: Any, info: dict[str, Any], dtype: str = "fp32"
) -> None:
    """Write the head, the changed layers and the changed embedding rows; `dtype` bf16 halves the matrices' size."""
    folder = Path(folder)
    # Read again rather than kept since the start: files are mapped, so that mBERT takes 0.1 s of CPU time; a copy takes
    # as long, and the memory of a whole model while training runs.
    before = {f"encoder.{name}": value for name, value in load_weights(base).named_parameters()}
    rows = model.encoder.rows
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        value = parameter.detach().float().cpu()
        if name == _WORD:
            rows = torch.arange(len(value)) if rows is None else rows.cpu()
            changed = (value != before[name].detach()[rows]).any(1)
            tensors[f"{name}.rows"] = rows[changed]
            tensors[f"{name}.values"] = value[changed].contiguous()
        elif name not in before or not torch.equal(value, before[name]):
            low = dtype == "bf16" and value.dim() == 2 and name.startswith("encoder.layers.")
            tensors[name] = (value.bfloat16() if low else value).contiguous()
    config = {
        **info,
        "base": Path(base).name,
        "base_identity": folder_identity(base),
        "task": task.name,
        "labels": list(task.labels),
    }
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    write_json(folder / "config.json", config, ensure_ascii=False)


def load_tuned(folder: str | Path, base: str | Path) -> Tuned:
    """The tuned model in `folder`, laid over its base model."""
    info, task = read_info(folder, base)
    model = load_tuned_model(folder, base, task)
    return Tuned(model, task, load_tokenizer(base, model.encoder.config.vocab_size), info)


def read_info(folder: str | Path, base: str | Path) -> tuple[dict[str, Any], Any]:
    """What is known of a tuned model, and its task, without the weights."""
    from crossalign.tasks import get_task

    folder = Path(folder)
    try:
        info = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is missing: {folder} is not a tuned model") from None
    except ValueError as error:
        raise UserError(f"{folder} cannot be read: {error}") from None
    if info.get("base_identity") != folder_identity(base):
        raise UserError(f"{folder} was tuned from '{info.get('base')}'; {base} holds other weights")
    return info, get_task(info["task"], info["labels"])


def load_tuned_model(folder: str | Path, base: str | Path, task: Any) -> TaskModel:
    """Only the weights of a tuned model, laid over its base model."""
    tensors = _read(Path(folder))
    encoder = load_weights(base)
    model = TaskModel(encoder, task.make_head(encoder.config.hidden, encoder.config.hidden_dropout))
    _overlay(model, tensors, Path(folder))
    return model.eval()


def load_tuned_encoder(folder: str | Path, base: str | Path) -> Encoder:
    """Only the encoder of a tuned model, for embeddings."""
    read_info(folder, base)
    tensors = _read(Path(folder))
    model = TaskModel(load_weights(base), torch.nn.Identity())
    _overlay(model, {name: value for name, value in tensors.items() if name.startswith("encoder.")}, Path(folder))
    return model.encoder.eval()


def _read(folder: Path) -> dict[str, Tensor]:
    try:
        return load((folder / "model.safetensors").read_bytes())
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is missing: {folder} is not a tuned model") from None
    except (ValueError, SafetensorError) as error:
        raise UserError(f"{folder} cannot be read: {error}") from None


@torch.no_grad()
def _overlay(model: TaskModel, tensors: dict[str, Tensor], folder: Path) -> None:
    parameters = dict(model.named_parameters())
    rows, values = tensors.pop(f"{_WORD}.rows", None), tensors.pop(f"{_WORD}.values", None)
    if rows is not None:
        parameters[_WORD][rows] = values
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
