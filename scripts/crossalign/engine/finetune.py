"""Fine-tune an encoder with a task head: epochs, model selection, checkpoints, an optional second loss."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.arena import AdamW
from crossalign.engine.batches import Stream
from crossalign.engine.checkpoints import Checkpoints
from crossalign.engine.encoder import Encoder, slice_vocabulary
from crossalign.engine.history import History
from crossalign.engine.huggingface import adopt_pooler
from crossalign.engine.hyperparameters import Settings, fingerprint
from crossalign.engine.parts import Loss, Part
from crossalign.engine.predict import TaskModel, make_store, predict_all
from crossalign.engine.random_init import random_init
from crossalign.engine.saving import Saver, Saving
from crossalign.engine.schedule import learning_rates
from crossalign.engine.seeds import derive, torch_seeded
from crossalign.engine.steps import Engine
from crossalign.runtime.errors import UserError

log = logging.getLogger(__name__)


@dataclass
class Auxiliary:
    """A second loss on its own batches, one of them at every step: loss(encode, batch), times `weight`.

    `encode(reference)` runs the frozen `reference` encoder, an encoder with the same vocabulary, on the same batch.
    """

    batches: Stream
    loss: Loss
    weight: float
    reference: Encoder | None = None


class FineTuning:
    """One fine-tuning from the pretrained weights to the selected state."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Any,
        task: Any,
        train: Sequence[dict[str, Any]],
        dev: Sequence[dict[str, Any]],
        settings: Settings,
        init: str = "ref",
        device: torch.device | str = "cpu",
        checkpoints: str | None = None,
        recipe: str = "",
        auxiliary: Auxiliary | None = None,
        saving: Saving | None = None,
        identity: Any = None,
        capture: bool | None = None,
    ) -> None:
        self.task, self.settings, self.dev_records = task, settings, dev
        self.device, self.auxiliary = torch.device(device), auxiliary
        random_init(encoder, init, settings.seed)
        with torch_seeded(settings.seed, "head"):
            head = task.make_head(encoder.config.hidden, encoder.config.hidden_dropout)
        if init != "random-all":
            adopt_pooler(head, encoder)
        length = min(settings.max_length, encoder.config.max_length)
        self.train_store = make_store(encoder, task.examples(train, tokenizer, length, training=True), task.fields)
        self.dev_examples = task.examples(dev, tokenizer, length) if dev else []
        self.dev_store = make_store(encoder, self.dev_examples, task.fields)
        if len(self.train_store) == 0:
            raise UserError("the training set has no examples")
        if settings.selection == "best" and len(self.dev_store) == 0:
            raise UserError("selection 'best' needs a development set; give --dev or use --selection last")
        store = self.train_store
        labels = [store.values[name] for name in sorted(store.values)]
        known = [init, task.name, list(task.labels), identity]
        mark = fingerprint(recipe, settings, known, store.ids, store.lengths, *labels, self.dev_store.ids)
        self.checkpoints = Checkpoints(checkpoints, mark)
        self._slice(encoder)
        self.model = TaskModel(encoder, head).to(self.device).train()
        self.stream = Stream(self.train_store, settings.batch, settings.seed)
        self.engine = self._make_engine(capture)
        self.history = History()
        self.saver = Saver(self.checkpoints, saving, self.history)
        self.best: Tensor | None = None

    def _slice(self, encoder: Encoder) -> None:
        """Train only the embedding rows that occur. With weight decay all rows change, so all are kept."""
        stores = [self.train_store, self.dev_store]
        if self.auxiliary is not None:
            stores.append(self.auxiliary.batches.store)
        if self.settings.weight_decay > 0:
            return
        used = np.unique(np.concatenate([store.ids for store in stores]))
        mapping = slice_vocabulary(encoder, torch.from_numpy(used))
        for store in stores:
            store.remap(mapping.numpy())
        if self.auxiliary is not None and self.auxiliary.reference is not None:
            slice_vocabulary(self.auxiliary.reference, torch.from_numpy(used))

    def _make_engine(self, capture: bool | None) -> Engine:
        settings, task, head = self.settings, self.task, self.model.head
        parts = [Part(self.train_store, lambda encode, batch: task.loss(head, encode(), batch), settings.batch)]
        if self.auxiliary is not None:
            stream, alone = self.auxiliary.batches, self.auxiliary.reference is not None
            parts.append(Part(stream.store, self.auxiliary.loss, stream.batch_size, self.auxiliary.weight, alone))
            if alone:
                # The reference runs like the trained encoder does, but without dropout and gradients.
                TaskModel(self.auxiliary.reference, torch.nn.Identity()).place(self.device, settings.precision)
                self.auxiliary.reference.requires_grad_(False)
        steps = settings.epochs * len(self.stream)
        rates = learning_rates(settings.learning_rate, steps, settings.warmup, settings.schedule)
        optimiser = AdamW(settings.betas, settings.epsilon, settings.weight_decay, settings.clip)
        engine = Engine(
            self.model.encoder, {"head": head}, parts, rates, optimiser, settings.precision, capture=capture
        )
        engine.seed_dropout(derive(settings.seed, "dropout"))
        return engine

    # ---- the loop -----------------------------------------------------------------------------------------------

    def run(self) -> TaskModel:
        """Train, or go on from a checkpoint; the model ends in the selected state, in fp32 and with its rows sliced."""
        with self.saver.running():
            self._epochs(*self._resume())
        if self.settings.selection == "best" and self.best is not None:
            self.engine.arena.master.copy_(self.best)
        self.engine.arena.detach()
        return self.model

    def _epochs(self, first: int, index: int) -> None:
        settings = self.settings
        for epoch in range(first, settings.epochs):
            if self.history.out_of_patience(settings.patience):
                log.info("no better dev score for %d epochs: stopping", settings.patience)
                break
            batches = self.stream.epoch(epoch)
            second = self._second(epoch * len(batches) + index)
            for position in range(index, len(batches)):
                self.engine.step(batches[position], *(next(second) for _ in range(self.auxiliary is not None)))
                if position + 1 < len(batches):
                    self._maybe_save(epoch, position + 1)
            self._end_of_epoch(epoch, len(batches))
            self._maybe_save(epoch + 1, 0)
            index = 0

    def _second(self, start: int):
        return self.auxiliary.batches.endless(start) if self.auxiliary is not None else iter(())

    def _end_of_epoch(self, epoch: int, steps: int) -> None:
        losses = self.engine.losses[epoch * steps : (epoch + 1) * steps].cpu().numpy()
        self._check_losses(losses, epoch)
        self.history.loss.append(float(losses.astype(np.float64).mean()))
        if len(self.dev_store):
            outputs = predict_all(self.model, self.task, self.dev_store, self.device)
            predictions = self.task.decode(self.dev_examples, self.dev_records, outputs)
            scores = self.task.score(self.dev_records, predictions)
            metric = self.task.selection_metric
            if self.history.note(scores, metric) and self.settings.selection == "best":
                self.best = self.engine.arena.master.clone()
            log.info("epoch %d: loss %.4f, dev %s %.2f", epoch + 1, self.history.loss[-1], metric, scores[metric])
        else:
            log.info("epoch %d: loss %.4f", epoch + 1, self.history.loss[-1])

    def _check_losses(self, losses: np.ndarray, epoch: int) -> None:
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            step = epoch * len(self.stream) + int(bad[0])
            rate = float(self.engine.numbers[step, 0])
            examples = self.stream.epoch(epoch)[bad[0]].tolist()
            raise UserError(
                f"the loss is {losses[bad[0]]} at step {step + 1} (epoch {epoch + 1}, learning rate {rate:.3g}, "
                f"training examples {', '.join(map(str, examples))}); "
                "a smaller learning rate or --precision fp32 may help"
            )

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def _maybe_save(self, epoch: int, index: int) -> None:
        step = epoch * len(self.stream) + index
        if not self.saver.due(step):
            return
        # A state that is broken already must not be kept.
        self._check_losses(self.engine.losses[step - index : step].cpu().numpy(), epoch)
        tensors = self.engine.state()
        if self.best is not None:
            tensors["best"] = self.best
        self.saver.save(step, tensors, epoch=epoch, index=index)

    def _resume(self) -> tuple[int, int]:
        found = self.saver.resume()
        if found is None:
            return 0, 0
        tensors, notes = found
        self.engine.load_state(tensors)
        if "best" in tensors:
            self.best = tensors["best"].to(self.device)
        log.info("going on at epoch %d, batch %d", notes["epoch"] + 1, notes["index"] + 1)
        return notes["epoch"], notes["index"]
