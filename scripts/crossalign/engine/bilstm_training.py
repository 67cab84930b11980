"""Train a BiLSTM on a task of whole words: epochs, selection on the dev set, early stopping, checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine.batches import Stream
from crossalign.engine.bilstm import Sizes
from crossalign.engine.checkpoints import Checkpoints
from crossalign.engine.history import History
from crossalign.engine.hyperparameters import Settings, fingerprint
from crossalign.engine.lexicon import Lexicon
from crossalign.engine.saving import Saver, Saving
from crossalign.engine.schedule import learning_rates
from crossalign.engine.seeds import derive, torch_seeded
from crossalign.engine.word_model import WordModel
from crossalign.runtime.errors import UserError
from crossalign.tasks.words import WholeWords

log = logging.getLogger(__name__)


class WordTraining:
    """One training from fresh weights to the selected state. Random numbers depend on the seed and the step only.

    An epoch is one pass over the training set or, where that has fewer than `least_steps` steps, as many as needed: a
    model of this size learns nothing in a few dozen steps, and early stopping would end it there.
    """

    def __init__(
        self,
        task: WholeWords,
        lexicon: Lexicon,
        sizes: Sizes,
        train: Sequence[dict[str, Any]],
        dev: Sequence[dict[str, Any]],
        settings: Settings,
        vectors: np.ndarray | None = None,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        recipe: str = "",
        saving: Saving | None = None,
        least_steps: int = 1,
    ) -> None:
        if not train:
            raise UserError("the training set has no sentences")
        if not dev and (settings.patience or settings.selection == "best"):
            raise UserError("early stopping needs a development set: give --dev FILE or --patience 0")
        self.task, self.settings, self.dev_records = task, settings, dev
        self.device = torch.device(device)
        with torch_seeded(settings.seed, "bilstm"):
            self.model = WordModel(task, lexicon, sizes, vectors).to(self.device).train()
        self.train_store = store = self.model.store(task.examples(train, lexicon))
        self.dev_examples = task.examples(dev, lexicon)
        self.dev_store = self.model.store(self.dev_examples)
        self.stream = Stream(store, settings.batch, settings.seed)
        self.passes = -(-least_steps // len(self.stream))
        words = [lexicon.words, lexicon.characters, lexicon.given, lexicon.forms]
        known = [task.name, list(task.labels), asdict(sizes), self.passes, words]
        arrays = [store.ids, store.lengths, *(store.values[name] for name in sorted(store.values)), self.dev_store.ids]
        arrays += [] if vectors is None else [vectors]
        self.checkpoints = Checkpoints(checkpoints, fingerprint(recipe, settings, known, *arrays))
        self.epoch_steps = self.passes * len(self.stream)
        rates = (settings.learning_rate, settings.epochs * self.epoch_steps, settings.warmup, settings.schedule)
        self.rates = learning_rates(*rates)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), betas=settings.betas, eps=settings.epsilon,
            weight_decay=settings.weight_decay,
        )  # fmt: skip
        self.history = History()
        self.saver = Saver(self.checkpoints, saving, self.history)
        self.losses: list[Tensor] = []
        self.best: dict[str, Tensor] = {}

    @property
    def steps(self) -> int:
        """Steps done in the epochs so far."""
        return len(self.history.loss) * self.epoch_steps

    def run(self) -> WordModel:
        """Train, or go on from a checkpoint; the model ends in the selected state."""
        cards = [self.device] if self.device.type == "cuda" else []
        with self.saver.running(), torch.random.fork_rng(devices=cards):
            self._epochs(*self._resume())
        if self.best:
            self.model.load_state_dict(self.best)
        return self.model.eval()

    def _epochs(self, first: int, index: int) -> None:
        for epoch in range(first, self.settings.epochs):
            if self.history.out_of_patience(self.settings.patience):
                log.info("no better dev score for %d epochs: stopping", self.settings.patience)
                break
            rounds = range(epoch * self.passes, (epoch + 1) * self.passes)
            batches = [batch for number in rounds for batch in self.stream.epoch(number)]
            for position in range(index, len(batches)):
                self._step(epoch * len(batches) + position, batches[position])
                if position + 1 < len(batches):
                    self._maybe_save(epoch, position + 1)
            self._end_of_epoch(epoch)
            self._maybe_save(epoch + 1, 0)
            index = 0

    def _step(self, step: int, members: np.ndarray) -> None:
        # Seeding every step leaves nothing to remember: a run that goes on draws what it would have drawn.
        torch.manual_seed(derive(self.settings.seed, "dropout", step))
        for group in self.optimiser.param_groups:
            group["lr"] = float(self.rates[step])
        loss = self.model.loss(*self.model.batch(self.train_store, members, self.device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.settings.clip > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimiser.step()
        self.losses.append(loss.detach())

    def _end_of_epoch(self, epoch: int) -> None:
        history, metric = self.history, self.task.selection_metric
        history.loss.append(float(torch.stack(self.losses).double().mean()))
        self.losses.clear()
        if not np.isfinite(history.loss[-1]):
            raise UserError(
                f"the loss is {history.loss[-1]} in epoch {epoch + 1} (learning rate "
                f"{self.settings.learning_rate:.3g}); a smaller learning rate may help"
            )
        log.info("epoch %d: loss %.4f", epoch + 1, history.loss[-1])
        if not self.dev_records:
            return
        outputs = self.model.predict(self.dev_store, self.device)
        scores = self.task.score(self.dev_records, self.task.decode(self.dev_examples, self.dev_records, outputs))
        log.info("dev %s %.2f", metric, scores[metric])
        if history.note(scores, metric) and self.settings.selection == "best":
            self.best = {name: value.clone() for name, value in self.model.state_dict().items()}

    def _maybe_save(self, epoch: int, index: int) -> None:
        step = epoch * self.epoch_steps + index
        if not self.saver.due(step):
            return
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        if self.losses:
            tensors["losses"] = torch.stack(self.losses)
        self.saver.save(step, tensors, epoch=epoch, index=index)

    def _resume(self) -> tuple[int, int]:
        found = self.saver.resume()
        if found is None:
            return 0, 0
        tensors, notes = found
        self.losses = list(tensors.pop("losses", torch.zeros(0)).to(self.device))
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimiser": {}}
        for name, value in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = value
        self.model.load_state_dict(parts["model"])
        self.best = parts["best"]
        state = self.optimiser.state_dict()
        for name, value in parts["optimiser"].items():
            number, _, rest = name.partition(".")
            state["state"].setdefault(int(number), {})[rest] = value
        self.optimiser.load_state_dict(state)
        log.info("going on at epoch %d, batch %d", notes["epoch"] + 1, notes["index"] + 1)
        return notes["epoch"], notes["index"]
