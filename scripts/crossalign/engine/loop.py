"""The loop of every training: step after step, losses that must be numbers, dev scores, checkpoints, the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from crossalign.engine.checkpoints import Checkpoints, Progress
from crossalign.engine.seeds import derive
from crossalign.engine.steps import Engine
from crossalign.runtime.errors import UserError
from crossalign.runtime.meter import metered

log = logging.getLogger(__name__)


class Loop:
    """One training of `total` steps. Subclasses make what has no value here, and say what each step trains on."""

    settings: Any
    engine: Engine
    checkpoints: Checkpoints
    progress: Progress
    total: int
    # The weights to end with, where these are not the last ones.
    best: Tensor | None = None

    def batches(self, number: int) -> Sequence[np.ndarray]:
        """The examples of a step, for each part of the objective."""
        raise NotImplementedError

    def run(self) -> Any:
        """Train, or go on from a checkpoint. The modules end with the selected weights, in fp32."""
        with self.checkpoints.running():
            self.train()
        self.finish()

    def train(self) -> None:
        """All steps that are left."""
        progress, checkpoints = self.progress, self.checkpoints
        tensors = checkpoints.resume()
        if tensors is None:
            self.before()
        else:
            self.load_state(tensors)
            log.info("going on at step %d of %d", progress.step + 1, self.total)
        steps = checkpoints.steps(self.total)
        for step in metered(steps):
            if self.enough():
                break
            self.step(step)
            progress.step = step + 1
            self.after(last=progress.step == steps.stop)
            checkpoints.after_step(self.state)
        self.losses()
        if checkpoints.cut:
            checkpoints.rehearse(self.total, self.step, self.score, self.scores_left)

    def step(self, number: int) -> None:
        """Train on one batch."""
        self.engine.step(*self.batches(number))

    # ---- what some trainings do besides -------------------------------------------------------------------------

    def before(self) -> None:
        """Before the first step."""
        self.engine.seed_dropout(derive(self.settings.seed, "dropout"))

    def after(self, last: bool) -> None:
        """After each step."""

    def enough(self) -> bool:
        """Whether the training ends before its last step."""
        return False

    def score(self) -> Any:
        """What the dev set says now."""

    @property
    def scores_left(self) -> int:
        """How often a whole training would still score."""
        return 0

    def keep_best(self) -> None:
        """Keep the weights as they are now, to end with them."""
        self.best = self.engine.arena.master.clone()

    def finish(self) -> None:
        """Give the modules the weights to end with, in memory of their own."""
        if self.best is not None:
            self.engine.arena.master.copy_(self.best)
        self.engine.arena.detach()

    # ---- state and losses ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how training goes on."""
        self.losses()
        return self.engine.state() | ({} if self.best is None else {"best": self.best})

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from a `state()`."""
        self.best = tensors.pop("best").to(self.engine.device) if "best" in tensors else None
        self.engine.load_state(tensors)

    def losses(self, first: int = 0) -> np.ndarray:
        """The losses of the steps from `first` on; a UserError if one is not a number."""
        losses = self.engine.losses[first : self.progress.step].double().cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            step = first + int(bad[0])
            raise UserError(
                f"the loss is {losses[bad[0]]} at step {step + 1} ({self.place(step)}learning rate "
                f"{float(self.engine.numbers[step, 0]):.3g}); a smaller learning rate, a longer warm-up or "
                "--precision fp32 may help"
            )
        return losses

    def place(self, step: int) -> str:
        """What else is told of a step whose loss is no number."""
        return ""

    def curve(self, points: int, digits: int) -> list[list[float]]:
        """The loss: [step, mean since the point before]."""
        losses = self.losses()
        parts = np.array_split(np.arange(len(losses)), min(points, len(losses)))
        return [[int(part[-1]) + 1, round(float(losses[part].mean()), digits)] for part in parts]


@dataclass
class History(Progress):
    """What happened, epoch by epoch."""

    loss: list[float] = field(default_factory=list)
    dev: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None

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


class EpochLoop(Loop):
    """A training in epochs of `epoch_steps`: after each a score on the dev set, by which it may be chosen, or stop.

    `predict_dev()` gives outputs for the dev examples.
    """

    task: Any
    progress: History
    epoch_steps: int
    dev_records: Any
    dev_examples: Any

    def enough(self) -> bool:
        patience, begins = self.settings.patience, self.progress.step % self.epoch_steps == 0
        if stop := begins and self.progress.out_of_patience(patience):
            log.info("no better dev score for %d epochs: stopping", patience)
        return stop

    def after(self, last: bool) -> None:
        # A rehearsal ends within an epoch, which counts as one.
        if not last and self.progress.step % self.epoch_steps:
            return
        epoch = (self.progress.step - 1) // self.epoch_steps
        self.progress.loss.append(self.epoch_loss(epoch))
        log.info("epoch %d: loss %.4f", epoch + 1, self.progress.loss[-1])
        if not self.dev_records:
            return
        scores, metric = self.score(), self.task.metric
        log.info("dev %s %.2f", metric, scores[metric])
        if self.progress.note(scores, metric) and self.settings.selection == "best":
            self.keep_best()

    def epoch_loss(self, epoch: int) -> float:
        """The mean loss of an epoch so far."""
        return float(self.losses(epoch * self.epoch_steps).mean())

    def score(self) -> dict[str, float] | None:
        if not self.dev_records:
            return None
        predictions = self.task.decode(self.dev_examples, self.dev_records, self.predict_dev())
        return self.task.score(self.dev_records, predictions)

    @property
    def scores_left(self) -> int:
        return self.settings.epochs - len(self.progress.dev)
