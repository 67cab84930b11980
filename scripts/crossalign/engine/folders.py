"""Hugging Face folders (config.json, safetensors, tokenizer.json) become encoders here, and encoders folders.

`load_encoder` gives the encoder and its tokenizer, `load_weights` the encoder alone; nothing else reads weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from crossalign.engine.encoder import BaseEncoder, Encoder, empty_encoder
from crossalign.engine.library import POOLER, LibraryConfig, LibraryEncoder, empty_library_encoder, load_library_encoder
from crossalign.engine.lm_heads import CausalHead, Head, MaskedHead, fresh_head
from crossalign.engine.shape import XGLM, XLMR_XL, EncoderConfig, knows_shape
from crossalign.engine.tokenizer import load_tokenizer
from crossalign.engine.weights import Shards, audit, read_config, write_tensors
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The library's names of our modules outside and inside the layers. Query, key and value are one product of ours.
_OUTSIDE = {
    "embeddings.word": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.segment": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "final_norm": "LayerNorm",
}
_POST = {
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "out": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "up": ("intermediate.dense",),
    "down": ("output.dense",),
    "output_norm": ("output.LayerNorm",),
}
_PRE = _POST | {"attention_norm": ("attention.LayerNorm",), "output_norm": ("intermediate.LayerNorm",)}
# No library has NormFormer encoders; these names are ours.
_NORMFORMER = _PRE | {
    "head_scale": ("attention.self.head_scale",),
    "residual_scale": ("output.residual_scale",),
    "inner_attention_norm": ("attention.output.LayerNorm",),
    "inner_output_norm": ("intermediate.inner_LayerNorm",),
}
_XL_OUTSIDE = _OUTSIDE | {"final_norm": "encoder.LayerNorm"}
_XL = _POST | {"attention_norm": ("attention.self_attn_layer_norm",), "output_norm": ("LayerNorm",)}
_XGLM_OUTSIDE = {"embeddings.word": "embed_tokens", "final_norm": "layer_norm"}
_XGLM = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.out_proj",),
    "attention_norm": ("self_attn_layer_norm",),
    "up": ("fc1",),
    "down": ("fc2",),
    "output_norm": ("final_layer_norm",),
}
# The parts of a language model's head, and what the library puts before the names of the encoder.
_BERT_HEAD = {
    "dense": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "bias": "cls.predictions.bias",
}
_ROBERTA_HEAD = {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"}
_PREFIX = {"bert": "bert.", "roberta-prelayernorm": "roberta_prelayernorm.", "normformer": "", XGLM: "model."}
_ARCHITECTURE = {
    "bert": "BertForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "xlm-roberta": "XLMRobertaForMaskedLM",
    "camembert": "CamembertForMaskedLM",
    "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
    XLMR_XL: "XLMRobertaXLForMaskedLM",
    "normformer": "NormFormerForMaskedLM",
    XGLM: "XGLMForCausalLM",
}
_CPU = torch.device("cpu")


def library_names(encoder: Encoder) -> dict[str, tuple[str, ...]]:
    """For each parameter of ours the library's name, or the three names whose tensors lie one below the other in it."""
    config = encoder.config
    outside, layers = _OUTSIDE, "encoder.layer"
    inside = {"post": _POST, "pre": _PRE, "normformer": _NORMFORMER}[config.norm]
    if config.family == XLMR_XL:
        outside, inside = _XL_OUTSIDE, _XL
    elif config.family == XGLM:
        outside, inside, layers = _XGLM_OUTSIDE, _XGLM, "layers"
    names: dict[str, tuple[str, ...]] = {}
    for name, _ in encoder.named_parameters():
        if name.startswith("layers."):
            _, index, part, *kind = name.split(".")
            names[name] = tuple(".".join([layers, index, theirs, *kind]) for theirs in inside[part])
        else:
            module, _, kind = name.rpartition(".")
            names[name] = (f"{outside[module]}.{kind}",)
    return names


def choose_backend(folder: str | Path, backend: str = "auto") -> str:
    """Who computes the model of a folder: `own`, `library`, or `bidirectional`, the library with a decoder that sees
    both sides; `auto` is our encoder where it knows the shape.
    """
    return backend if backend != "auto" else "own" if knows_shape(read_config(folder)) else "library"


def load_encoder(folder: str | Path, backend: str = "auto") -> tuple[BaseEncoder, Tokenizer]:
    """The encoder and the tokenizer of a model folder."""
    encoder = load_weights(folder, backend=backend)
    return encoder, load_tokenizer(folder, encoder.config.vocab_size)


def load_config(folder: str | Path, backend: str = "auto") -> EncoderConfig | LibraryConfig:
    """The shape of the encoder in a folder."""
    if (chosen := choose_backend(folder, backend)) != "own":
        return empty_library_encoder(folder, chosen).config
    return EncoderConfig.from_huggingface(read_config(folder), str(Path(folder) / "config.json"))


def load_empty(folder: str | Path, backend: str = "auto") -> BaseEncoder:
    """The modules of the encoder in a folder, without memory and without weights."""
    if (chosen := choose_backend(folder, backend)) != "own":
        return empty_library_encoder(folder, chosen)
    return empty_encoder(load_config(folder, "own"))


def load_weights(
    folder: str | Path,
    place: Callable[[str], tuple[torch.device, torch.dtype]] = lambda name: (_CPU, torch.float32),
    backend: str = "auto",
) -> BaseEncoder:
    """The encoder of a folder. `place` gives each parameter's device and precision: the host's memory and fp32."""
    if (chosen := choose_backend(folder, backend)) != "own":
        return load_library_encoder(folder, place, chosen)
    config = load_config(folder, "own")
    tensors = Shards(folder)
    encoder = empty_encoder(config)
    _check(folder, encoder, tensors)
    state = {}
    for name, sources in library_names(encoder).items():
        parts = [tensors.read(source, *place(name)) for source in sources]
        state[name] = parts[0] if len(parts) == 1 else torch.cat(parts)
    encoder.load_state_dict(state, assign=True)
    encoder.requires_grad_()
    encoder.pretrained = {name: tensors.read(name) for name in POOLER if name in tensors.places}
    return encoder


def _check(folder: str | Path, encoder: Encoder, tensors: Shards) -> None:
    """Refuse weights with other tensors than config.json wants."""
    parameters = dict(encoder.named_parameters())
    wanted = {}
    for name, sources in library_names(encoder).items():
        rows, *columns = parameters[name].shape
        wanted |= dict.fromkeys(sources, (rows // len(sources), *columns))
    have = tensors.shapes
    wrong = {name: (have[name], shape) for name, shape in wanted.items() if have.get(name, shape) != shape}
    audit(folder, wanted.keys() - have.keys(), have.keys() - wanted.keys(), wrong)


def load_language_model(folder: str | Path, seed: int) -> tuple[Encoder, Head]:
    """Our encoder, which alone learns from running text, and its language model's head; a new one if none is there."""
    encoder = load_weights(folder, backend="own")
    return encoder, load_head(folder, encoder.config) or fresh_head(encoder.config, seed)


def load_head(folder: str | Path, config: EncoderConfig) -> Head | None:
    """The language model's head in a model folder, or None where it has none."""
    if config.causal:
        return CausalHead()
    names, tensors = _head_names(config), Shards(folder)
    if any(name not in tensors.places for name in names.values()):
        return None
    head = MaskedHead(config)
    try:
        head.load_state_dict({ours: tensors.read(name) for ours, name in names.items()})
    except RuntimeError as error:
        raise UserError(f"{folder}: the language-model head does not fit config.json: {error}") from None
    return head


def _head_names(config: EncoderConfig) -> dict[str, str]:
    if config.causal:
        return {}
    library = _BERT_HEAD if config.family == "bert" else _ROBERTA_HEAD
    names = {f"{part}.{kind}": f"{library[part]}.{kind}" for part in ("dense", "norm") for kind in ("weight", "bias")}
    return names | {"bias": library["bias"]}


def save_encoder(folder: str | Path, encoder: BaseEncoder, tokenizer: Tokenizer | None = None) -> None:
    """Write a folder that this module and the library can load."""
    tensors = encoder.tensors() if isinstance(encoder, LibraryEncoder) else _library_tensors(encoder)
    _save(Path(folder), tensors, encoder.config.to_huggingface(), tokenizer)


def save_language_model(
    folder: str | Path, encoder: Encoder, head: Head, tokenizer: Tokenizer, store: str = "fp32"
) -> None:
    """Write a folder that the library loads as a language model, and this project as an encoder.

    With `store` bf16 the matrices take half the space; all computing is still done in fp32 or as the run says.
    """
    config = encoder.config
    prefix, own = _PREFIX.get(config.family, "roberta."), dict(head.named_parameters())
    tensors = {prefix + name: value for name, value in _library_tensors(encoder).items()}
    tensors |= {name: own[ours].detach() for ours, name in _head_names(config).items()}
    raw = {"architectures": [_ARCHITECTURE[config.family]], "tie_word_embeddings": True}
    _save(Path(folder), tensors, config.to_huggingface() | raw, tokenizer, store == "bf16")


def _library_tensors(encoder: Encoder) -> dict[str, Tensor]:
    if encoder.rows is not None:
        raise ValueError("restore the vocabulary before writing the encoder")
    parameters = dict(encoder.named_parameters())
    tensors: dict[str, Tensor] = {}
    for name, targets in library_names(encoder).items():
        tensors |= zip(targets, parameters[name].detach().chunk(len(targets)), strict=True)
    return tensors | encoder.pretrained


def _save(
    folder: Path, tensors: dict[str, Tensor], raw: dict[str, Any], tokenizer: Tokenizer | None, low: bool = False
) -> None:
    stored = {name: value.bfloat16() if low and value.dim() == 2 else value.float() for name, value in tensors.items()}
    write_tensors(folder / "model.safetensors", stored)
    if tokenizer is not None:
        with write_atomic(folder / "tokenizer.json") as stream:
            stream.write(tokenizer.to_str(pretty=False))
    write_json(folder / "config.json", raw, sort_keys=True)
