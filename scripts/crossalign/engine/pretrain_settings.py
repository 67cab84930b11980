"""Hyper-parameters of a pretraining."""

from __future__ import annotations

from dataclasses import dataclass

from crossalign.runtime.errors import UserError


@dataclass
class PretrainSettings:
    """Hyper-parameters of a pretraining.

    `dropout` holds while it runs (None: the model's own); config.json keeps the model's own for later. It holds for the
    weights of attention too, unless `attention_dropout` is given.
    `batch` counts the blocks of a step over all processes. The loss on dev texts is measured after every `dev_every`
    steps (0: a twentieth of them); with selection `best` the weights of its lowest point are the result.
    """

    steps: int
    batch: int = 256
    block: int = 128
    learning_rate: float = 5e-4
    warmup: float = 0.06
    decay: str = "linear"
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-6
    clip: float = 1.0
    hidden_share: float = 0.15
    exponent: float = 0.7
    dropout: float | None = None
    attention_dropout: float | None = None
    dev_every: int = 0
    selection: str = "last"
    seed: int = 1
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 1), ("block", 8), ("dev_every", 0)):
            if getattr(self, name) < least:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least {least} is needed")
        if self.learning_rate <= 0:
            raise UserError(f"learning rate {self.learning_rate} is not positive")
        for name in ("dropout", "attention_dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise UserError(f"{name.replace('_', ' ')} {value} is not between 0 and 1")
        if self.eps <= 0:
            raise UserError(f"epsilon {self.eps} is not positive")
        if self.selection not in ("last", "best"):
            raise UserError(f"--selection {self.selection} is not one of last, best")
