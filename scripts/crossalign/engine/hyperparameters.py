"""What identifies a training: settings, data, model. A checkpoint of anything else must not be continued."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crossalign.runtime.errors import UserError


@dataclass
class Settings:
    """Hyper-parameters of a fine-tuning. The defaults are those of align-predict, appendix A.1.1."""

    learning_rate: float = 5e-5
    batch: int = 16
    epochs: int = 6
    warmup: float = 0.1
    decay: str = "linear"
    max_length: int = 256
    selection: str = "best"
    patience: int = 0
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.99
    eps: float = 1e-8
    clip: float = 1.0
    seed: int = 1
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.learning_rate <= 0:
            raise UserError(f"learning rate {self.learning_rate} is not positive")
        if self.epochs < 1:
            raise UserError(f"{self.epochs} epochs: at least 1 is needed")
        if self.batch < 1:
            raise UserError(f"batch size {self.batch} is not positive")
        if self.selection not in ("last", "best"):
            raise UserError(f"selection '{self.selection}' is not one of last, best")
        if self.patience and self.selection != "best":
            raise UserError("patience (early stopping) needs selection 'best'")


def fingerprint(recipe: str, settings: Settings, *more: Any) -> str:
    """A short hash of everything that decides the outcome; `more` is JSON or arrays."""
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
