"""Load a model part by part, each tensor straight to the device and in the precision where it will be used."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
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
from crossalign.errors import UserError
from crossalign.models.config import EncoderConfig
from crossalign.models.encoder import Encoder
from crossalign.models.huggingface import load_tokenizer
from crossalign.training.device import choose_precision
from crossalign.training.predict import BUDGET

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger("embed")

# Bytes of a tensor that pass through the host at a time.
_PIECE = 256 << 20
_PREFIXES = ("bert.", "roberta_prelayernorm.", "roberta.", "model.")


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
        read = Shards(folder).read
        encoder = fill(config, read, placement, precision, str(folder))
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


class Shards:
    """The tensors of a folder of safetensors files, by their name without prefix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places: dict[str, tuple[Path, str]] = {}
        for path in self._files():
            try:
                with safe_open(path, "pt") as file:
                    self.places.update((_plain(name), (path, name)) for name in file.keys())  # noqa: SIM118
            except (SafetensorError, OSError) as error:
                raise UserError(f"{path} cannot be read: {error}; fetch it again") from None

    def _files(self) -> list[Path]:
        index = self.folder / "model.safetensors.index.json"
        if index.exists():
            try:
                names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, AttributeError) as error:
                raise UserError(f"{index} is no index of weights ({error}); fetch it again") from None
            return sorted(self.folder / name for name in names)
        if (self.folder / "model.safetensors").exists():
            return [self.folder / "model.safetensors"]
        raise UserError(f"{self.folder} has no model.safetensors (other weight formats are not read)")

    def read(self, name: str, device: torch.device, dtype: torch.dtype) -> Tensor:
        """One tensor, on its device.

        The file is closed after each piece: its pages would count as this program's memory as long as it is open.
        """
        if name not in self.places:
            raise UserError(f"{self.folder}: the weights have no tensor '{name}'")
        path, key = self.places[name]
        with safe_open(path, "pt", device=str(device)) as file:
            part = file.get_slice(key)
            shape = part.get_shape()
            same = device.type == "cpu" and part[:1].dtype == dtype
            rows = max(1, _PIECE // max(1, 4 * math.prod(shape[1:])))
            if same or not shape or shape[0] <= rows:
                return file.get_tensor(key).to(dtype)
        whole = torch.empty(shape, dtype=dtype, device=device)
        for start in range(0, shape[0], rows):
            with safe_open(path, "pt", device=str(device)) as file:
                whole[start : start + rows] = file.get_slice(key)[start : start + rows]
        return whole


def _plain(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _tuned_encoder(tuned: str | Path, base: Path) -> Encoder:
    # Imported late: it brings in everything that training needs.
    from crossalign.training.tuned import load_tuned_encoder

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
