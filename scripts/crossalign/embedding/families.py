"""Models that are embedded but not trained here: XLM-R XL and XXL.

Their layers are the encoder's Pre-LN layers. What differs is written here: embeddings without a norm, and the names of
the tensors. Tests hold all of it against the library's models.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from crossalign.engine.encoder import Encoder
from crossalign.engine.huggingface import library_names, raw_config
from crossalign.engine.shape import XGLM, EncoderConfig
from crossalign.runtime.errors import UserError

_XL = "xlm-roberta-xl"
LARGE = (_XL, XGLM)
_LAYER = {
    "out": "attention.output.dense",
    "attention_norm": "attention.self_attn_layer_norm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "output_norm": "LayerNorm",
}
_OUTSIDE = {
    "embeddings.word": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.segment": "embeddings.token_type_embeddings",
    "final_norm": "encoder.LayerNorm",
}


def read_config(folder: str | Path) -> EncoderConfig:
    """The shape of a model of any family that can be embedded."""
    return parse_config(*raw_config(folder))


def parse_config(raw: dict[str, Any], where: str = "config.json") -> EncoderConfig:
    """The same from the dictionary of a config.json; `where` names it in messages."""
    family = raw.get("model_type", "bert")
    if family == _XL:
        # Pre-LN as in RoBERTa-PreLayerNorm, with the same keys.
        alike = {"layer_norm_eps": 1e-5, **raw, "model_type": "roberta-prelayernorm"}
        return replace(EncoderConfig.from_huggingface(alike, where), family=_XL)
    try:
        return EncoderConfig.from_huggingface(raw, where)
    except UserError as error:
        more = f"; for embeddings also {_XL}" if "model_type" in str(error) else ""
        raise UserError(f"{error}{more}") from None


class PlainEmbeddings(nn.Module):
    """XLM-R XL: words, positions and the one segment, summed in fp32 without a norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden)
        self.position = nn.Embedding(config.positions, config.hidden)
        self.segment = nn.Embedding(max(config.types, 1), config.hidden)

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor | None = None, dropout: float = 0.0) -> Tensor:
        return self.word(ids).float() + self.segment.weight[0].float() + self.position(positions).float()


def empty_model(config: EncoderConfig) -> Encoder:
    """The modules without memory for their weights."""
    with torch.device("meta"):
        model = Encoder(config)
        if config.family == _XL:
            model.embeddings = PlainEmbeddings(config)
    return model.requires_grad_(False).eval()


def tensor_names(model: Encoder) -> dict[str, tuple[str, ...]]:
    """For each parameter the checkpoint's tensors that lie one below the other in it, without prefix."""
    if model.config.family != _XL:
        return library_names(model)
    names: dict[str, tuple[str, ...]] = {}
    for name, _ in model.named_parameters():
        module, _, kind = name.rpartition(".")
        if module in _OUTSIDE:
            names[name] = (f"{_OUTSIDE[module]}.{kind}",)
            continue
        _, index, part = module.split(".")
        inside = [f"attention.self.{one}" for one in ("query", "key", "value")] if part == "qkv" else [_LAYER[part]]
        names[name] = tuple(f"encoder.layer.{index}.{one}.{kind}" for one in inside)
    return names


def parameter_type(name: str, config: EncoderConfig, precision: str) -> torch.dtype:
    """With bf16 the layers; also the tables of the large families, which in fp32 would be gigabytes."""
    low = precision == "bf16" and (config.family in LARGE or not name.startswith("embeddings."))
    return torch.bfloat16 if low else torch.float32
