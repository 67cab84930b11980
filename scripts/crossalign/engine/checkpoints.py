"""Trainings that may stop at any time: checkpoints, when they are written, and what SIGTERM does."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from crossalign.engine.weights import write_tensors
from crossalign.runtime.files import sweep

log = logging.getLogger(__name__)

# Exit status that asks the scheduler to start the job again (EX_TEMPFAIL).
REQUEUE = 75


def _wait() -> None:
    """Until the GPU has done what it was given."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _crc(notes: str, tensors: dict[str, Tensor]) -> str:
    """A checksum of all that a checkpoint holds: a damaged step would be a number like any other."""
    crc = zlib.crc32(notes.encode())
    for name, tensor in sorted(tensors.items()):
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy(), crc) if tensor.numel() else crc
    return str(crc)


class InterruptedTraining(Exception):
    """The scheduler wants the machine back."""


@contextlib.contextmanager
def requeued() -> Iterator[None]:
    """End the program with status 75 when the training within is interrupted."""
    try:
        yield
    except InterruptedTraining as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(REQUEUE)


@dataclass
class Saving:
    """When to write checkpoints: after so many seconds or steps, and always at SIGTERM.

    `rehearse`: the steps after which a training ends that is only measured.
    """

    seconds: float = 300.0
    steps: int | None = None
    rehearse: int | None = None


@dataclass
class Progress:
    """How far a training is; a checkpoint notes it. Subclasses add what JSON can hold."""

    step: int = 0
    seconds: float = 0.0
    resumed: int = 0
    # What a rehearsal left out, and what that would have taken.
    rehearsal: dict[str, float] | None = None


class Checkpoints:
    """The checkpoint of one training, a safetensors file that is replaced atomically: when, and what SIGTERM does.

    `identity` stands for code, settings and data: the checkpoint of another training is refused. `progress` is noted
    in it, and is again what it was when the training goes on.
    """

    def __init__(
        self, folder: str | Path | None, identity: str, saving: Saving | None = None, progress: Progress | None = None
    ) -> None:
        self.path = None if folder is None else Path(folder) / "checkpoint.safetensors"
        self.identity, self.saving, self.progress = identity, saving or Saving(), progress or Progress()
        self.stop_requested = False
        self._started = self._last = time.monotonic()

    # ---- while the training runs --------------------------------------------------------------------------------

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

    def steps(self, total: int) -> range:
        """The steps that are left of a training; of a rehearsed one the first few."""
        most = self.saving.rehearse
        # Its steps are done twice: a training that would be over by then is done as it is.
        self.cut = most is not None and 2 * most < total
        return range(self.progress.step, most if self.cut else total)

    def after_step(self, state: Callable[[], dict[str, Tensor]]) -> None:
        """Write a checkpoint of the `state` if one is due; end the training if SIGTERM came."""
        if self.due():
            self.save(state())
            self._last = time.monotonic()
        if self.stop_requested:
            where = self.path or "nowhere: no folder for checkpoints was given"
            raise InterruptedTraining(f"stopped by SIGTERM at step {self.progress.step}; saved to {where}")

    def due(self) -> bool:
        """Whether a checkpoint is to be written after this step."""
        if self.stop_requested:
            return True
        if self.saving.steps is not None:
            return self.progress.step % self.saving.steps == 0
        return time.monotonic() - self._last >= self.saving.seconds

    def rehearse(self, total: int, step: Callable[[int], None], score: Callable[[], Any], scores: int) -> None:
        """Measure the steps and the scoring of a training of `total` steps, of whose scorings `scores` are left.

        All of it has run before, so nothing is recorded or warmed up. What it changes does not matter any more.
        """
        _wait()
        begun = time.monotonic()
        done = self.progress.step
        for number in range(done):
            step(number)
        _wait()
        stepped = time.monotonic()
        score()
        _wait()
        scored = time.monotonic()
        self.progress.rehearsal = {
            "planned_steps": total, "steps_left": total - 2 * done, "step_seconds": (stepped - begun) / done,
            "scores_left": max(0, scores - 1), "score_seconds": scored - stepped,
        }  # fmt: skip
        log.info("rehearsal: %d of %d steps, %.2f ms each", done, total, 1000 * (stepped - begun) / done)

    # ---- the file -----------------------------------------------------------------------------------------------

    def save(self, tensors: dict[str, Tensor]) -> None:
        """Replace the checkpoint."""
        if self.path is None:
            return
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        seconds = self.progress.seconds + time.monotonic() - self._started
        notes = json.dumps(vars(self.progress) | {"seconds": seconds})
        crc = _crc(notes, tensors)
        write_tensors(self.path, tensors, {"identity": self.identity, "notes": notes, "crc": crc})

    def resume(self) -> dict[str, Tensor] | None:
        """The tensors of the checkpoint; `progress` is then what it was. None, with a message, if none fits."""
        if self.path is None:
            return None
        sweep(self.path)
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("identity") != self.identity:
                    log.warning(
                        "%s belongs to training %s (other code, settings or data), this is %s: not used, training "
                        "starts over", self.path, metadata.get("identity"), self.identity,
                    )  # fmt: skip
                    return None
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            if metadata["crc"] != _crc(metadata["notes"], tensors):
                raise ValueError("wrong checksum")
            vars(self.progress).update(json.loads(metadata["notes"]))
        except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
            log.warning("%s is damaged (%s): not used, training starts over", self.path, error)
            return None
        self.progress.resumed += 1
        return tensors

    def remove(self) -> None:
        """Delete the checkpoint once the result is written."""
        if self.path is not None:
            sweep(self.path)
            self.path.unlink(missing_ok=True)
