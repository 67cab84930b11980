"""Hyper-parameters of every training: the name, type, bounds, default and meaning of each, once.

Plain dataclasses. `catalog/settings.py` makes the keys of the config from them and `add_flags` the flags of the
programs, under the same names. Every job imports this, so it needs neither torch nor pydantic.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from crossalign.runtime.errors import UserError

Schedule = Literal["linear", "constant"]
Selection = Literal["last", "best"]
Aggregation = Literal["start", "end", "avg", "subword"]
Tokens = Literal["cls", "clssep", "words", "all"]
AlphaScope = Literal["alignment", "both"]

# Bounds have the names that pydantic gives them. A title takes the place of their words in messages about the config.
POSITIVE = {"ge": 1}
SHARE = {"ge": 0, "le": 1}
DROPOUT = {"ge": 0, "lt": 1}
BETAS = {"ge": 0, "lt": 1}
RATE = {"gt": 0, "le": 1, "title": "a learning rate above 0 and at most 1; write 5.0e-5, as YAML reads 5e-5 as text"}
EPSILON = {"gt": 0, "title": "a small number above 0; write 1.0e-8"}


def setting(meaning: str, default: Any = MISSING, **bounds: Any) -> Any:
    """A hyper-parameter that has a key in the config and a flag."""
    return field(default=default, metadata={"description": meaning, **bounds})


class Checked:
    """Refuses values that are out of bounds, in the words of the config's check."""

    def __post_init__(self) -> None:
        for each, kind in described(type(self)):
            value = getattr(self, each.name)
            if not _allowed(value, kind, each.metadata):
                raise UserError(f"--{flag(each.name)} {value}: expected {in_words(kind, each.metadata)}")


@dataclass
class Training(Checked):
    """What fine-tuning of a transformer and training of a BiLSTM share."""

    learning_rate: float = setting("highest learning rate", 5e-5, **RATE)
    batch: int = setting("examples per step", 16, **POSITIVE)
    epochs: int = setting("passes over the training set", 6, **POSITIVE)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.1, **SHARE)
    schedule: Schedule = setting("what the learning rate does after the warm-up", "linear")
    betas: tuple[float, float] = setting("decay rates of Adam", (0.9, 0.99), **BETAS)
    epsilon: float = setting("epsilon of Adam", 1e-8, **EPSILON)
    weight_decay: float = setting("weight decay of AdamW", 0.0, ge=0)
    clip: float = setting("largest gradient norm; 0: no limit", 1.0, ge=0)
    selection: Selection = setting("which state of a training is kept: the last, or the best on the dev set", "best")
    patience: int = setting("epochs without a better dev score before stopping; 0: never stop early", 0, ge=0)
    seed: int = 1
    precision: str = "fp32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience and self.selection != "best":
            raise UserError("patience (early stopping) needs selection 'best'")


@dataclass
class Settings(Training):
    """Hyper-parameters of a fine-tuning. The defaults are those of align-predict, appendix A.1.1."""

    max_length: int = setting("sub-words per input", 256, ge=8)
    examples: int | None = setting("how many of the first examples are trained on; without it: all", None, ge=1)
    restart_below: float | None = setting(
        "dev score of the last epoch below which a training failed: it starts again with half the rate, at most twice; "
        "without it: never", None, ge=0
    )  # fmt: skip

    def check_dev(self, found: object) -> None:
        """Refuse settings that go by dev scores where there is no dev set, or an empty one."""
        if not found and self.selection == "best":
            raise UserError("selection 'best' needs a development set: give --dev FILE or --selection last")
        if not found and self.restart_below is not None:
            raise UserError("restart_below needs a development set: give --dev FILE")


@dataclass(frozen=True)
class Sizes(Checked):
    """Neurons are per direction. The defaults are our choice for `talk`, after the parsers that it names."""

    layers: int = setting("layers", 3, **POSITIVE)
    hidden: int = setting("neurons per layer and direction", 400, **POSITIVE)
    characters: int = setting("neurons of the character BiLSTM, and size of a character's vector", 100, **POSITIVE)
    words: int = setting("size of a word's vector", 100, **POSITIVE)
    dropout: float = setting("dropout", 0.33, **DROPOUT)


@dataclass
class BilstmSettings(Training):
    """Training of a BiLSTM. An epoch passes over a small set until it has `least_steps`."""

    learning_rate: float = setting("highest learning rate", 2e-3, **RATE)
    batch: int = setting("sentences per step", 16, **POSITIVE)
    epochs: int = setting("passes over the training set", 60, **POSITIVE)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.0, **SHARE)
    clip: float = setting("largest gradient norm; 0: no limit", 5.0, ge=0)
    patience: int = setting("epochs without a better dev score before stopping; 0: never stop early", 10, ge=0)
    least_steps: int = setting("steps that an epoch has at least, by further passes over a small set", 25, **POSITIVE)


@dataclass
class Pulling(Checked):
    """What is pulled together in an adjustment."""

    pairs: int = setting("sentence pairs to sample from the pool", 30000, **POSITIVE)
    aggregation: Aggregation = setting("how sub-words make a word's vector; subword: links of word pieces", "avg")
    tokens: Tokens = setting("which tokens are pulled together", "all")


@dataclass
class AdjustmentSettings(Pulling):
    """Hyper-parameters of an adjustment; the defaults are the authors' (`adjust`, equation 1 and section 5.1).

    Differs from the authors' scripts: they add the losses of groups of 4 pairs, here a step is one mean over its 32
    pairs. Adam ignores the scale, so what differs is that groups with few links no longer weigh as much as others.
    """

    batch: int = setting("sentence pairs per step", 32, **POSITIVE)
    learning_rate: float = setting("learning rate after the warm-up", 5e-5, **RATE)
    betas: tuple[float, float] = setting("decay rates of Adam", (0.9, 0.98), **BETAS)
    epsilon: float = setting("epsilon of Adam", 1e-9, **EPSILON)
    warmup: float = setting("share of the steps in which the learning rate rises", 0.1, **SHARE)
    epochs: int = setting("passes over the sentence pairs", 1, **POSITIVE)
    clip: float = setting("largest gradient norm; 0: no limit", 0.0, ge=0)
    seed: int = 1
    precision: str = "fp32"


@dataclass
class ContinualSettings(Pulling):
    """The second loss of a fine-tuning; the defaults are the authors' (`adjust`, section 5.1).

    `alpha` weighs the alignment term alone, as in the authors' scripts, or `both` terms, as the paper prints it.
    """

    batch: int = setting("sentence pairs per step", 16, **POSITIVE)
    alpha: float = setting("weight of the auxiliary loss", 0.01, ge=0)
    alpha_scope: AlphaScope = setting("the terms of the loss that alpha weighs", "alignment")


def described(settings: type) -> Iterator[tuple[Field, Any]]:
    """The fields with a meaning, each with its type."""
    kinds = typing.get_type_hints(settings)
    return ((each, kinds[each.name]) for each in fields(settings) if each.metadata)


def flag(name: str) -> str:
    return name.replace("_", "-")


def plain(kind: Any) -> Any:
    """The type without `None`."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return next(one for one in typing.get_args(kind) if one is not types.NoneType)
    return kind


def _allowed(value: Any, kind: Any, bounds: Mapping[str, Any]) -> bool:
    if value is None:
        return kind is not plain(kind)
    kind = plain(kind)
    if typing.get_origin(kind) is Literal:
        return value in typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return len(value) == 2 and all(_allowed(one, float, bounds) for one in value)
    return (
        bounds.get("ge", value) <= value <= bounds.get("le", value)
        and ("gt" not in bounds or value > bounds["gt"])
        and ("lt" not in bounds or value < bounds["lt"])
    )


def in_words(kind: Any, bounds: Mapping[str, Any]) -> str:
    """The values that are allowed: `a whole number from 1`, `linear, constant`."""
    kind = plain(kind)
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(typing.get_args(kind))}"
    if typing.get_origin(kind) is tuple:
        return f"two numbers, each{limits(bounds)}"
    return f"{'a whole number' if kind is int else 'a number'}{limits(bounds)}"


def limits(bounds: Mapping[str, Any]) -> str:
    """` from 1`, ` above 0 and at most 1`."""
    if {"ge", "le"} <= bounds.keys():
        return f" from {bounds['ge']} to {bounds['le']}"
    names = {"ge": "from", "gt": "above", "le": "at most", "lt": "below"}
    told = [f"{word} {bounds[key]}" for key, word in names.items() if key in bounds]
    return f" {' and '.join(told)}" if told else ""


def add_flags(parser: argparse._ActionsContainer, settings: type, prefix: str = "") -> None:
    """A flag for each setting. What is not given is left to the library, which has the default."""
    for each, kind in described(settings):
        kind, name = plain(kind), f"--{flag(prefix + each.name)}"
        text = each.metadata["description"]
        if kind is bool:
            parser.add_argument(name, action="store_true", default=None, help=text)
            continue
        pair = typing.get_origin(kind) is tuple
        reader = float if pair else str if typing.get_origin(kind) is Literal else kind
        default = "" if each.default in (None, MISSING) else f"; default: {each.default}"
        text = f"{text} ({in_words(kind, each.metadata)}{default})"
        parser.add_argument(name, type=reader, nargs=2 if pair else None, help=text.replace("%", "%%"))


def given(args: argparse.Namespace, settings: type, prefix: str = "") -> dict[str, Any]:
    """The settings that the command line names."""
    found = {each.name: getattr(args, prefix + each.name) for each, _ in described(settings)}
    pairs = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    return {name: value for name, value in (found | pairs).items() if value is not None}


def fingerprint(recipe: str, settings: Any, *more: Any) -> str:
    """A short hash of everything that decides the outcome; `more` is JSON or arrays.

    A checkpoint with another one must not be continued.
    """
    import numpy as np

    digest = hashlib.sha256(json.dumps([recipe, asdict(settings)], sort_keys=True).encode())
    for item in more:
        if isinstance(item, np.ndarray):
            digest.update(str((item.dtype, item.shape)).encode())
            digest.update(np.ascontiguousarray(item).tobytes())
        else:
            digest.update(json.dumps(item, sort_keys=True).encode())
    return f"{recipe}-{digest.hexdigest()[:16]}"


def folder_identity(folder: str | Path) -> dict[str, Any]:
    """Sizes and the head of each weight file of a model folder: cheap, and different for different models.

    The head of a safetensors file holds names and offsets only, so a slice of the data belongs to it too.
    """
    identity = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        size = path.stat().st_size
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            for share in range(16):
                stream.seek(size * share // 16)
                digest.update(stream.read(4096))
        identity[path.name] = [size, digest.hexdigest()[:16]]
    return identity
