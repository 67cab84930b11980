"""Read and write encoders as Hugging Face folders: config.json, safetensors, tokenizer.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from crossalign.engine.encoder import Encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tensors import Shards
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_EMBEDDINGS = {
    "embeddings.word": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.segment": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
}
_LAYER = {"out": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
_NORMS = {
    "post": {"attention_norm": "attention.output.LayerNorm", "output_norm": "output.LayerNorm"},
    "pre": {"attention_norm": "attention.LayerNorm", "output_norm": "intermediate.LayerNorm"},
}
# No library has NormFormer encoders; these names are ours.
_NORMS["normformer"] = _NORMS["pre"] | {
    "inner_attention_norm": "attention.output.LayerNorm",
    "inner_output_norm": "intermediate.inner_LayerNorm",
}
_XGLM_EMBEDDINGS = {"embeddings.word": "embed_tokens", "final_norm": "layer_norm"}
_XGLM_LAYER = {
    "out": "self_attn.out_proj",
    "attention_norm": "self_attn_layer_norm",
    "up": "fc1",
    "down": "fc2",
    "output_norm": "final_layer_norm",
}
_POOLER = ("pooler.dense.weight", "pooler.dense.bias")
_SCALES = {"head_scale": "attention.self.head_scale", "residual_scale": "output.residual_scale"}


def library_names(encoder: Encoder) -> dict[str, tuple[str, ...]]:
    """For each parameter of ours the library's name, or the three names whose tensors lie one below the other in it."""
    if encoder.config.causal:
        return _xglm_names(encoder)
    norms = _NORMS[encoder.config.norm]
    names: dict[str, tuple[str, ...]] = {}
    for name, _ in encoder.named_parameters():
        module, _, kind = name.rpartition(".")
        if module in _EMBEDDINGS:
            names[name] = (f"{_EMBEDDINGS[module]}.{kind}",)
        elif module == "final_norm":
            names[name] = (f"LayerNorm.{kind}",)
        else:
            _, index, *rest = name.split(".")
            layer = f"encoder.layer.{index}"
            if rest[0] == "qkv":
                names[name] = tuple(f"{layer}.attention.self.{part}.{kind}" for part in ("query", "key", "value"))
            elif rest[0] in _SCALES:
                names[name] = (f"{layer}.{_SCALES[rest[0]]}",)
            else:
                names[name] = (f"{layer}.{(_LAYER | norms)[rest[0]]}.{kind}",)
    return names


def _xglm_names(encoder: Encoder) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for name, _ in encoder.named_parameters():
        module, _, kind = name.rpartition(".")
        if module in _XGLM_EMBEDDINGS:
            names[name] = (f"{_XGLM_EMBEDDINGS[module]}.{kind}",)
            continue
        _, index, part = module.split(".")
        inside = [f"self_attn.{one}_proj" for one in "qkv"] if part == "qkv" else [_XGLM_LAYER[part]]
        names[name] = tuple(f"layers.{index}.{one}.{kind}" for one in inside)
    return names


def load_encoder(folder: str | Path) -> tuple[Encoder, Tokenizer]:
    """The encoder and the tokenizer of a Hugging Face folder."""
    folder = Path(folder)
    encoder = load_weights(folder)
    return encoder, load_tokenizer(folder, encoder.config.vocab_size)


def raw_config(folder: str | Path) -> tuple[dict[str, Any], str]:
    """The config.json of a folder as it stands there, and its name for messages."""
    path = Path(folder) / "config.json"
    try:
        return json.loads(path.read_text(encoding="utf-8")), str(path)
    except FileNotFoundError:
        raise UserError(f"{path} is missing: {folder} is not a model folder") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from None


def load_config(folder: str | Path) -> EncoderConfig:
    """The shape of the encoder in a folder."""
    return EncoderConfig.from_huggingface(*raw_config(folder))


def refuse_unread_scales(config: EncoderConfig, tensors: Shards) -> None:
    """Weights with residual scales whose config.json does not say so would be computed with as if all were 1."""
    name = f"encoder.layer.0.{_SCALES['residual_scale']}"
    if config.norm == "normformer" and not config.residual_scaling and tensors.has(name):
        raise UserError(f"{tensors.folder}: the weights have '{name}', but config.json lacks residual_scaling: true")


def load_weights(folder: str | Path) -> Encoder:
    """The encoder of a folder, in fp32."""
    folder = Path(folder)
    config = load_config(folder)
    # No memory and no random numbers for weights that are read anyway.
    with torch.device("meta"):
        encoder = Encoder(config)
    tensors = Shards(folder)
    refuse_unread_scales(config, tensors)
    state = {}
    shapes = {name: parameter.shape for name, parameter in encoder.named_parameters()}
    for name, sources in library_names(encoder).items():
        parts = [tensors.read(source) for source in sources]
        state[name] = parts[0] if len(parts) == 1 else torch.cat(parts)
        if state[name].shape != shapes[name]:
            raise UserError(
                f"{folder}: {sources[0]} has shape {tuple(state[name].shape)}, config.json wants {tuple(shapes[name])}"
            )
    encoder.load_state_dict(state, assign=True)
    for parameter in encoder.parameters():
        parameter.requires_grad_()
    encoder.pretrained = {name: tensors.read(name) for name in _POOLER if tensors.has(name)}
    return encoder


def save_encoder(
    folder: str | Path, encoder: Encoder, tokenizer: Tokenizer | None = None, extra: dict[str, Tensor] | None = None
) -> None:
    """Write a folder that this module and the library can load; `extra` are more tensors, under the library's names."""
    folder = Path(folder)
    if encoder.rows is not None:
        raise ValueError("restore the vocabulary before writing the encoder")
    parameters = dict(encoder.named_parameters())
    tensors: dict[str, Tensor] = {}
    for name, targets in library_names(encoder).items():
        parts = parameters[name].detach().float().cpu().chunk(len(targets))
        tensors.update({target: part.contiguous() for target, part in zip(targets, parts, strict=True)})
    tensors.update(encoder.pretrained | (extra or {}))
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    if tokenizer is not None:
        with write_atomic(folder / "tokenizer.json") as stream:
            stream.write(tokenizer.to_str(pretty=False))
    write_json(folder / "config.json", encoder.config.to_huggingface(), sort_keys=True)


def load_tokenizer(folder: str | Path, vocab_size: int | None = None) -> Tokenizer:
    """The tokenizer.json of a folder, or a WordPiece tokenizer from its vocab.txt, checked against the model's size."""
    from tokenizers import Tokenizer

    folder = Path(folder)
    if (folder / "tokenizer.json").exists():
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{folder / 'tokenizer.json'} cannot be read: {error}") from None
        tokenizer.no_padding()
        tokenizer.no_truncation()
    elif (folder / "vocab.txt").exists():
        settings = folder / "tokenizer_config.json"
        lowercase = settings.exists() and json.loads(settings.read_text(encoding="utf-8")).get("do_lower_case", True)
        tokenizer = wordpiece_tokenizer(folder / "vocab.txt", bool(lowercase))
    else:
        raise UserError(f"{folder} has neither tokenizer.json nor vocab.txt")
    if vocab_size is not None and tokenizer.get_vocab_size() > vocab_size:
        raise UserError(
            f"{folder}: the tokenizer knows {tokenizer.get_vocab_size()} pieces but the model has {vocab_size} "
            "embeddings; the tokenizer belongs to another model"
        )
    return tokenizer


def wordpiece_tokenizer(vocabulary: Path, lowercase: bool = False) -> Tokenizer:
    """BERT's tokenizer from its vocabulary file."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def adopt_pooler(head: nn.Module, encoder: Encoder) -> None:
    """Start a head's `pooler` (a linear layer) from the model folder's, as the library's sequence classifiers do."""
    if isinstance(getattr(head, "pooler", None), nn.Linear) and encoder.pretrained:
        head.pooler.load_state_dict({name.rpartition(".")[2]: value for name, value in encoder.pretrained.items()})
