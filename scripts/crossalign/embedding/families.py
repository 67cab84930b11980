"""Models beyond the encoder's own families: XLM-R XL and XXL, and the XGLM decoders.

Their layers are the encoder's Pre-LN layers. What differs is written here: embeddings without a norm, sinusoidal
positions, causal attention, and the names of the tensors. Tests hold all of it against the library's models.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.errors import UserError
from crossalign.models import ops
from crossalign.models.config import EncoderConfig
from crossalign.models.encoder import Encoder, Layer
from crossalign.models.huggingface import library_names
from crossalign.models.layout import Layout

_XL, _XGLM = "xlm-roberta-xl", "xglm"
LARGE = (_XL, _XGLM)
_QKV = {_XL: "attention.self.{}", _XGLM: "self_attn.{}_proj"}
_LAYER = {
    _XL: {
        "out": "attention.output.dense",
        "attention_norm": "attention.self_attn_layer_norm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "output_norm": "LayerNorm",
    },
    _XGLM: {
        "out": "self_attn.out_proj",
        "attention_norm": "self_attn_layer_norm",
        "up": "fc1",
        "down": "fc2",
        "output_norm": "final_layer_norm",
    },
}
_OUTSIDE = {
    _XL: {
        "embeddings.word": "embeddings.word_embeddings",
        "embeddings.position": "embeddings.position_embeddings",
        "embeddings.segment": "embeddings.token_type_embeddings",
        "final_norm": "encoder.LayerNorm",
    },
    _XGLM: {"embeddings.word": "embed_tokens", "final_norm": "layer_norm"},
}
_XGLM_KEYS = {
    "vocab_size": "vocab_size",
    "d_model": "hidden",
    "num_layers": "layers",
    "attention_heads": "heads",
    "ffn_dim": "intermediate",
}
# XGLM's positions start at 2 whatever the padding index.
_XGLM_OFFSET = 2


def read_config(folder: str | Path) -> EncoderConfig:
    """The shape of a model of any family that can be embedded."""
    path = Path(folder) / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: {folder} is not a model folder") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    return parse_config(raw, str(path))


def parse_config(raw: dict[str, Any], where: str = "config.json") -> EncoderConfig:
    """The same from the dictionary of a config.json; `where` names it in messages."""
    family = raw.get("model_type", "bert")
    if family == _XL:
        # Pre-LN as in RoBERTa-PreLayerNorm, with the same keys.
        alike = {"layer_norm_eps": 1e-5, **raw, "model_type": "roberta-prelayernorm"}
        return replace(EncoderConfig.from_huggingface(alike, where), family=_XL)
    if family != _XGLM:
        try:
            return EncoderConfig.from_huggingface(raw, where)
        except UserError as error:
            more = f"; for embeddings also {', '.join(LARGE)}" if "model_type" in str(error) else ""
            raise UserError(f"{error}{more}") from None
    if missing := [key for key in _XGLM_KEYS if key not in raw]:
        raise UserError(f"{where}: missing {', '.join(missing)}")
    if raw.get("activation_function", "gelu") != "gelu":
        raise UserError(f"{where}: activation_function '{raw['activation_function']}' is not supported, only 'gelu'")
    return EncoderConfig(
        **{ours: raw[key] for key, ours in _XGLM_KEYS.items()},
        positions=raw.get("max_position_embeddings", 2048) + _XGLM_OFFSET,
        types=0,
        eps=1e-5,
        pad_id=raw.get("pad_token_id", 1),
        position_offset=_XGLM_OFFSET,
        norm="pre",
        family=_XGLM,
        extra={"scale_embedding": raw.get("scale_embedding", True)},
    )


class PlainEmbeddings(nn.Module):
    """XLM-R XL: words, positions and the one segment, summed in fp32 without a norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden)
        self.position = nn.Embedding(config.positions, config.hidden)
        self.segment = nn.Embedding(max(config.types, 1), config.hidden)

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor | None = None, dropout: float = 0.0) -> Tensor:
        return self.word(ids).float() + self.segment.weight[0].float() + self.position(positions).float()


class SinusoidalEmbeddings(nn.Module):
    """XGLM: scaled words and sinusoidal positions."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden)
        self.scale = math.sqrt(config.hidden) if config.extra.get("scale_embedding", True) else 1.0
        self.positions = config.positions
        # Made when needed: the model is built without memory, and no checkpoint holds this table.
        self._table: Tensor | None = None

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor | None = None, dropout: float = 0.0) -> Tensor:
        if self._table is None or self._table.device != ids.device:
            self._table = sinusoids(self.positions, self.word.embedding_dim).to(ids.device)
        return self.word(ids).float() * self.scale + self._table[positions]


def sinusoids(count: int, width: int) -> Tensor:
    """Sines in the first half of the columns, cosines in the second, wavelengths from 2 pi to 20,000 pi."""
    half = width // 2
    rates = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
    angles = torch.arange(count).float()[:, None] * rates
    return functional.pad(torch.cat([angles.sin(), angles.cos()], 1), (0, width % 2))


class CausalLayer(Layer):
    """A Pre-LN layer whose tokens see only themselves and what is before them."""

    def attend(self, x: Tensor, layout: Layout) -> Tensor:
        qkv = ops.linear(x, self.qkv)
        groups = layout.groups or [layout]
        parts = qkv.split(layout.sizes) if layout.groups else [qkv]
        return torch.cat([self._causal(part, group) for part, group in zip(parts, groups, strict=True)])

    def _causal(self, qkv: Tensor, layout: Layout) -> Tensor:
        grid = layout.to_grid(qkv).view(layout.batch, layout.length, 3, self.config.heads, -1)
        q, k, v = grid.permute(2, 0, 3, 1, 4).unbind(0)
        # The filling stands behind the tokens, where they do not look: no other mask is needed.
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return layout.from_grid(out.transpose(1, 2))


def empty_model(config: EncoderConfig) -> Encoder:
    """The modules without memory for their weights."""
    with torch.device("meta"):
        model = Encoder(config)
        if config.family == _XL:
            model.embeddings = PlainEmbeddings(config)
        elif config.family == _XGLM:
            model.embeddings = SinusoidalEmbeddings(config)
            model.layers = nn.ModuleList(CausalLayer(config) for _ in range(config.layers))
    return model.requires_grad_(False).eval()


def tensor_names(model: Encoder) -> dict[str, tuple[str, ...]]:
    """For each parameter the checkpoint's tensors that lie one below the other in it, without prefix."""
    family = model.config.family
    if family not in LARGE:
        return library_names(model)
    stem = "encoder.layer" if family == _XL else "layers"
    parts = ("query", "key", "value") if family == _XL else ("q", "k", "v")
    names: dict[str, tuple[str, ...]] = {}
    for name, _ in model.named_parameters():
        module, _, kind = name.rpartition(".")
        if module in _OUTSIDE[family]:
            names[name] = (f"{_OUTSIDE[family][module]}.{kind}",)
            continue
        _, index, part = module.split(".")
        inside = [_QKV[family].format(one) for one in parts] if part == "qkv" else [_LAYER[family][part]]
        names[name] = tuple(f"{stem}.{index}.{one}.{kind}" for one in inside)
    return names


def parameter_type(name: str, config: EncoderConfig, precision: str) -> torch.dtype:
    """With bf16 the layers; also the tables of the large families, which in fp32 would be gigabytes."""
    low = precision == "bf16" and (config.family in LARGE or not name.startswith("embeddings."))
    return torch.bfloat16 if low else torch.float32
