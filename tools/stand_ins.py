"""Folders of models as the hub has them: published configuration and layout, random weights, an invented vocabulary.

Names and shapes of the tensors are those of the library's models. Weights are written shard by shard, so a model takes
no more memory than its largest file. Nothing of a published model is in them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tokenizer import SPECIALS, framed, wordpiece_tokenizer
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import sha256, write_atomic, write_json

SUMS = "SHA256SUMS"
# Numbers that all weights are cut from, each at another place: drawing billions would take minutes.
_DRAWN = 1 << 22
# What is the embeddings, or a bias that has another name already, is stored once.
_TIED = ("lm_head.decoder.", "cls.predictions.decoder.", "lm_head.weight")
# Neurons, heads and inner neurons of a tiny model; it keeps its layers.
TINY = (32, 4, 64)


@dataclass(frozen=True)
class Published:
    """What config.json says of the shape, how weights are stored, and the bytes of a file where there are several."""

    config: dict[str, Any]
    dtype: torch.dtype = torch.float32
    shard: int | None = None

    @property
    def style(self) -> str:
        """The kind of tokenizer."""
        return {"bert": "bert", "xglm": "xglm"}.get(self.config["model_type"], "xlm-roberta")


def _bert(vocabulary: int) -> Published:
    shape = _encoder("bert", vocabulary, 768, 12, 12) | {"max_position_embeddings": 512, "type_vocab_size": 2}
    return Published(shape | {"architectures": ["BertForMaskedLM"], "pad_token_id": 0, "layer_norm_eps": 1e-12})


def _encoder(family: str, vocabulary: int, neurons: int, layers: int, heads: int) -> dict[str, Any]:
    names = {"xlm-roberta": "XLMRoberta", "xlm-roberta-xl": "XLMRobertaXL", "roberta": "Roberta"}
    names["roberta-prelayernorm"] = "RobertaPreLayerNorm"
    return {
        "architectures": [f"{names.get(family, 'NormFormer')}ForMaskedLM"], "model_type": family,
        "vocab_size": vocabulary, "hidden_size": neurons, "num_hidden_layers": layers, "num_attention_heads": heads,
        "intermediate_size": 4 * neurons, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1,
        "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02,
    }  # fmt: skip


def _xglm(neurons: int, layers: int, heads: int, inner: int, shard: int | None = None) -> Published:
    config = {
        "architectures": ["XGLMForCausalLM"], "model_type": "xglm", "vocab_size": 256008, "d_model": neurons,
        "num_layers": layers, "attention_heads": heads, "ffn_dim": inner, "max_position_embeddings": 2048,
        "activation_function": "gelu", "scale_embedding": True, "dropout": 0.1, "attention_dropout": 0.1,
        "init_std": 0.02, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
    }  # fmt: skip
    return Published(config, torch.float16, shard)


# As many rows as give the register's number of parameters.
_SCALE = 52004
_GB = 10**9
PUBLISHED = {
    "mbert": _bert(119547),
    "embert-hi": _bert(149547),
    "xlmr-base": Published(_encoder("xlm-roberta", 250002, 768, 12, 12)),
    "xlmr-large": Published(_encoder("xlm-roberta", 250002, 1024, 24, 16)),
    "xlmr-xl": Published(_encoder("xlm-roberta-xl", 250880, 2560, 36, 32), shard=5 * _GB),
    "xlmr-xxl": Published(_encoder("xlm-roberta-xl", 250880, 4096, 48, 32), shard=10 * _GB),
    "xglm-564m": _xglm(1024, 24, 16, 4096),
    "xglm-1.7b": _xglm(2048, 24, 16, 8192),
    "xglm-2.9b": _xglm(2048, 48, 16, 8192),
    "xglm-4.5b": _xglm(2048, 48, 16, 16384),
    "xglm-7.5b": _xglm(4096, 32, 32, 16384, shard=5 * _GB),
    "scale-post": Published(_encoder("roberta", _SCALE, 768, 12, 12)),
    "scale-pre": Published(_encoder("roberta-prelayernorm", _SCALE, 768, 12, 12)),
    "scale-normformer": Published(_encoder("normformer", _SCALE, 768, 12, 12) | {"residual_scaling": True}),
    "scale-normformer-v2": Published(_encoder("normformer", _SCALE, 768, 12, 12) | {"residual_scaling": True}),
}


def published(name: str, pieces: int, tiny: bool = False) -> Published:
    """The layout of a model; a tiny one has as many layers, few neurons, and no more vocabulary than `pieces` need."""
    if name not in PUBLISHED:
        raise UserError(f"model {name}: its published configuration is not known; known are {', '.join(PUBLISHED)}")
    found = PUBLISHED[name]
    if not tiny:
        return found
    neurons, heads, inner = TINY
    causal = found.config["model_type"] == "xglm"
    names = ("d_model", "attention_heads", "ffn_dim") if causal else (
        "hidden_size", "num_attention_heads", "intermediate_size"
    )  # fmt: skip
    # Unigram models have a piece for the beginning and one for the inside of a word.
    small = dict(zip(names, (neurons, heads, inner), strict=True)) | {"vocab_size": 2 * pieces + 200}
    return Published(found.config | small, found.dtype, found.shard and 100_000)


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors of a model as its file names them; weights that it uses twice are there once."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForPreTraining

    family = config["model_type"]
    if family == "normformer":
        # The library has no such model: the project's own names.
        from crossalign.engine.encoder import empty_encoder
        from crossalign.engine.folders import library_names

        encoder = empty_encoder(EncoderConfig.from_huggingface(config))
        names = library_names(encoder)
        return {
            part: (value.shape[0] // len(names[name]), *value.shape[1:])
            for name, value in encoder.named_parameters()
            for part in names[name]
        }
    kind = {"bert": AutoModelForPreTraining, "xglm": AutoModelForCausalLM}.get(family, AutoModelForMaskedLM)
    with torch.device("meta"):
        model = kind.from_config(AutoConfig.for_model(**config))
    every = model.named_parameters(remove_duplicate=False)
    found = {name: tuple(value.shape) for name, value in every if not name.startswith(_TIED)}
    if family == "bert":
        # As Google's checkpoint calls them.
        ends = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        found = {_renamed(name, ends): shape for name, shape in found.items()}
    return found


def _renamed(name: str, ends: dict[str, str]) -> str:
    return next((name.removesuffix(old) + new for old, new in ends.items() if name.endswith(old)), name)


def model_bytes(layout: Published) -> int:
    """What the weights take on disk."""
    return sum(map(math.prod, shapes(layout.config).values())) * layout.dtype.itemsize


class Drawn:
    """Random numbers of which every tensor takes some."""

    def __init__(self, seed: int) -> None:
        self._numbers = torch.randn(_DRAWN, generator=torch.Generator().manual_seed(seed)) * 0.02
        self._places = itertools.count(1)

    def fill(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A weight as before any training: matrices at random, norms one, the rest zero."""
        if len(shape) < 2:
            scale = "norm" in name.lower() and name.endswith(("weight", "gamma")) or "scale" in name
            return torch.full(shape, float(scale), dtype=dtype)
        count = math.prod(shape)
        times = -(-count // _DRAWN)
        place = next(self._places) * 104729 % max(1, _DRAWN * times - count)
        numbers = self._numbers if times == 1 else self._numbers.to(dtype).repeat(times)
        # A copy: the writer takes no two tensors that share memory.
        return numbers[place : place + count].to(dtype, copy=True).view(shape)


def _shards(tensors: dict[str, tuple[int, ...]], layout: Published) -> Iterator[list[str]]:
    """Names, file by file."""
    names: list[str] = []
    size = 0
    for name, shape in tensors.items():
        more = math.prod(shape) * layout.dtype.itemsize
        if names and layout.shard and size + more > layout.shard:
            yield names
            names, size = [], 0
        names.append(name)
        size += more
    yield names


def write_model(folder: Path, layout: Published, pieces: list[str], seed: int) -> dict[str, str]:
    """Write a folder as the hub has it, its own SHA256SUMS last; returns the checksums by file name."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", layout.config | {"torch_dtype": str(layout.dtype).removeprefix("torch.")})
    _write_tokenizer(folder, layout, pieces)
    tensors, drawn = shapes(layout.config), Drawn(seed)
    shards = list(_shards(tensors, layout))
    index: dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors" if layout.shard else "model.safetensors"
        values = {name: drawn.fill(name, tensors[name], layout.dtype) for name in names}
        if layout.config["model_type"] == "xlm-roberta" and number == 1:
            # A table that older versions of the library stored.
            values["roberta.embeddings.position_ids"] = torch.arange(layout.config["max_position_embeddings"])[None]
        save_file(values, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(values, file)
    if layout.shard:
        about = {"total_size": model_bytes(layout)}
        write_json(folder / "model.safetensors.index.json", {"metadata": about, "weight_map": index})
    sums = {file.name: sha256(file) for file in sorted(folder.iterdir()) if file.name != SUMS}
    with write_atomic(folder / SUMS) as stream:
        stream.writelines(f"{digest}  {name}\n" for name, digest in sums.items())
    return sums


def _write_tokenizer(folder: Path, layout: Published, pieces: list[str]) -> None:
    size, style = layout.config["vocab_size"], layout.style
    if style == "bert":
        specials = [name for name in SPECIALS["bert"] if name != "[PAD]"]
        tokens = ["[PAD]", *(f"[unused{n}]" for n in range(1, 100)), *specials, *pieces]
        tokens += [f"[unused{n}]" for n in range(100, 100 + size - len(tokens))]
        with write_atomic(folder / "vocab.txt") as stream:
            stream.writelines(f"{token}\n" for token in tokens[:size])
        tokenizer = wordpiece_tokenizer(folder / "vocab.txt")
        write_json(folder / "tokenizer_config.json", {"do_lower_case": False, "model_max_length": 512})
    else:
        tokenizer = unigram(pieces, size, style)
        write_json(folder / "tokenizer_config.json", {"model_max_length": 512})
    tokenizer.save(str(folder / "tokenizer.json"))


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
