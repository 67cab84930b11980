"""Trainings that may be stopped at any time: when a checkpoint is written, and what SIGTERM does."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from crossalign.engine.checkpoints import Checkpoints

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
