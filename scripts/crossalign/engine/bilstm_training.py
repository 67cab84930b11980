"""Train a BiLSTM on a task of whole words: batches, epochs, selection on the dev set, checkpoints, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from crossalign.engine.batches import Store, Stream, by_length, grid
from crossalign.engine.bilstm import BiLstm, Lexicon, Sizes, Words
from crossalign.engine.checkpoints import Checkpoints, Saving
from crossalign.engine.hyperparameters import Settings, fingerprint
from crossalign.engine.loop import EpochLoop, History
from crossalign.engine.optimiser import learning_rates
from crossalign.engine.seeds import derive, torch_seeded
from crossalign.engine.task_model import collect
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

# Words per batch of prediction.
BUDGET = {"cuda": 16384, "cpu": 2048}
# There are no positions to run out of.
NO_LIMIT = 1 << 30


class WordModel(nn.Module):
    """An encoder of words, the head of a task, and the lexicon that turns forms into numbers."""

    def __init__(self, task: Any, lexicon: Lexicon, sizes: Sizes) -> None:
        super().__init__()
        self.task, self.lexicon, self.sizes = task, lexicon, sizes
        self.encoder = BiLstm(sizes, *lexicon.sizes)
        self.head = task.make_head(self.encoder.width, sizes.dropout)

    def store(self, examples: Sequence[dict[str, Any]]) -> Store:
        """Examples in flat arrays."""
        return Store(examples, self.task.fields, max_length=NO_LIMIT)

    def batch(self, store: Store, members: np.ndarray, device: torch.device) -> tuple[Words, dict[str, Tensor]]:
        """The words of some examples, each distinct form once, and the task's fields."""
        batch, lengths = store.assemble(members), store.lengths[members]
        views = batch.tensors
        forms, place = np.unique(views["ids"], return_inverse=True)
        spelt = self.lexicon.spell(forms)
        # Whatever stands behind a row's end is not looked at.
        cells = grid(place.reshape(-1), lengths, (len(members), batch.length), place.flat[0])
        arrays = {"words": spelt.words, "characters": spelt.characters, "grid": cells}
        parts = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
        counts = views["word_counts"]
        words = Words(**parts, counts=torch.from_numpy(counts), lengths=torch.from_numpy(spelt.lengths))
        fields = {name: torch.from_numpy(views[name]).to(device) for name in store.fields}
        mask = np.arange(batch.words) < counts[:, None]
        return words, {**fields, "word_mask": torch.from_numpy(mask).to(device)}

    def loss(self, words: Words, batch: dict[str, Tensor]) -> Tensor:
        """The task's loss."""
        return self.task.loss(self.head, self.encoder(words), batch)

    def predict(self, examples: Sequence[dict[str, Any]] | Store, device: torch.device | str) -> list[dict[str, Any]]:
        """What `task.predict` gives for each example, in their order; rows are padded as their batch was."""
        store = examples if isinstance(examples, Store) else self.store(examples)
        device = torch.device(device)

        def batches() -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
            for members in by_length(store.lengths, BUDGET[device.type]):
                words, batch = self.batch(store, members, device)
                yield members, self.task.predict(self.head, self.encoder(words), batch)

        return collect(self, len(store), batches())


def save_word_model(folder: str | Path, model: WordModel, info: dict[str, Any]) -> None:
    """Write weights, vocabulary and a configuration, which `info` is added to."""
    folder = Path(folder)
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    model.lexicon.save(folder / "vocabulary.json")
    config = {**info, "sizes": asdict(model.sizes), "task": model.task.name, "labels": list(model.task.labels)}
    write_json(folder / "config.json", config, ensure_ascii=False)


class WordTraining(EpochLoop):
    """One training from fresh weights to the selected state. Random numbers depend on the seed and the step only.

    An epoch is one pass over the training set or, where that has fewer than `least_steps` steps, as many as needed: a
    model of this size learns nothing in a few dozen steps, and early stopping would end it there.
    """

    def __init__(
        self,
        task: Any,
        lexicon: Lexicon,
        sizes: Sizes,
        train: Sequence[dict[str, Any]],
        dev: Sequence[dict[str, Any]],
        settings: Settings,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        code_hash: str = "",
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
            self.model = WordModel(task, lexicon, sizes).to(self.device).train()
        self.train_store = store = self.model.store(task.examples(train, lexicon))
        self.dev_examples = task.examples(dev, lexicon)
        self.dev_store = self.model.store(self.dev_examples)
        self.stream = Stream(store, settings.batch, settings.seed)
        self.passes = -(-least_steps // len(self.stream))
        self.epoch_steps = self.passes * len(self.stream)
        words = [lexicon.words, lexicon.characters, lexicon.forms]
        known = [task.name, list(task.labels), asdict(sizes), self.passes, words]
        arrays = [array for each in (store, self.dev_store) for array in each.contents()]
        self.progress = History()
        identity = fingerprint(code_hash, settings, known, *arrays)
        self.checkpoints = Checkpoints(checkpoints, identity, saving, self.progress)
        self.total = settings.epochs * self.epoch_steps
        self.rates = learning_rates(settings.learning_rate, self.total, settings.warmup, settings.schedule)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), betas=settings.betas, eps=settings.epsilon,
            weight_decay=settings.weight_decay,
        )  # fmt: skip
        self.recent: list[Tensor] = []
        self.best: dict[str, Tensor] = {}

    def run(self) -> WordModel:
        """Train, or go on from a checkpoint; the model ends in the selected state."""
        gpus = [self.device] if self.device.type == "cuda" else []
        with self.checkpoints.running(), torch.random.fork_rng(devices=gpus):
            self.train()
        if self.best:
            self.model.load_state_dict(self.best)
        return self.model.eval()

    def step(self, number: int) -> None:
        # Seeding every step leaves nothing to remember: a run that goes on draws what it would have drawn.
        torch.manual_seed(derive(self.settings.seed, "dropout", number))
        for group in self.optimiser.param_groups:
            group["lr"] = float(self.rates[number])
        loss = self.model.loss(*self.model.batch(self.train_store, self.stream.at(number), self.device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.settings.clip > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimiser.step()
        self.recent.append(loss.detach())

    def epoch_loss(self, epoch: int) -> float:
        loss = float(torch.stack(self.recent).double().mean())
        self.recent.clear()
        if not np.isfinite(loss):
            raise UserError(
                f"the loss is {loss} in epoch {epoch + 1} (learning rate {self.settings.learning_rate:.3g}); "
                "a smaller learning rate may help"
            )
        return loss

    def before(self) -> None:
        """Every step seeds its dropout."""

    def losses(self, first: int = 0) -> np.ndarray:
        return np.array([float(loss) for loss in self.recent])

    def predict_dev(self) -> list[dict[str, Any]]:
        return self.model.predict(self.dev_store, self.device)

    def keep_best(self) -> None:
        self.best = {name: value.clone() for name, value in self.model.state_dict().items()}

    def state(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        return tensors | ({"losses": torch.stack(self.recent)} if self.recent else {})

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        self.recent = list(tensors.pop("losses", torch.zeros(0)).to(self.device))
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
