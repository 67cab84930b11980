"""Load a model for embedding: each tensor straight to the device and in the precision where it will be used."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from crossalign.embedding import placement as places
from crossalign.embedding.placement import Placement, gigabytes
from crossalign.engine.device import choose_precision
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.folders import load_empty, load_weights
from crossalign.engine.library import LibraryConfig
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import BUDGET
from crossalign.engine.tokenizer import load_tokenizer
from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import restart_if_crowded

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger("embed")


@dataclass
class Loaded:
    """A model in its place, its tokenizer, and how many tokens a batch may have."""

    encoder: BaseEncoder
    tokenizer: Tokenizer
    placement: Placement
    budget: int

    @property
    def config(self) -> EncoderConfig | LibraryConfig:
        """The model's shape."""
        return self.encoder.config


def load_model(
    folder: str | Path,
    device: torch.device,
    precision: str = "auto",
    tuned: str | Path | None = None,
    budget: int | None = None,
    backend: str = "auto",
) -> Loaded:
    """The model of a folder, or with `tuned` the tuned model laid over it, on as many devices as it needs."""
    if tuned is not None:
        # Imported late: it brings in everything that training needs.
        from crossalign.engine.task_model import load_tuned_encoder, read_info

        backend = read_info(tuned, folder)["backend"]
    empty = load_empty(folder, backend)
    config = empty.config
    tokenizer = load_tokenizer(folder, config.vocab_size)
    precision = choose_precision(precision, device)
    budget = budget or BUDGET[device.type]
    sizes, working = places.weight_sizes(empty, precision), places.working_bytes(empty, precision, budget)
    log.info("%s: weights of %s, a batch of up to %s", folder, gigabytes(sizes.total), gigabytes(working))
    placement = places.plan(str(folder), sizes, working, places.free_devices(device), places.host_memory())
    if len(set(placement.layers)) > 1 or placement.spilled:
        used = ", ".join(dict.fromkeys(map(str, placement.layers)))
        log.info("layers on %s; %d of %d from host memory", used, len(placement.spilled), config.layers)

    def place(name: str) -> tuple[torch.device, torch.dtype]:
        return placement.weights_at(name), places.parameter_type(name, empty, precision)

    try:
        if tuned is None:
            encoder = load_weights(folder, place, backend)
        else:
            encoder = load_tuned_encoder(tuned, folder)
            for name, parameter in encoder.named_parameters():
                parameter.data = parameter.data.to(*place(name))
            for name, buffer in encoder.named_buffers():
                buffer.data = buffer.data.to(place(name)[0])
    except torch.OutOfMemoryError:
        restart_if_crowded()
        raise UserError(
            f"{folder}: no memory left on {device} for its weights, although {gigabytes(sizes.total)} seemed to fit; "
            "is another program using the device?"
        ) from None
    for index in placement.spilled:
        if placement.layers[index].type == "cuda":
            for parameter in encoder.layers[index].parameters():
                # Pinned memory is copied to a GPU at full speed.
                parameter.data = parameter.data.pin_memory()
    if encoder.backend == "library":
        places.spread(encoder, placement)
    return Loaded(encoder.requires_grad_(False).eval(), tokenizer, placement, budget)
