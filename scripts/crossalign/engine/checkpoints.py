"""Trainings that may stop at any time: checkpoints, when they are written, what SIGTERM does, and the epochs so far."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
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


# Exit status that asks the scheduler to start the job again (EX_TEMPFAIL).
REQUEUE = 75


class InterruptedTraining(Exception):
    """The scheduler wants the machine back."""


@contextlib.contextmanager
def requeued(tell: bool = True) -> Iterator[None]:
    """End the program with status 75 when the training within is interrupted."""
    try:
        yield
    except InterruptedTraining as interruption:
        if tell:
            print(interruption, file=sys.stderr)
        sys.exit(REQUEUE)


@dataclass
class Saving:
    """When to write checkpoints: after so many seconds or steps, and always at SIGTERM."""

    seconds: float = 300.0
    steps: int | None = None


class Saver:
    """Writes the checkpoints of a training while it runs, and finds the one to go on from.

    `progress` is the training's own account, a dataclass that JSON can hold; a checkpoint notes it. The saver keeps two
    of its fields: `seconds` of training and how often it `resumed`.
    """

    def __init__(self, checkpoints: Checkpoints, saving: Saving | None, progress: Any) -> None:
        self.checkpoints, self.saving, self.progress = checkpoints, saving or Saving(), progress
        self.stop_requested = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The time in which the training runs: it counts, and SIGTERM waits for the next step to end."""
        previous = signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop_requested", True))
        self._started = self._last = time.monotonic()
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, previous)
        self.progress.seconds += time.monotonic() - self._started

    def resume(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and notes of the checkpoint, if there is one that fits; `progress` is then what it was."""
        found = self.checkpoints.load()
        if found is not None:
            for name in vars(self.progress):
                setattr(self.progress, name, found[1][name])
            self.progress.resumed += 1
        return found

    def due(self, step: int) -> bool:
        """Whether a checkpoint is to be written after this step."""
        if self.stop_requested:
            return True
        if self.saving.steps is not None:
            return step % self.saving.steps == 0
        return time.monotonic() - self._last >= self.saving.seconds

    def save(self, step: int, tensors: dict[str, Tensor], **place: Any) -> None:
        """Write a checkpoint, which notes `place` too, and end the training if that was asked for."""
        self.write(tensors, **place)
        self.stop(step)

    def write(self, tensors: dict[str, Tensor], **place: Any) -> None:
        """Write a checkpoint and go on."""
        seconds = self.progress.seconds + time.monotonic() - self._started
        self.checkpoints.save(tensors, {**place, **vars(self.progress), "seconds": seconds})
        self._last = time.monotonic()

    def stop(self, step: int) -> None:
        """End the training if that was asked for."""
        if self.stop_requested:
            where = self.checkpoints.path or "nowhere: no folder for checkpoints was given"
            raise InterruptedTraining(f"stopped by SIGTERM at step {step}; saved to {where}")


@dataclass
class History:
    """What happened, epoch by epoch."""

    loss: list[float] = field(default_factory=list)
    dev: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None
    seconds: float = 0.0
    resumed: int = 0

    def note(self, scores: dict[str, float], metric: str) -> bool:
        """Add the dev scores of an epoch; whether it is the best so far, the first of equals."""
        self.dev.append(scores)
        better = self.best_epoch is None or scores[metric] > self.dev[self.best_epoch][metric]
        if better:
            self.best_epoch = len(self.dev) - 1
        return better

    def out_of_patience(self, patience: int) -> bool:
        """Whether the last `patience` epochs (0: any number) brought nothing better."""
        return patience > 0 and self.best_epoch is not None and len(self.dev) - 1 - self.best_epoch >= patience

    def course(self) -> dict[str, Any]:
        """For training.json; epochs count from 1 there."""
        return {
            "loss": [round(value, 6) for value in self.loss],
            "dev": [{name: round(value, 4) for name, value in scores.items()} for scores in self.dev],
            "best_epoch": None if self.best_epoch is None else self.best_epoch + 1,
        }
