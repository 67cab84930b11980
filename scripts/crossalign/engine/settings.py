"""Hyper-parameters of every training: the name, type, bounds, default and meaning of each, once.

The config is checked with these classes (`catalog/settings.py`), and the programs read their `--settings` into them.
A field without a meaning is no setting: seed and precision are flags.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from crossalign.runtime.checks import wrong_keys
from crossalign.runtime.errors import UserError

Schedule = Literal["linear", "constant"]
Selection = Literal["last", "best"]
Aggregation = Literal["start", "end", "avg", "subword"]
Tokens = Literal["cls", "clssep", "words", "all"]
AlphaScope = Literal["alignment", "both"]
Objective = Literal["mlm", "clm"]
Norm = Literal["post", "pre", "normformer"]
Style = Literal["bert", "xlm-roberta", "xglm"]
Store = Literal["fp32", "bf16"]

# A title takes the place of the bounds in messages.
POSITIVE = {"ge": 1}
SHARE = {"ge": 0, "le": 1}
DROPOUT = {"ge": 0, "lt": 1}
RATE = {"gt": 0, "le": 1, "title": "a learning rate above 0 and at most 1; write 5.0e-5, as YAML reads 5e-5 as text"}
EPSILON = {"gt": 0, "title": "a small number above 0; write 1.0e-8"}
BETAS = {"min_length": 2, "max_length": 2, "title": "a list of two numbers, each from 0 and below 1"}
Betas = list[Annotated[float, Field(ge=0, lt=1)]]


def setting(meaning: str, default: Any, **bounds: Any) -> Any:
    """A hyper-parameter. A default of None stands for what is said elsewhere: by another setting, or by the model."""
    return Field(default, description=meaning, **bounds)


class Section(BaseModel):
    """Knows no other keys, and takes no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Training(Section):
    """What fine-tuning of a transformer and training of a BiLSTM share."""

    learning_rate: float = setting("highest learning rate", 5e-5, **RATE)
    batch: int = setting("examples per step", 16, **POSITIVE)
    epochs: int = setting("passes over the training set", 6, **POSITIVE)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.1, **SHARE)
    schedule: Schedule = setting("what the learning rate does after the warm-up", "linear")
    betas: Betas = setting("decay rates of Adam", [0.9, 0.99], **BETAS)
    epsilon: float = setting("epsilon of Adam", 1e-8, **EPSILON)
    weight_decay: float = setting("weight decay of AdamW", 0.0, ge=0)
    clip: float = setting("largest gradient norm; 0: no limit", 1.0, ge=0)
    selection: Selection = setting("which state of a training is kept: the last, or the best on the dev set", "best")
    patience: int = setting("epochs without a better dev score before stopping; 0: never stop early", 0, ge=0)
    seed: int = 1
    precision: str = "fp32"

    def check_dev(self, found: object) -> None:
        """Refuse settings that go by dev scores where there is no dev set, or an empty one, or no choice by it."""
        if not found and self.patience:
            raise UserError("early stopping needs a development set: give --dev FILE, or the setting patience: 0")
        if not found and self.selection == "best":
            raise UserError("selection 'best' needs a development set: give --dev FILE, or the setting selection: last")
        if self.patience and self.selection != "best":
            raise UserError("patience (early stopping) needs selection 'best'")


class Settings(Training):
    """Hyper-parameters of a fine-tuning. The defaults are those of align-predict, appendix A.1.1."""

    max_length: int = setting("sub-words per input", 256, ge=8)
    examples: int | None = setting("how many of the first examples are trained on; without it: all", None, ge=1)
    restart_below: float | None = setting(
        "dev score of the last epoch below which a training failed: it starts again with half the rate, at most twice; "
        "without it: never", None, ge=0
    )  # fmt: skip

    def check_dev(self, found: object) -> None:
        super().check_dev(found)
        if not found and self.restart_below is not None:
            raise UserError("restart_below needs a development set: give --dev FILE")


class Sizes(Section):
    """Neurons are per direction. The defaults are our choice for `talk`, after the parsers that it names."""

    layers: int = setting("layers", 3, **POSITIVE)
    hidden: int = setting("neurons per layer and direction", 400, **POSITIVE)
    characters: int = setting("neurons of the character BiLSTM, and size of a character's vector", 100, **POSITIVE)
    words: int = setting("size of a word's vector", 100, **POSITIVE)
    dropout: float = setting("dropout", 0.33, **DROPOUT)


class BilstmSettings(Training):
    """Training of a BiLSTM. An epoch passes over a small set until it has `least_steps`."""

    learning_rate: float = setting("highest learning rate", 2e-3, **RATE)
    batch: int = setting("sentences per step", 16, **POSITIVE)
    epochs: int = setting("passes over the training set", 60, **POSITIVE)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.0, **SHARE)
    clip: float = setting("largest gradient norm; 0: no limit", 5.0, ge=0)
    patience: int = setting("epochs without a better dev score before stopping; 0: never stop early", 10, ge=0)
    least_steps: int = setting("steps that an epoch has at least, by further passes over a small set", 25, **POSITIVE)


class Pulling(Section):
    """What is pulled together in an adjustment."""

    pairs: int = setting("sentence pairs to sample from the pool", 30000, **POSITIVE)
    aggregation: Aggregation = setting("how sub-words make a word's vector; subword: links of word pieces", "avg")
    tokens: Tokens = setting("which tokens are pulled together", "all")


class AdjustmentSettings(Pulling):
    """Hyper-parameters of an adjustment; the defaults are the authors' (`adjust`, equation 1 and section 5.1).

    Differs from the authors' scripts: they add the losses of groups of 4 pairs, here a step is one mean over its 32
    pairs. Adam ignores the scale, so what differs is that groups with few links no longer weigh as much as others.
    """

    batch: int = setting("sentence pairs per step", 32, **POSITIVE)
    learning_rate: float = setting("learning rate after the warm-up", 5e-5, **RATE)
    betas: Betas = setting("decay rates of Adam", [0.9, 0.98], **BETAS)
    epsilon: float = setting("epsilon of Adam", 1e-9, **EPSILON)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.1, **SHARE)
    epochs: int = setting("passes over the sentence pairs", 1, **POSITIVE)
    clip: float = setting("largest gradient norm; 0: no limit", 0.0, ge=0)
    seed: int = 1
    precision: str = "fp32"


class ContinualSettings(Pulling):
    """The second loss of a fine-tuning; the defaults are the authors' (`adjust`, section 5.1).

    `alpha` weighs the alignment term alone, as in the authors' scripts, or `both` terms, as the paper prints it.
    """

    batch: int = setting("sentence pairs per step", 16, **POSITIVE)
    alpha: float = setting("weight of the auxiliary loss", 0.01, ge=0)
    alpha_scope: AlphaScope = setting("the terms of the loss that alpha weighs", "alignment")


class PretrainSettings(Section):
    """Hyper-parameters of a pretraining.

    `dropout` holds while it runs (None: the model's own); config.json keeps the model's own for later. It holds for the
    weights of attention too, unless `attention_dropout` is given. `batch` counts the blocks of a step over all
    processes. With selection `best` the weights at the lowest loss on dev texts are the result.
    """

    steps: int = setting("training steps", None, **POSITIVE)
    batch: int = setting("blocks per step", 256, **POSITIVE)
    block: int = setting("sub-words per block, which is one training example", 128, ge=8)
    line_by_line: bool = setting(
        "whether each line is a block of its own, cut if it is too long; else blocks are cut from running text", False
    )
    learning_rate: float = setting("highest learning rate", 5e-4, **RATE)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.06, **SHARE)
    schedule: Schedule = setting("what the learning rate does after the warm-up", "linear")
    weight_decay: float = setting("weight decay of AdamW", 0.01, ge=0)
    betas: Betas = setting("decay rates of Adam", [0.9, 0.98], **BETAS)
    epsilon: float = setting("epsilon of Adam", 1e-6, **EPSILON)
    clip: float = setting("largest gradient norm; 0: no limit", 1.0, ge=0)
    masking: float = setting("share of masked sub-words", 0.15, gt=0, lt=1)
    exponent: float = setting("how languages are mixed: 1 by their size, 0 all alike", 0.7, **SHARE)
    dropout: float | None = setting("dropout while pretraining; without it: the model's own", None, **DROPOUT)
    attention_dropout: float | None = setting(
        "dropout of attention while pretraining; null: as dropout", None, **DROPOUT
    )
    selection: Selection = setting("which state is kept: the last, or the best on held-out text", "last")
    dev_every: int = setting("steps between two looks at the dev loss; 0: a twentieth of all", 0, ge=0)
    seed: int = 1
    precision: str = "fp32"


class ModelShape(Section):
    """A new model. What is not given is usual for its family."""

    objective: Objective = setting("masked or causal language modelling", None)
    norm: Norm = setting("where its layers normalise", None)
    residual_scaling: bool = setting("whether a NormFormer model has residual scaling (ResScale)", None)
    layers: int = setting("layers", None, **POSITIVE)
    hidden: int = setting("neurons per layer", None, **POSITIVE)
    heads: int = setting("attention heads", None, **POSITIVE)
    intermediate: int = setting("neurons of the feed-forward part", None, **POSITIVE)
    positions: int = setting("longest sequence", None, **POSITIVE)
    initializer_range: float = setting("standard deviation of new weights", None, gt=0, le=1)
    word_range: float = setting(
        "standard deviation of new word vectors; null: as of the other weights", None, gt=0, le=1
    )


class PretrainOptions(Section):
    """What else a pretraining is told."""

    epochs: float | None = setting("passes over the texts, in place of `steps`", None, gt=0)
    tuning_dropout: float | None = setting("dropout while fine-tuning; without it: as dropout", None, **DROPOUT)
    store: Store = setting("precision of the matrices in the model's file", "fp32")


class VocabularySettings(Section):
    """A WordPiece vocabulary."""

    size: int = setting("pieces of the vocabulary, special tokens included", 30000, ge=100)
    style: Style = setting("the names of the special tokens", "bert")
    lines: int | None = setting("lines of each language that it is made from at most; without it: all", None, ge=1)


def keys_of(*kinds: type[Section], without: tuple[str, ...] = ()) -> dict[str, tuple[Any, Any]]:
    """The settings of some trainings, as keys of another class."""
    fields = {name: field for kind in kinds for name, field in kind.model_fields.items() if field.description}
    return {name: (field.annotation, field) for name, field in fields.items() if name not in without}


def part(kind: type[Section], values: dict[str, Any]) -> dict[str, Any]:
    """Those of some values that are settings of a training."""
    known = keys_of(kind)
    return {name: value for name, value in values.items() if name in known}


def checked(values: dict[str, Any], *kinds: type[Section], place: str = "--settings") -> dict[str, Any]:
    """Settings as they were given at a place, once they are known to be right; for all others the defaults hold."""
    model = create_model("Checked", __base__=Section, **keys_of(*kinds))
    if problems := list(wrong_keys(model, values, "the settings")):
        raise UserError("\n".join(f"{place}: {problem}" for problem in problems))
    return values
