"""Hyper-parameters of a pretraining, the shape of a new model, and a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crossalign.engine.hyperparameters import (
    BETAS,
    DROPOUT,
    EPSILON,
    POSITIVE,
    RATE,
    SHARE,
    Checked,
    Schedule,
    Selection,
    setting,
)  # fmt: skip

Objective = Literal["mlm", "clm"]
Norm = Literal["post", "pre", "normformer"]
Style = Literal["bert", "xlm-roberta", "xglm"]
Store = Literal["fp32", "bf16"]


@dataclass
class PretrainSettings(Checked):
    """Hyper-parameters of a pretraining.

    `dropout` holds while it runs (None: the model's own); config.json keeps the model's own for later. It holds for the
    weights of attention too, unless `attention_dropout` is given. `batch` counts the blocks of a step over all
    processes. With selection `best` the weights at the lowest loss on dev texts are the result.
    """

    steps: int = setting("training steps", **POSITIVE)
    batch: int = setting("blocks per step", 256, **POSITIVE)
    block: int = setting("sub-words per block, which is one training example", 128, ge=8)
    line_by_line: bool = setting(
        "whether each line is a block of its own, cut if it is too long; else blocks are cut from running text", False
    )
    learning_rate: float = setting("highest learning rate", 5e-4, **RATE)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.06, **SHARE)
    schedule: Schedule = setting("what the learning rate does after the warm-up", "linear")
    weight_decay: float = setting("weight decay of AdamW", 0.01, ge=0)
    betas: tuple[float, float] = setting("decay rates of Adam", (0.9, 0.98), **BETAS)
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


@dataclass
class ModelShape(Checked):
    """A new model. What is not given is usual for its family."""

    objective: Objective | None = setting("masked or causal language modelling", None)
    norm: Norm | None = setting("where its layers normalise", None)
    residual_scaling: bool | None = setting("whether a NormFormer model has residual scaling (ResScale)", None)
    layers: int | None = setting("layers", None, **POSITIVE)
    hidden: int | None = setting("neurons per layer", None, **POSITIVE)
    heads: int | None = setting("attention heads", None, **POSITIVE)
    intermediate: int | None = setting("neurons of the feed-forward part", None, **POSITIVE)
    positions: int | None = setting("longest sequence", None, **POSITIVE)
    initializer_range: float | None = setting("standard deviation of new weights", None, gt=0, le=1)
    word_range: float | None = setting(
        "standard deviation of new word vectors; null: as of the other weights", None, gt=0, le=1
    )


@dataclass
class PretrainOptions(Checked):
    """What else a pretraining is told."""

    epochs: float | None = setting("passes over the texts, in place of `steps`", None, gt=0)
    tuning_dropout: float | None = setting("dropout while fine-tuning; without it: as dropout", None, **DROPOUT)
    store: Store = setting("precision of the matrices in the model's file", "fp32")


@dataclass
class VocabularySettings(Checked):
    """A WordPiece vocabulary."""

    size: int = setting("pieces of the vocabulary, special tokens included", 30000, ge=100)
    style: Style = setting("the names of the special tokens", "bert")
    lines: int | None = setting("lines of each language that it is made from at most; without it: all", None, ge=1)
