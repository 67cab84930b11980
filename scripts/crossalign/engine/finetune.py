"""Fine-tune an encoder with a task head: epochs, model selection, checkpoints, an optional second loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crossalign.engine.batches import Stream
from crossalign.engine.checkpoints import Checkpoints, Saving
from crossalign.engine.encoder import BaseEncoder, slice_vocabulary
from crossalign.engine.heads import fit_family
from crossalign.engine.identity import fingerprint
from crossalign.engine.loop import EpochLoop, History
from crossalign.engine.optimiser import AdamW, learning_rates
from crossalign.engine.parts import Loss, Part
from crossalign.engine.random_init import ALL, random_init
from crossalign.engine.seeds import torch_seeded
from crossalign.engine.settings import Settings
from crossalign.engine.steps import Engine
from crossalign.engine.task_model import TaskModel, make_store, predict_all
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_json


@dataclass
class Auxiliary:
    """A second loss on its own batches, one of them at every step: loss(encode, batch), times `weight`.

    `encode(reference)` runs the frozen `reference` encoder, an encoder with the same vocabulary, on the same batch.
    """

    batches: Stream
    loss: Loss
    weight: float
    reference: BaseEncoder | None = None


class FineTuning(EpochLoop):
    """One fine-tuning from the pretrained weights to the selected state."""

    def __init__(
        self,
        encoder: BaseEncoder,
        tokenizer: Any,
        task: Any,
        train: Sequence[dict[str, Any]],
        dev: Sequence[dict[str, Any]],
        settings: Settings,
        init: str = "ref",
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        code_hash: str = "",
        auxiliary: Auxiliary | None = None,
        saving: Saving | None = None,
        identity: Any = None,
        capture: bool | None = None,
        encode: Callable[..., Sequence[Any]] = lambda name, task, *rest: task.examples(*rest),
    ) -> None:
        self.task, self.settings, self.dev_records = task, settings, dev
        self.device, self.auxiliary = torch.device(device), auxiliary
        task.causal = encoder.config.causal
        random_init(encoder, init, settings.seed)
        with torch_seeded(settings.seed, "head"):
            head = task.make_head(encoder.config.hidden, encoder.config.hidden_dropout)
        fit_family(head, encoder.config.family, {} if init == ALL else encoder.pretrained)
        length = min(settings.max_length, encoder.config.max_length)
        examples = encode("train", task, train, tokenizer, length, True)
        self.train_store = store = make_store(encoder, examples, task.fields)
        self.dev_examples = encode("dev", task, dev, tokenizer, length) if dev else []
        self.dev_store = make_store(encoder, self.dev_examples, task.fields)
        if len(store) == 0:
            raise UserError("the training set has no examples")
        settings.check_dev(len(self.dev_store))
        known = [init, task.name, list(task.labels), identity, encoder.backend]
        arrays = [array for each in (store, self.dev_store) for array in each.contents()]
        self.progress = History()
        identity = fingerprint(code_hash, settings, known, *arrays)
        self.checkpoints = Checkpoints(checkpoints, identity, saving, self.progress)
        self._slice(encoder)
        self.model = TaskModel(encoder, head).to(self.device).train()
        self.stream = Stream(store, settings.batch, settings.seed)
        self.epoch_steps = len(self.stream)
        self.total = settings.epochs * self.epoch_steps
        self.engine = self._make_engine(capture)

    def _slice(self, encoder: BaseEncoder) -> None:
        """Train only the embedding rows that occur. With weight decay all rows change, so all are kept."""
        if self.settings.weight_decay > 0:
            return
        stores = [self.train_store, self.dev_store]
        if self.auxiliary is not None:
            stores.append(self.auxiliary.batches.store)
        used = torch.from_numpy(np.unique(np.concatenate([store.ids for store in stores])))
        mapping = slice_vocabulary(encoder, used)
        for store in stores:
            store.remap(mapping.numpy())
        if self.auxiliary is not None and self.auxiliary.reference is not None:
            slice_vocabulary(self.auxiliary.reference, used)

    def _make_engine(self, capture: bool | None) -> Engine:
        settings, task, encoder, head = self.settings, self.task, self.model.encoder, self.model.head
        parts = [Part(self.train_store, lambda encode, batch: task.loss(head, encode(), batch), settings.batch)]
        if self.auxiliary is not None:
            stream = self.auxiliary.batches
            parts.append(Part(stream.store, self.auxiliary.loss, stream.batch_size, self.auxiliary.weight))
            if self.auxiliary.reference is not None:
                # The reference runs like the trained encoder does, but without dropout and gradients.
                TaskModel(self.auxiliary.reference, torch.nn.Identity()).place(self.device, settings.precision)
                self.auxiliary.reference.requires_grad_(False)
        rates = learning_rates(settings.learning_rate, self.total, settings.warmup, settings.schedule)
        return Engine(encoder, {"head": head}, parts, rates, AdamW.of(settings), settings.precision, capture)

    def run(self) -> TaskModel:
        """Train, or go on from a checkpoint; the model ends in the selected state, in fp32 and with its rows sliced."""
        super().run()
        return self.model

    def train(self) -> None:
        super().train()
        if self.failed:
            # A job that is killed in a later attempt does not have to find this out again.
            self.checkpoints.save(self.state())

    @property
    def last_score(self) -> float:
        """The score on the dev set after the last epoch."""
        return self.progress.dev[-1][self.task.metric]

    @property
    def failed(self) -> bool:
        """Whether the training is to start again with a smaller rate. A rehearsal does not train long enough to say.

        Its end tells, not its best epoch: a training may collapse after it has learnt something.
        """
        floor = self.settings.restart_below
        return floor is not None and not self.checkpoints.cut and self.last_score < floor

    def batches(self, number: int) -> list[np.ndarray]:
        more = [] if self.auxiliary is None else [self.auxiliary.batches.at(number)]
        return [self.stream.at(number), *more]

    def place(self, step: int) -> str:
        examples = ", ".join(map(str, self.stream.at(step).tolist()))
        return f"epoch {step // self.epoch_steps + 1}, training examples {examples}, "

    def predict_dev(self) -> list[dict[str, np.ndarray]]:
        return predict_all(self.model, self.task, self.dev_store, self.device)


SEARCHED = ("batch", "learning_rate")


def best_settings(files: Sequence[Path], task: str, init: str, metric: str) -> tuple[dict[str, Any], list[dict]]:
    """The settings of the best trial on the dev set, the first of equals, and an account of all.

    `files` are the training.json of the trials. They must be of the same task and initialisation.
    """
    trials = []
    for file in files:
        report = read_json(file) or {}
        if (report.get("task"), report.get("init")) != (task, init):
            raise UserError(f"--trials {file}: not the account of a training of {task} and {init}")
        if report["best_epoch"] is None:
            raise UserError(f"--trials {file}: no score on a dev set, by which to choose")
        score = report["dev"][report["best_epoch"] - 1][metric]
        trials.append({name: report["settings"][name] for name in (*SEARCHED, "seed")} | {"dev": score})
    best = max(trials, key=lambda trial: trial["dev"])
    return {name: best[name] for name in SEARCHED}, trials
