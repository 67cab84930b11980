"""Heads of language models, as the library has them, and folders that hold them beside the encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine.encoder import Encoder
from crossalign.engine.huggingface import library_names
from crossalign.engine.random_init import redraw
from crossalign.engine.seeds import derive
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tensors import Shards
from crossalign.engine.word_loss import word_loss
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# What the library calls the parts of the head, and what it puts before the names of the encoder.
_BERT = {
    "dense": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "bias": "cls.predictions.bias",
}
_ROBERTA = {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"}
_PREFIX = {"bert": "bert.", "roberta-prelayernorm": "roberta_prelayernorm.", "normformer": "", "xglm": "model."}
_ARCHITECTURE = {
    "bert": "BertForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "xlm-roberta": "XLMRobertaForMaskedLM",
    "camembert": "CamembertForMaskedLM",
    "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
    "normformer": "NormFormerForMaskedLM",
    "xglm": "XGLMForCausalLM",
}


class MaskedHead(nn.Module):
    """A layer with GELU and norm, then the product with the word embeddings (tied, so not held here) and a bias."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, config.eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def inner(self, states: Tensor) -> Tensor:
        """What meets the table of words, (n, hidden), in the precision of the states."""
        inner = functional.gelu(
            functional.linear(states, self.dense.weight.to(states.dtype), self.dense.bias.to(states.dtype))
        )
        inner = functional.layer_norm(
            inner.float(), self.norm.normalized_shape, self.norm.weight, self.norm.bias, self.norm.eps
        )
        return inner.to(states.dtype)

    def forward(self, states: Tensor, words: Tensor) -> Tensor:
        """Scores of all words, (n, vocabulary), for states (n, hidden) and the table of word embeddings."""
        return functional.linear(self.inner(states), words, self.bias)


class CausalHead(nn.Module):
    """The product with the word embeddings and nothing else, as in XGLM; without weights of its own."""

    bias = None

    def inner(self, states: Tensor) -> Tensor:
        """What meets the table of words: the states themselves."""
        return states

    def forward(self, states: Tensor, words: Tensor) -> Tensor:
        """Scores of all words, (n, vocabulary)."""
        return functional.linear(states, words)


Head = MaskedHead | CausalHead


def masked_loss(head: Head, states: Tensor, words: Tensor, places: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy at `places` (batch, k) of the grid of states; targets below 0 do not count.

    Only these rows meet the vocabulary: the product with all positions would be seven times the work.
    """
    batch, length, hidden = states.shape
    cells = (torch.arange(batch, device=places.device) * length)[:, None] + places
    picked = states.reshape(batch * length, hidden).index_select(0, cells.reshape(-1))
    return word_loss(head.inner(picked), words, head.bias, targets.reshape(-1))


def fresh_head(config: EncoderConfig, seed: int) -> Head:
    """A head that was never trained."""
    if config.causal:
        return CausalHead()
    head = MaskedHead(config)
    redraw(head, config.initializer_range, derive(seed, "masked-head"))
    with torch.no_grad():
        head.bias.zero_()
    return head


def load_head(folder: str | Path, config: EncoderConfig) -> Head | None:
    """The head of a model folder, or None where it has none."""
    if config.causal:
        return CausalHead()
    names = _head_names(config)
    tensors = Shards(folder)
    if not all(tensors.has(name) for name in names.values()):
        return None
    head = MaskedHead(config)
    state = {ours: tensors.read(name) for ours, name in names.items()}
    try:
        head.load_state_dict(state)
    except RuntimeError as error:
        raise UserError(f"{folder}: the language-model head does not fit config.json: {error}") from None
    return head


def save_language_model(
    folder: str | Path, encoder: Encoder, head: Head, tokenizer: Tokenizer, store: str = "fp32"
) -> None:
    """Write a folder that the library loads as a language model, and this project as an encoder.

    With `store` bf16 the matrices take half the space; all computing is still done in fp32 or as the run says.
    """
    folder = Path(folder)
    config = encoder.config
    prefix = _PREFIX.get(config.family, "roberta.")
    tensors: dict[str, Tensor] = {}
    parameters = dict(encoder.named_parameters())
    for name, targets in library_names(encoder).items():
        for target, part in zip(targets, parameters[name].detach().chunk(len(targets)), strict=True):
            tensors[prefix + target] = part
    tensors.update({prefix + name: value for name, value in encoder.pretrained.items()})
    own = dict(head.named_parameters())
    tensors.update({name: own[ours].detach() for ours, name in _head_names(config).items()})
    low = store == "bf16"
    tensors = {
        name: (value.bfloat16() if low and value.dim() == 2 else value.float()).cpu().contiguous()
        for name, value in tensors.items()
    }
    raw = config.to_huggingface()
    raw["architectures"] = [_ARCHITECTURE[config.family]]
    raw["tie_word_embeddings"] = True
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    with write_atomic(folder / "tokenizer.json") as stream:
        stream.write(tokenizer.to_str(pretty=False))
    write_json(folder / "config.json", raw, sort_keys=True)


def _head_names(config: EncoderConfig) -> dict[str, str]:
    if config.causal:
        return {}
    library = _BERT if config.family == "bert" else _ROBERTA
    names = {f"{part}.{kind}": f"{library[part]}.{kind}" for part in ("dense", "norm") for kind in ("weight", "bias")}
    return {**names, "bias": library["bias"]}
