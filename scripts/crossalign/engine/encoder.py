"""One compact Transformer for every BERT-, RoBERTa- and XGLM-shaped model of the project.

Post-LN is BERT, RoBERTa and XLM-R; Pre-LN is RoBERTa-PreLayerNorm; NormFormer adds to Pre-LN a norm after attention, a
scale per head, a norm inside the feed-forward block and, if asked, a scale on its residual (Shleifer et al. 2021).
XGLM is Pre-LN with causal attention, scaled words and sinusoidal positions; XLM-R XL is Pre-LN without the norm of the
embeddings.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine import ops
from crossalign.engine.attention import attention
from crossalign.engine.layout import Layout
from crossalign.engine.ops import Gradients
from crossalign.engine.shape import XLMR_XL, EncoderConfig


class Embeddings(nn.Module):
    """Words, positions and segments, normalised except in XLM-R XL. In fp32 always: they are gathers, not products."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        sizes = {"word": config.vocab_size, "position": config.positions, "segment": max(config.types, 1)}
        for name, size in sizes.items():
            setattr(self, name, _table(size, config.hidden))
        self.norm = None if config.family == XLMR_XL else nn.LayerNorm(config.hidden, config.eps)

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor | None, dropout: float) -> Tensor:
        # With one kind of segment, as in RoBERTa, a vocabulary that tells two texts apart makes no difference.
        one = types is None or len(self.segment.weight) == 1
        segment = self.segment.weight[0] if one else self.segment(types)
        least = torch.promote_types(segment.dtype, torch.float32)  # fp64 stays: tests of gradients need it
        x = self.word(ids).to(least) + segment.to(least) + self.position(positions).to(least)
        return ops.drop(x if self.norm is None else self.norm(x), dropout)


class SinusoidalEmbeddings(nn.Module):
    """XGLM: scaled words and sinusoidal positions, in fp32 without a norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = _table(config.vocab_size, config.hidden)
        self.scale = math.sqrt(config.hidden) if config.extra.get("scale_embedding", True) else 1.0
        self.positions = config.positions
        # Made when needed: the model is built without memory, and no checkpoint holds this table.
        self._waves: Tensor | None = None

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor | None = None, dropout: float = 0.0) -> Tensor:
        if self._waves is None or self._waves.device != ids.device:
            self._waves = sinusoids(self.positions, self.word.embedding_dim).to(ids.device)
        return ops.drop(self.word(ids).float() * self.scale + self._waves[positions], dropout)


def sinusoids(count: int, width: int) -> Tensor:
    """Sines in the first half of the columns, cosines in the second, wavelengths from 2 pi to 20,000 pi."""
    half = width // 2
    rates = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
    angles = torch.arange(count).float()[:, None] * rates
    return functional.pad(torch.cat([angles.sin(), angles.cos()], 1), (0, width % 2))


def _table(rows: int, columns: int) -> nn.Embedding:
    # A given weight is not drawn: drawing normal numbers on the meta device imports the compiler, two seconds.
    return nn.Embedding(rows, columns, _weight=torch.zeros(rows, columns))


class Layer(nn.Module):
    """Attention and feed-forward with their norms; query, key and value are one product."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        hidden, inner = config.hidden, config.intermediate
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, config.eps)
        self.up = nn.Linear(hidden, inner)
        self.down = nn.Linear(inner, hidden)
        self.output_norm = nn.LayerNorm(hidden, config.eps)
        if config.norm == "normformer":
            self.head_scale = nn.Parameter(torch.ones(config.heads))
            self.inner_attention_norm = nn.LayerNorm(hidden, config.eps)
            self.inner_output_norm = nn.LayerNorm(inner, config.eps)
            if config.residual_scaling:
                self.residual_scale = nn.Parameter(torch.ones(hidden))

    def attend(self, x: Tensor, layout: Layout, into: Gradients | None) -> Tensor:
        dropout = self.config.attention_dropout if self.training else 0.0
        qkv = ops.linear(x, self.qkv, into)
        heads = attention(qkv, layout, self.config.heads, dropout, self.config.causal, into)
        if self.config.norm == "normformer":
            heads = heads * self.head_scale[:, None].to(heads.dtype)
        return heads.reshape(x.shape)

    def forward(self, x: Tensor, layout: Layout, into: Gradients | None = None) -> Tensor:
        """In training the gradients of the products go `into` their places."""
        dropout = self.config.hidden_dropout if self.training else 0.0
        if self.config.norm == "post":
            x = ops.linear_add_norm(self.attend(x, layout, into), self.out, x, self.attention_norm, dropout, into)
            inner = functional.gelu(ops.linear(x, self.up, into))
            return ops.linear_add_norm(inner, self.down, x, self.output_norm, dropout, into)
        normformer = self.config.norm == "normformer"
        attended = ops.linear(self.attend(self.attention_norm(x), layout, into), self.out, into)
        if normformer:
            attended = self.inner_attention_norm(attended)
        x = x + ops.drop(attended, dropout)
        inner = functional.gelu(ops.linear(self.output_norm(x), self.up, into))
        if normformer:
            inner = self.inner_output_norm(inner)
            if self.config.residual_scaling:
                x = x * self.residual_scale.to(x.dtype)
        return x + ops.drop(ops.linear(inner, self.down, into), dropout)


class BaseEncoder(nn.Module):
    """What heads, steps, checkpoints and embeddings ask of an encoder, whoever computes it."""

    # Who computes it.
    backend: str = "own"
    # Beginnings of the names of parameters that are in bf16 where products are.
    low_precision: tuple[str, ...] = ("layers.", "final_norm.")
    layers: nn.ModuleList

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        # Tensors of the folder that are no part of the encoder but that some heads start from (BERT's pooler).
        self.pretrained: dict[str, Tensor] = {}
        # Rows of the full vocabulary that the table of words holds, in order; None: all of them.
        self.rows: Tensor | None = None

    @property
    def word(self) -> nn.Embedding:
        """The table of words."""
        raise NotImplementedError

    def is_low(self, name: str) -> bool:
        """Whether a parameter is in bf16 where products are."""
        return name.startswith(self.low_precision)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        all_layers: bool = False,
    ) -> Tensor | list[Tensor]:
        """Last hidden states (batch, length, hidden) of padded `input_ids`, or a list: embeddings and all layers.

        The padding stands behind the tokens.
        """
        length = input_ids.shape[1]
        real = torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
        ends = real.sum(1).cumsum(0)
        layout = Layout(functional.pad(ends, (1, 0)), int(ends[-1]), length)
        positions = torch.arange(length, device=real.device).expand_as(real)[real] + self.config.position_offset
        types = None if token_type_ids is None else token_type_ids[real]
        states = self.packed(input_ids[real], positions, types, layout, all_layers)
        return [layout.to_grid(state) for state in states] if all_layers else layout.to_grid(states)

    def packed(
        self,
        ids: Tensor,
        positions: Tensor,
        types: Tensor | None,
        layout: Layout,
        all_layers: bool = False,
        into: Gradients | None = None,
    ) -> Tensor | list[Tensor]:
        """Hidden states (tokens, hidden) of packed tokens; `positions` include the offset of the family.

        In training, gradients that need not take the usual way go `into` their places.
        """
        raise NotImplementedError

    def keep_rows(self, mapping: Tensor) -> Tensor:
        """What `slice_vocabulary` maps token ids by."""
        return mapping

    def all_rows(self) -> None:
        """Undo `keep_rows`."""


class Encoder(BaseEncoder):
    """Token ids to contextual vectors."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.embeddings = (SinusoidalEmbeddings if config.causal else Embeddings)(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.final_norm = None if config.norm == "post" else nn.LayerNorm(config.hidden, config.eps)

    @property
    def word(self) -> nn.Embedding:
        return self.embeddings.word

    def packed(
        self,
        ids: Tensor,
        positions: Tensor,
        types: Tensor | None,
        layout: Layout,
        all_layers: bool = False,
        into: Gradients | None = None,
    ) -> Tensor | list[Tensor]:
        dropout = self.config.hidden_dropout if self.training else 0.0
        # The weights' own types decide the precision.
        with torch.autocast(ids.device.type, enabled=False):
            x = self.embeddings(ids, positions, types, dropout)
            states = [x]
            x = x.to(self.layers[0].qkv.weight.dtype) if len(self.layers) else x
            for layer in self.layers:
                x = layer(x, layout, into)
                if all_layers:
                    states.append(x)
            if self.final_norm is not None:
                x = states[-1] = self.final_norm(x)
        return states if all_layers else x


def empty_encoder(config: EncoderConfig) -> Encoder:
    """The modules without memory and without random numbers, for weights that come from elsewhere."""
    with torch.device("meta"):
        return Encoder(config)


def slice_vocabulary(encoder: BaseEncoder, used: Tensor) -> Tensor:
    """Keep only the embedding rows `used` (sorted ids) and return the map from full ids to those the encoder takes.

    Exact for training: rows that do not occur get no gradient, and without weight decay they stay as they are.
    """
    full = encoder.word.weight.data
    encoder.rows = used.clone()
    mapping = torch.full((full.shape[0],), -1, dtype=torch.long)
    mapping[used] = torch.arange(len(used))
    _set_words(encoder, full[used].clone())
    return encoder.keep_rows(mapping)


def restore_vocabulary(encoder: BaseEncoder, full: Tensor) -> None:
    """Undo `slice_vocabulary`: put the kept rows back into a copy of the `full` table."""
    if encoder.rows is not None:
        table = full.clone()
        table[encoder.rows] = encoder.word.weight.data.to(table)
        _set_words(encoder, table)
        encoder.rows = None
        encoder.all_rows()


def _set_words(encoder: BaseEncoder, values: Tensor) -> None:
    """Give every module that has the table of words another one."""
    old, new = encoder.word.weight, nn.Parameter(values)
    for module in encoder.modules():
        if getattr(module, "weight", None) is old:
            module.weight = new
