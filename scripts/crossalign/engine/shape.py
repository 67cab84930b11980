"""Shape of an encoder, read from and written to Hugging Face's config.json."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from crossalign.runtime.errors import UserError

Norm = Literal["post", "pre", "normformer"]

XGLM, XLMR_XL = "xglm", "xlm-roberta-xl"
# Families that are RoBERTa in this: positions start behind the padding index.
ROBERTAS = ("xlm-roberta", "roberta", "camembert", "roberta-prelayernorm", XLMR_XL, "normformer")
_FAMILIES = {"bert", *ROBERTAS, XGLM}
_NORMS: dict[str, Norm] = {"roberta-prelayernorm": "pre", XLMR_XL: "pre", XGLM: "pre", "normformer": "normformer"}
# The families that compute as the library's classes of each name do.
_POST_ROBERTAS = {"roberta", "xlm-roberta", "camembert"}
_ARCHITECTURES = {
    "Bert": {"bert"},
    **dict.fromkeys(("Roberta", "XLMRoberta", "Camembert"), _POST_ROBERTAS),
    "RobertaPreLayerNorm": {"roberta-prelayernorm", "normformer"},
    "XLMRobertaXL": {XLMR_XL},
    "XGLM": {XGLM},
}
# XGLM's positions start at 2 whatever the padding index, and config.json does not count the two rows before.
XGLM_OFFSET = 2
# What config.json calls our fields.
KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "intermediate",
    "max_position_embeddings": "positions",
    "type_vocab_size": "types",
    "layer_norm_eps": "eps",
    "hidden_dropout_prob": "hidden_dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_id",
}
XGLM_KEYS = {
    "vocab_size": "vocab_size",
    "d_model": "hidden",
    "num_layers": "layers",
    "attention_heads": "heads",
    "ffn_dim": "intermediate",
    "max_position_embeddings": "positions",
    "dropout": "hidden_dropout",
    "attention_dropout": "attention_dropout",
    "init_std": "initializer_range",
    "pad_token_id": "pad_id",
}
_REQUIRED = {"vocab_size", "hidden", "layers", "heads", "intermediate"}


def knows_shape(raw: dict[str, Any]) -> bool:
    """Whether our encoder computes models with this config.json."""
    family = raw.get("model_type")
    activation = raw.get("activation_function" if family == XGLM else "hidden_act", "gelu")
    return family in _FAMILIES and activation == "gelu" and raw.get("position_embedding_type", "absolute") == "absolute"


def check_architecture(raw: dict[str, Any], where: str) -> None:
    """Refuse a config.json that names two families; weights of BERT and RoBERTa may have the same names."""
    told, family = (raw.get("architectures") or [""])[0], raw["model_type"]
    kind = re.sub(r"(For|Model|LMHead).*", "", told)
    if kind in _ARCHITECTURES and family not in _ARCHITECTURES[kind]:
        raise UserError(f"{where}: architectures names {told}, but model_type '{family}'; one of them is wrong")


@dataclass(frozen=True)
class EncoderConfig:
    """Everything that decides the shape and the arithmetic of an `Encoder`."""

    vocab_size: int
    hidden: int = 768
    layers: int = 12
    heads: int = 12
    intermediate: int = 3072
    positions: int = 512
    types: int = 2
    eps: float = 1e-12
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    initializer_range: float = 0.02
    pad_id: int = 0
    # Index of the first position: 0 in BERT, padding index + 1 in RoBERTa and XLM-R.
    position_offset: int = 0
    norm: Norm = "post"
    # NormFormer's ResScale: a learnt weight per neuron on what a feed-forward block is added to.
    residual_scaling: bool = False
    family: str = "bert"
    # Keys of config.json that we do not use, kept so that writing gives back what was read.
    extra: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise UserError(f"hidden size {self.hidden} is not a multiple of the {self.heads} attention heads")
        if self.norm not in ("post", "pre", "normformer"):
            raise UserError(f"unknown normalisation '{self.norm}'; the schemes are post, pre, normformer")
        if self.residual_scaling and self.norm != "normformer":
            raise UserError(
                f"residual_scaling belongs to NormFormer; this model normalises by the scheme '{self.norm}'"
            )

    @property
    def causal(self) -> bool:
        """Whether tokens see only what is before them: a decoder, trained to predict the next token."""
        return self.family == XGLM

    @property
    def max_length(self) -> int:
        """The longest sequence that has positions."""
        return self.positions - self.position_offset

    @classmethod
    def from_huggingface(cls, raw: dict[str, Any], where: str = "config.json") -> EncoderConfig:
        """Read the dictionary of a config.json; `where` names it in messages."""
        family = raw.get("model_type")
        if not knows_shape(raw):
            names = ("hidden_act", "activation_function", "position_embedding_type")
            told = ", ".join([f"model_type '{family}'", *(f"{name} '{raw[name]}'" for name in names if name in raw)])
            raise UserError(
                f"{where}: our encoder does not compute {told}; it knows {', '.join(sorted(_FAMILIES))} with 'gelu' "
                "and absolute positions"
            )
        keys = XGLM_KEYS if family == XGLM else KEYS
        if raw.get("is_decoder") and family != XGLM:
            raise UserError(
                f"{where}: is_decoder: true makes the model causal, which '{family}' is not here; take it out"
            )
        check_architecture(raw, where)
        if missing := [key for key, ours in keys.items() if ours in _REQUIRED and key not in raw]:
            raise UserError(f"{where}: missing {', '.join(missing)}")
        values = {ours: raw[key] for key, ours in keys.items() if raw.get(key) is not None}
        pad = values.setdefault("pad_id", 0 if family == "bert" else 1)
        if family == XGLM:
            positions = values.get("positions", 2048) + XGLM_OFFSET
            values |= {"positions": positions, "position_offset": XGLM_OFFSET, "types": 0, "eps": 1e-5}
        elif family in ROBERTAS:
            values["position_offset"] = pad + 1
        if family == XLMR_XL:
            values.setdefault("eps", 1e-5)
        return cls(
            **values,
            norm=_NORMS.get(family, "post"),
            residual_scaling=bool(raw.get("residual_scaling", False)),
            family=family,
            extra={key: value for key, value in raw.items() if key not in keys},
        )

    def to_huggingface(self) -> dict[str, Any]:
        """The dictionary to write as config.json."""
        values = asdict(self)
        if self.family == XGLM:
            values["positions"] = self.max_length
        keys = XGLM_KEYS if self.family == XGLM else KEYS
        raw = self.extra | {key: values[ours] for key, ours in keys.items()} | {"model_type": self.family}
        return raw | ({"residual_scaling": self.residual_scaling} if self.norm == "normformer" else {})
