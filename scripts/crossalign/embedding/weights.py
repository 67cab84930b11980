"""Load a model part by part, each tensor straight to the device and in the precision where it will be used."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from crossalign.embedding.families import LARGE, empty_model, parameter_type, read_config, tensor_names
from crossalign.embedding.placement import (
    Placement,
    free_devices,
    gigabytes,
    host_memory,
    plan,
    weight_sizes,
    working_bytes,
)
from crossalign.engine.device import choose_precision
from crossalign.engine.encoder import Encoder
from crossalign.engine.huggingface import load_tokenizer, refuse_unread_scales
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import BUDGET
from crossalign.engine.tensors import Shards
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger("embed")


@dataclass
class Loaded:
    """A model in its place, its tokenizer, and how many tokens a batch may have."""

    encoder: Encoder
    tokenizer: Tokenizer
    placement: Placement
    budget: int

    @property
    def config(self) -> EncoderConfig:
        """The model's shape."""
        return self.encoder.config


def load_model(
    folder: str | Path,
    device: torch.device,
    precision: str = "auto",
    tuned: str | Path | None = None,
    budget: int | None = None,
) -> Loaded:
    """The model of a folder, or with `tuned` the tuned model laid over it, on as many devices as it needs."""
    folder = Path(folder)
    config = read_config(folder)
    if tuned is not None and config.family in LARGE:
        raise UserError(f"{folder}: models of type '{config.family}' are embedded as they are, not tuned")
    tokenizer = load_tokenizer(folder, config.vocab_size)
    precision = choose_precision(precision, device)
    budget = budget or BUDGET[device.type]
    placement = plan(
        str(folder),
        weight_sizes(config, precision),
        working_bytes(config, precision, budget),
        free_devices(device),
        host_memory(),
    )
    if len(set(placement.layers)) > 1 or placement.spilled:
        used = ", ".join(dict.fromkeys(map(str, placement.layers)))
        log.info("layers on %s; %d of %d from host memory", used, len(placement.spilled), config.layers)
    if tuned is None:
        tensors = Shards(folder)
        refuse_unread_scales(config, tensors)
        encoder = fill(config, tensors.read, placement, precision, str(folder))
    else:
        encoder = _place(_tuned_encoder(tuned, folder), placement, precision)
    return Loaded(encoder, tokenizer, placement, budget)


def fill(
    config: EncoderConfig,
    read: Callable[[str, torch.device, torch.dtype], Tensor],
    placement: Placement,
    precision: str,
    name: str = "model",
) -> Encoder:
    """A model whose tensors come from `read`, by the checkpoint's names without prefix."""
    model = empty_model(config)
    state = {}
    for parameter, sources in tensor_names(model).items():
        place, dtype = placement.weights_at(parameter), parameter_type(parameter, config, precision)
        try:
            parts = [read(source, place, dtype) for source in sources]
            state[parameter] = parts[0] if len(parts) == 1 else torch.cat(parts)
        except torch.OutOfMemoryError:
            raise UserError(
                f"{name}: no memory left on {place} for its weights, although {gigabytes(_total(config, precision))} "
                "seemed to fit; is another program using the device?"
            ) from None
        wanted = model.get_parameter(parameter).shape
        if state[parameter].shape != wanted:
            raise UserError(
                f"{name}: {sources[0]} has shape {tuple(state[parameter].shape)}, config.json wants {tuple(wanted)}"
            )
    model.load_state_dict(state, assign=True)
    model = model.requires_grad_(False).eval()
    _pin(model, placement)
    return model


def _tuned_encoder(tuned: str | Path, base: Path) -> Encoder:
    # Imported late: it brings in everything that training needs.
    from crossalign.engine.task_model import load_tuned_encoder

    return load_tuned_encoder(tuned, base)


def _place(encoder: Encoder, placement: Placement, precision: str) -> Encoder:
    """Move a model that is in the host's memory to its place."""
    encoder.requires_grad_(False)
    for name, parameter in encoder.named_parameters():
        dtype = parameter_type(name, encoder.config, precision)
        parameter.data = parameter.data.to(placement.weights_at(name), dtype)
    _pin(encoder, placement)
    return encoder.eval()


def _pin(encoder: Encoder, placement: Placement) -> None:
    """Pinned memory is copied to a GPU at full speed."""
    for index in placement.spilled:
        if placement.layers[index].type == "cuda":
            for parameter in encoder.layers[index].parameters():
                parameter.data = parameter.data.pin_memory()


def _total(config: EncoderConfig, precision: str) -> int:
    return weight_sizes(config, precision).total
