"""Checkpoints of a training in progress: one safetensors file, atomic, bound to what is being trained."""

from __future__ import annotations

import json
import logging
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from crossalign.runtime.files import sweep, write_atomic

log = logging.getLogger(__name__)

_NAME = "checkpoint.safetensors"


class Checkpoints:
    """The newest checkpoint of one training. `recipe` identifies code, settings and data: others are refused."""

    def __init__(self, folder: str | Path | None, recipe: str) -> None:
        self.path = None if folder is None else Path(folder) / _NAME
        self.recipe = recipe

    def save(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
        """Replace the checkpoint. `notes` is anything that JSON can hold."""
        if self.path is None:
            return
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        text = json.dumps(notes)
        metadata = {
            "recipe": self.recipe,
            "notes": text,
            "notes_crc": str(zlib.crc32(text.encode())),
            "crc": json.dumps({name: _crc(tensor) for name, tensor in sorted(tensors.items())}),
        }
        with write_atomic(self.path, "wb") as stream:
            stream.write(save(tensors, metadata=metadata))

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and notes of the checkpoint, or None, with a message, when there is none that fits."""
        if self.path is None:
            return None
        sweep(self.path)
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                metadata = file.metadata() or {}
                recipe = metadata.get("recipe")
                if recipe != self.recipe:
                    log.warning(
                        "%s was written by recipe %s, this is recipe %s: not used, training starts over",
                        self.path, recipe, self.recipe,
                    )  # fmt: skip
                    return None
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            # A damaged place in the epoch would be a number like any other.
            if metadata["notes_crc"] != str(zlib.crc32(metadata["notes"].encode())):
                raise ValueError("checksum of the notes")
            notes = json.loads(metadata["notes"])
            crc = json.loads(metadata["crc"])
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            log.warning("%s is damaged (%s): not used, training starts over", self.path, error)
            return None
        wrong = [name for name, tensor in tensors.items() if crc.get(name) != _crc(tensor)]
        if wrong or set(crc) != set(tensors):
            log.warning("%s is damaged (checksum of %s): not used, training starts over", self.path, ", ".join(wrong))
            return None
        return tensors, notes

    def remove(self) -> None:
        """Delete the checkpoint once the result is written."""
        if self.path is not None:
            sweep(self.path)
            self.path.unlink(missing_ok=True)


def _crc(tensor: Tensor) -> int:
    return zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else np.zeros(0, np.uint8))
