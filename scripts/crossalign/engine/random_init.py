"""RANDOM-INIT: replace the pretrained weights of chosen layers by fresh random ones (align-predict, section 2.1)."""

from __future__ import annotations

import re

import torch
from torch import nn

from crossalign.engine.encoder import BaseEncoder, Encoder, empty_encoder
from crossalign.engine.library import LibraryEncoder
from crossalign.engine.seeds import derive
from crossalign.engine.shape import EncoderConfig
from crossalign.runtime.errors import UserError

# All layers and, which no other init draws, the embeddings.
ALL = "random-all"


def parse_init(text: str, layers: int) -> tuple[list[int], bool]:
    """Layers (1-based) to draw anew, and whether the embeddings are: `ref`, `random-3`, `random-1-4`, `random-all`."""
    if text == "ref":
        return [], False
    if text == ALL:
        return list(range(1, layers + 1)), True
    match = re.fullmatch(r"random-(\d+)(?:-(\d+))?", text)
    if match is None:
        raise UserError(f"init '{text}' is not one of ref, random-<layer>, random-<first>-<last>, random-all")
    first = int(match[1])
    last = int(match[2] or first)
    if not 1 <= first <= last <= layers:
        raise UserError(f"init '{text}': layers must lie between 1 and {layers}, the first before the last")
    return list(range(first, last + 1)), False


def random_init(encoder: BaseEncoder, init: str, seed: int) -> list[int]:
    """Draw the layers that `init` names from the model's own initialiser; everything else keeps its value.

    Every layer has its own generator, so that a layer gets the same draw whatever else is drawn, and no other use of
    random numbers (data order, head, dropout) notices. Returns the layers.
    """
    layers, with_embeddings = parse_init(init, len(encoder.layers))
    if isinstance(encoder, LibraryEncoder):
        if with_embeddings:
            encoder.redraw(None, derive(seed, "random-init", 0))
        for number in layers:
            encoder.redraw(number - 1, derive(seed, "random-init", number), positions=with_embeddings)
        return layers
    std = encoder.config.initializer_range
    for number in layers:
        redraw(encoder.layers[number - 1], std, derive(seed, "random-init", number))
    if with_embeddings:
        redraw(encoder.embeddings, std, derive(seed, "random-init", 0))
        if encoder.final_norm is not None:
            redraw(encoder.final_norm, std, derive(seed, "random-init", "final"))
    return layers


@torch.no_grad()
def redraw(module: nn.Module, std: float, seed: int) -> None:
    """Weights of products and tables from a normal distribution, biases 0, norms and scales 1."""
    generator = torch.Generator().manual_seed(seed)
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if isinstance(owner, nn.Linear | nn.Embedding) and name == "weight":
                # Drawn on the CPU: the same numbers whatever the device.
                parameter.copy_(torch.empty(parameter.shape).normal_(0.0, std, generator=generator))
            else:
                parameter.fill_(0.0 if name == "bias" else 1.0)


def fresh_encoder(config: EncoderConfig, seed: int) -> Encoder:
    """An encoder that was never trained."""
    encoder = empty_encoder(config).to_empty(device="cpu")
    redraw(encoder, config.initializer_range, derive(seed, "encoder"))
    return encoder
