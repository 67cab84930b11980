"""Load a model for embedding: each tensor straight to the device and in the precision where it will be used."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from crossalign.embedding.memory import embedding_bytes
from crossalign.engine.device import choose_precision
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.folders import load_empty, load_weights
from crossalign.engine.library import LibraryConfig, spread_library_encoder
from crossalign.engine.shape import XGLM, XLMR_XL, EncoderConfig
from crossalign.engine.task_model import BUDGET, load_tuned_encoder, read_info
from crossalign.engine.tokenizer import load_tokenizer
from crossalign.engine.weights import Shards
from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import restart_if_crowded

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger("embed")

# Families whose tables of words are in bf16 too: in fp32 they would be gigabytes.
_LARGE_TABLES = (XLMR_XL, XGLM)
# Weights of a model that embeds with a GPU to itself.
_LARGE = 2_000_000_000


@dataclass
class Loaded:
    """A model, the device that takes its batches, its tokenizer, and how many tokens a batch may have."""

    encoder: BaseEncoder
    tokenizer: Tokenizer
    device: torch.device
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
    """The model of a folder, or with `tuned` the tuned model laid over it.

    What one GPU is too small for is computed by the library, over all visible GPUs and the host's memory.
    """
    if tuned is not None:
        backend = read_info(tuned, folder)["backend"]
    empty = load_empty(folder, backend)
    tokenizer = load_tokenizer(folder, empty.config.vocab_size)
    precision = choose_precision(precision, device)
    budget = budget or BUDGET[device.type]

    def place(name: str) -> tuple[torch.device, torch.dtype]:
        low = precision == "bf16" and (empty.config.family in _LARGE_TABLES or empty.is_low(name))
        return device, torch.bfloat16 if low else torch.float32

    try:
        if tuned is not None:
            encoder = load_tuned_encoder(tuned, folder)
            for name, parameter in encoder.named_parameters():
                parameter.data = parameter.data.to(*place(name))
            encoder.to(device)
        elif device.type == "cuda" and too_large(empty, precision, budget, torch.cuda.mem_get_info(device)[1]):
            log.info("%s is larger than the GPU: the library computes it, over GPUs and host memory", folder)
            encoder = spread_library_encoder(folder, place("layers.0")[1], max_memory=rooms(empty, precision, budget))
        else:
            encoder = load_weights(folder, place, backend)
    except torch.OutOfMemoryError:
        restart_if_crowded()
        raise UserError(
            f"{folder}: no memory left on {device} for its weights; is another program using the device?"
        ) from None
    return Loaded(encoder.requires_grad_(False).eval(), tokenizer, device, budget)


def is_large(folder: Path) -> bool:
    """Whether a model has more than two billion weights, by the heads of its files."""
    return sum(map(math.prod, Shards(folder, ()).shapes.values())) > _LARGE


def too_large(encoder: BaseEncoder, precision: str, budget: int, memory: int) -> bool:
    """Whether weights and a batch take more than so many bytes; some are the driver's, and some lie in fragments."""
    parameters = sum(parameter.numel() for parameter in encoder.parameters())
    return _bytes(encoder, precision, budget, parameters) > 0.95 * memory


def rooms(encoder: BaseEncoder, precision: str, budget: int) -> dict[int | str, int]:
    """Bytes for weights on each GPU and in the host's memory. The library takes twice our room for a batch."""
    from accelerate.utils import get_max_memory

    batch = 2 * _bytes(encoder, precision, budget)
    return {where: free if where == "cpu" else max(0, free - batch) for where, free in get_max_memory().items()}


def _bytes(encoder: BaseEncoder, precision: str, budget: int, parameters: int = 0) -> int:
    shape = encoder.config
    return embedding_bytes(parameters, shape.layers, shape.hidden, budget, 2 if precision == "bf16" else 4)
