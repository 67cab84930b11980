"""Hugging Face folders (config.json, safetensors, tokenizer.json) become encoders here, and encoders folders.

`load_encoder` gives the encoder and its tokenizer, `load_weights` the encoder alone; nothing else reads weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from crossalign.engine.encoder import BaseEncoder, Encoder, empty_encoder
from crossalign.engine.library import LibraryConfig, LibraryEncoder, library_config, load_library_encoder
from crossalign.engine.lm_heads import CausalHead, Head, MaskedHead
from crossalign.engine.shape import XGLM, XLMR_XL, EncoderConfig, knows_shape
from crossalign.engine.tokenizer import load_tokenizer
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
_POOLER = ("pooler.dense.weight", "pooler.dense.bias")
# The parts of a language model's head, and what the library puts before the names of the encoder.
_BERT_HEAD = {
    "dense": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "bias": "cls.predictions.bias",
}
_ROBERTA_HEAD = {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"}
_PREFIX = {"bert": "bert.", "roberta-prelayernorm": "roberta_prelayernorm.", "normformer": "", XGLM: "model."}
_PREFIXES = ("bert.", "roberta_prelayernorm.", "roberta.", "model.")
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
# Bytes of a tensor that pass through the host at a time.
_PIECE = 256 << 20
_CPU = torch.device("cpu")
BACKENDS = ("auto", "own", "library")


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
    """Who computes the model of a folder, `own` or `library`; `auto` is our encoder where it knows the shape."""
    if backend not in BACKENDS:
        raise UserError(f"backend '{backend}' is not one of {', '.join(BACKENDS)}")
    return backend if backend != "auto" else "own" if knows_shape(_read_config(folder)) else "library"


def load_encoder(folder: str | Path, backend: str = "auto") -> tuple[BaseEncoder, Tokenizer]:
    """The encoder and the tokenizer of a model folder."""
    encoder = load_weights(folder, backend=backend)
    return encoder, load_tokenizer(folder, encoder.config.vocab_size)


def load_config(folder: str | Path, backend: str = "auto") -> EncoderConfig | LibraryConfig:
    """The shape of the encoder in a folder."""
    if choose_backend(folder, backend) == "library":
        return library_config(folder)
    return EncoderConfig.from_huggingface(_read_config(folder), str(Path(folder) / "config.json"))


def _read_config(folder: str | Path) -> dict[str, Any]:
    path = Path(folder) / "config.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: {folder} is not a model folder") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from None


def load_weights(
    folder: str | Path,
    place: Callable[[str], tuple[torch.device, torch.dtype]] = lambda name: (_CPU, torch.float32),
    backend: str = "auto",
) -> BaseEncoder:
    """The encoder of a folder. `place` gives each parameter's device and precision: the host's memory and fp32."""
    if choose_backend(folder, backend) == "library":
        return load_library_encoder(folder, place)
    config = load_config(folder, "own")
    tensors = Shards(folder)
    scale = f"encoder.layer.0.{_NORMFORMER['residual_scale'][0]}"
    if config.norm == "normformer" and not config.residual_scaling and scale in tensors.places:
        # They would be computed with as if all were 1.
        raise UserError(f"{folder}: the weights have '{scale}', but config.json lacks residual_scaling: true")
    encoder = empty_encoder(config)
    shapes = {name: parameter.shape for name, parameter in encoder.named_parameters()}
    state = {}
    for name, sources in library_names(encoder).items():
        parts = [tensors.read(source, *place(name)) for source in sources]
        state[name] = parts[0] if len(parts) == 1 else torch.cat(parts)
        if state[name].shape != shapes[name]:
            raise UserError(
                f"{folder}: {sources[0]} has shape {tuple(state[name].shape)}, config.json wants {tuple(shapes[name])}"
            )
    encoder.load_state_dict(state, assign=True)
    encoder.requires_grad_()
    encoder.pretrained = {name: tensors.read(name) for name in _POOLER if name in tensors.places}
    return encoder


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
    _save(Path(folder), tensors, config.to_huggingface() | raw, tokenizer, low=store == "bf16")


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
    tensors = {
        name: (value.bfloat16() if low and value.dim() == 2 else value.float()).cpu().contiguous()
        for name, value in tensors.items()
    }
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    if tokenizer is not None:
        with write_atomic(folder / "tokenizer.json") as stream:
            stream.write(tokenizer.to_str(pretty=False))
    write_json(folder / "config.json", raw, sort_keys=True)


class Shards:
    """The tensors of a folder of safetensors files, by their name without the prefix of the family."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.places: dict[str, tuple[Path, str]] = {}
        # What is left of small files, which are read at once: opening one for each tensor takes longer than reading it.
        self._waiting: dict[Path, dict[str, Tensor]] = {}
        for path in self._files():
            try:
                with safe_open(path, "pt") as file:
                    self.places.update((plain_name(name), (path, name)) for name in file.keys())  # noqa: SIM118
            except (SafetensorError, OSError) as error:
                raise UserError(f"{path} cannot be read: {error}; fetch it again") from None

    def _files(self) -> list[Path]:
        index, single = self.folder / "model.safetensors.index.json", self.folder / "model.safetensors"
        if index.exists():
            try:
                names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UserError(f"{index} is no index of weights ({error}); fetch it again") from None
            return sorted(self.folder / name for name in names)
        if single.exists():
            return [single]
        raise UserError(f"{self.folder} has no model.safetensors (other weight formats are not read)")

    def read(self, name: str, device: torch.device = _CPU, dtype: torch.dtype = torch.float32) -> Tensor:
        """One tensor, straight to the device and in the precision where it is used.

        The file is closed after each piece: its pages would count as this program's memory as long as it is open.
        """
        if name not in self.places:
            raise UserError(f"{self.folder}: the weights have no tensor '{name}'")
        path, key = self.places[name]
        if path not in self._waiting:
            self._waiting[path] = load(path.read_bytes()) if path.stat().st_size <= _PIECE // 8 else {}
        if key in self._waiting[path]:
            return self._waiting[path].pop(key).to(device, dtype, copy=True)
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


def plain_name(name: str) -> str:
    """A tensor's name without prefix, and with the names that LayerNorm's parameters have had since 2020."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
