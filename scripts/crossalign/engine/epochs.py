"""Training in epochs: dev scores, selection of the best epoch, early stopping, checkpoints."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from crossalign.engine.checkpoints import Checkpoints, Progress
from crossalign.engine.hyperparameters import Settings
from crossalign.runtime.meter import metered

log = logging.getLogger(__name__)


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


class EpochTraining:
    """The loop over steps and epochs. Subclasses have the rest:

    `step(number)` trains on one batch. `epoch_loss(epoch)` is the mean loss of the epoch that just ended; it raises a
    UserError if that is not a number. `predict_dev()` gives outputs for the dev examples. `keep_best()` copies the
    weights. `state()` is everything that decides how training goes on, `load_state(tensors)` goes on from there.
    """

    task: Any
    settings: Settings
    history: History
    checkpoints: Checkpoints
    epoch_steps: int
    dev_records: Any
    dev_examples: Any

    def train(self) -> None:
        """Train, or go on from a checkpoint, to the last epoch or until patience runs out."""
        settings, history = self.settings, self.history
        tensors = self.checkpoints.resume()
        if tensors is not None:
            self.load_state(tensors)
            epoch, index = divmod(history.step, self.epoch_steps)
            log.info("going on at epoch %d, batch %d", epoch + 1, index + 1)
        total = settings.epochs * self.epoch_steps
        for step in metered(self.checkpoints.steps(total)):
            epoch, index = divmod(step, self.epoch_steps)
            if index == 0 and history.out_of_patience(settings.patience):
                log.info("no better dev score for %d epochs: stopping", settings.patience)
                break
            self.step(step)
            history.step = step + 1
            if index + 1 == self.epoch_steps:
                self._end_epoch(epoch)
            self.checkpoints.after_step(self.state)

        if self.checkpoints.cut:
            epoch, index = divmod(history.step, self.epoch_steps)
            if index:
                self._end_epoch(epoch)
            score = self._dev_scores if self.dev_records else lambda: None
            self.checkpoints.rehearse(total, self.step, score, settings.epochs - len(history.dev))

    def _end_epoch(self, epoch: int) -> None:
        self.history.loss.append(self.epoch_loss(epoch))
        log.info("epoch %d: loss %.4f", epoch + 1, self.history.loss[-1])
        self._score()

    def _score(self) -> None:
        if not self.dev_records:
            return
        scores, metric = self._dev_scores(), self.task.metric
        log.info("dev %s %.2f", metric, scores[metric])
        if self.history.note(scores, metric) and self.settings.selection == "best":
            self.keep_best()

    def _dev_scores(self) -> dict[str, float]:
        predictions = self.task.decode(self.dev_examples, self.dev_records, self.predict_dev())
        return self.task.score(self.dev_records, predictions)
