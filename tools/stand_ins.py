"""Folders of models as the hub has them: published configuration, random weights, an invented vocabulary.

The library makes and writes them, so names and shapes of the tensors are those of its models; NormFormer, which it has
not, is made by the project's own encoder. Nothing of a published model is in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from crossalign.engine.folders import save_language_model
from crossalign.engine.pretrain import new_model
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tokenizer import SPECIALS, framed, wordpiece_tokenizer
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import sha256, write_atomic

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SUMS = "SHA256SUMS"
# Numbers that all weights are cut from, each at another place: drawing billions would take minutes.
_DRAWN = 1 << 22
SHARD_UNIT = "GB"


@dataclass(frozen=True)
class Published:
    """What config.json says of the shape, how weights are stored, and the most gigabytes of a file."""

    config: dict[str, Any]
    dtype: torch.dtype = torch.float32
    shard: int = 50

    @property
    def style(self) -> str:
        """The kind of tokenizer."""
        return {"bert": "bert", "xglm": "xglm"}.get(self.config["model_type"], "xlm-roberta")

    def tiny(self, pieces: int) -> Published:
        """As many layers, few neurons, and no more vocabulary than the pieces need."""
        causal = self.config["model_type"] == "xglm"
        names = ("d_model", "attention_heads", "ffn_dim") if causal else (
            "hidden_size", "num_attention_heads", "intermediate_size"
        )  # fmt: skip
        # Unigram models have a piece for the beginning and one for the inside of a word.
        small = dict(zip(names, (32, 4, 64), strict=True)) | {"vocab_size": 2 * pieces + 200}
        return Published(self.config | small, self.dtype, 20 * self.shard)


def _encoder(family: str, vocabulary: int, neurons: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": family, "vocab_size": vocabulary, "hidden_size": neurons, "num_hidden_layers": layers,
        "num_attention_heads": heads, "intermediate_size": 4 * neurons, "max_position_embeddings": 514,
        "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5,
        "hidden_act": "gelu",
    } | more  # fmt: skip


def _bert(vocabulary: int) -> Published:
    special = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": None, "layer_norm_eps": 1e-12}
    more = {"max_position_embeddings": 512, "type_vocab_size": 2} | special
    return Published(_encoder("bert", vocabulary, 768, 12, 12, **more))


def _xglm(neurons: int, layers: int, heads: int, inner: int, shard: int = 50) -> Published:
    config = {
        "model_type": "xglm", "vocab_size": 256008, "d_model": neurons, "num_layers": layers, "attention_heads": heads,
        "ffn_dim": inner, "max_position_embeddings": 2048, "activation_function": "gelu", "scale_embedding": True,
        "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
    }  # fmt: skip
    return Published(config, torch.float16, shard)


# As many rows as give the register's number of parameters.
_SCALE = 52004
PUBLISHED = {
    "mbert": _bert(119547),
    "embert-hi": _bert(149547),
    "xlmr-base": Published(_encoder("xlm-roberta", 250002, 768, 12, 12)),
    "xlmr-large": Published(_encoder("xlm-roberta", 250002, 1024, 24, 16)),
    "xlmr-xl": Published(_encoder("xlm-roberta-xl", 250880, 2560, 36, 32), shard=5),
    "xlmr-xxl": Published(_encoder("xlm-roberta-xl", 250880, 4096, 48, 32), shard=10),
    "xglm-564m": _xglm(1024, 24, 16, 4096),
    "xglm-1.7b": _xglm(2048, 24, 16, 8192),
    "xglm-2.9b": _xglm(2048, 48, 16, 8192),
    "xglm-4.5b": _xglm(2048, 48, 16, 16384),
    "xglm-7.5b": _xglm(4096, 32, 32, 16384, shard=5),
    "scale-post": Published(_encoder("roberta", _SCALE, 768, 12, 12)),
    "scale-pre": Published(_encoder("roberta-prelayernorm", _SCALE, 768, 12, 12)),
    "scale-normformer": Published(_encoder("normformer", _SCALE, 768, 12, 12, residual_scaling=True)),
    "scale-normformer-v2": Published(_encoder("normformer", _SCALE, 768, 12, 12, residual_scaling=True)),
}


def published(name: str) -> Published:
    """The layout of a model."""
    if name not in PUBLISHED:
        raise UserError(f"model {name}: its published configuration is not known; known are {', '.join(PUBLISHED)}")
    return PUBLISHED[name]


def empty_model(layout: Published) -> PreTrainedModel:
    """The library's model, without numbers."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForPreTraining

    family = layout.config["model_type"]
    kind = {"bert": AutoModelForPreTraining, "xglm": AutoModelForCausalLM}.get(family, AutoModelForMaskedLM)
    with torch.device("meta"):
        return kind.from_config(AutoConfig.for_model(**layout.config), dtype=layout.dtype)


def fill(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """Numbers as before any training: matrices at random, norms one, the rest zero."""
    drawn = torch.randn(_DRAWN, generator=torch.Generator().manual_seed(seed)) * 0.02
    model.to_empty(device="cpu")
    model.tie_weights()
    with torch.no_grad():
        for number, (name, values) in enumerate(model.named_parameters()):
            if values.dim() < 2:
                values.fill_(float("norm" in name.lower() and name.endswith("weight")))
                continue
            numbers = drawn.roll(number * 104729)
            for part in values.view(-1).split(_DRAWN):
                part.copy_(numbers[: len(part)])
    return model


def write_model(folder: Path, layout: Published, pieces: list[str], seed: int) -> dict[str, str]:
    """Write a folder as the hub has it, its own SHA256SUMS last; returns the checksums by file name."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(folder, layout, pieces)
    if layout.config["model_type"] == "normformer":
        save_language_model(folder, *new_model(EncoderConfig.from_huggingface(layout.config), seed), tokenizer)
    else:
        fill(empty_model(layout), seed).save_pretrained(folder, max_shard_size=f"{layout.shard}{SHARD_UNIT}")
    tokenizer.save(str(folder / "tokenizer.json"))
    sums = {file.name: sha256(file) for file in sorted(folder.iterdir()) if file.name != SUMS}
    with write_atomic(folder / SUMS) as stream:
        stream.writelines(f"{digest}  {name}\n" for name, digest in sums.items())
    return sums


def _tokenizer(folder: Path, layout: Published, pieces: list[str]) -> Tokenizer:
    size, style = layout.config["vocab_size"], layout.style
    if style != "bert":
        return unigram(pieces, size, style)
    specials = [name for name in SPECIALS["bert"] if name != "[PAD]"]
    tokens = ["[PAD]", *(f"[unused{n}]" for n in range(1, 100)), *specials, *pieces]
    tokens += [f"[unused{n}]" for n in range(100, 100 + size - len(tokens))]
    with write_atomic(folder / "vocab.txt") as stream:
        stream.writelines(f"{token}\n" for token in tokens[:size])
    return wordpiece_tokenizer(folder / "vocab.txt")


def unigram(pieces: Iterable[str], size: int, style: str) -> Tokenizer:
    """A tokenizer of sentencepiece's kind from the pieces of a WordPiece one, the more frequent first."""
    last = [name for name in SPECIALS[style] if name == "<mask>"]
    entries = dict.fromkeys((name for name in SPECIALS[style] if name not in last), 0.0)
    for rank, piece in enumerate(pieces):
        inside = piece.removeprefix("##")
        entries.setdefault(inside if piece.startswith("##") else f"▁{piece}", -math.log(rank + 10))
        if len(inside) == 1:
            entries.setdefault(inside, -math.log(rank + 10) - 5)
    entries["▁"] = -8.0
    room = size - len(last)
    chosen = list(entries.items())[:room]
    chosen += [(f"<unused{n}>", -100.0) for n in range(room - len(chosen))]
    tokenizer = Tokenizer(models.Unigram(chosen, unk_id=SPECIALS[style].index("<unk>")))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return framed(tokenizer, style)
