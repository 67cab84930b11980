"""What happened in the epochs of a training, which of them was the best, and when there is no hope of a better one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
