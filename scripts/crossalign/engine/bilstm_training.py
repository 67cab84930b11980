"""Train a BiLSTM on a task of whole words: batches, epochs, selection on the dev set, checkpoints, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from crossalign.engine.batches import Store, Stream, by_length, grid
from crossalign.engine.bilstm import BiLstm, Lexicon, Sizes, Words
from crossalign.engine.checkpoints import Checkpoints, Saving
from crossalign.engine.identity import fingerprint
from crossalign.engine.loop import EpochLoop, History
from crossalign.engine.optimiser import learning_rates
from crossalign.engine.seeds import derive, torch_seeded
from crossalign.engine.settings import Training
from crossalign.engine.task_model import collect
from crossalign.engine.weights import write_tensors
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json

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
        numbers, characters, spelt = self.lexicon.spell(forms)
        # Whatever stands behind a row's end is not looked at.
        cells = grid(place.reshape(-1), lengths, (len(members), batch.length), place.flat[0])
        arrays = {"words": numbers, "characters": characters, "grid": cells}
        parts = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
        counts = views["word_counts"]
        words = Words(**parts, counts=torch.from_numpy(counts), lengths=torch.from_numpy(spelt))
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
    write_tensors(folder / "model.safetensors", model.state_dict())
    # The place in a list is the number, less the unknown and padding.
    lists = {"words": model.lexicon.words, "characters": model.lexicon.characters}
    write_json(folder / "vocabulary.json", lists, ensure_ascii=False, indent=0)
    config = {**info, "sizes": model.sizes.model_dump(), "task": model.task.name, "labels": list(model.task.labels)}
    write_json(folder / "config.json", config, ensure_ascii=False)


class WordEngine:
    """The steps of a BiLSTM, as `Engine` has those of an encoder: eager, in fp32, with PyTorch's own AdamW."""

    def __init__(self, model: WordModel, store: Store, settings: Training, rates: np.ndarray, device: torch.device):
        self.model, self.store, self.clip, self.device = model, store, settings.clip, device
        self.numbers = torch.from_numpy(rates)[:, None]
        self.losses = torch.zeros(len(rates), device=device)
        self.done = 0
        self.optimiser = torch.optim.AdamW(
            model.parameters(), betas=settings.betas, eps=settings.epsilon, weight_decay=settings.weight_decay
        )

    def seed_dropout(self, seed: int) -> None:
        """Start the stream of random numbers for dropout."""
        torch.manual_seed(seed)

    def step(self, members: np.ndarray) -> None:
        """Train on one batch."""
        self.optimiser.param_groups[0]["lr"] = float(self.numbers[self.done])
        loss = self.model.loss(*self.model.batch(self.store, members, self.device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.clip > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimiser.step()
        self.losses[self.done] = loss.detach()
        self.done += 1

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how training goes on."""
        parts = {"model": self.model.state_dict()}
        parts |= {str(number): state for number, state in self.optimiser.state_dict()["state"].items()}
        tensors = {f"{part}/{name}": value for part, values in parts.items() for name, value in values.items()}
        return tensors | {"losses": self.losses, "step": torch.tensor(self.done)}

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from a `state()`."""
        self.losses.copy_(tensors.pop("losses"))
        self.done = int(tensors.pop("step"))
        parts: dict[str, dict[str, Tensor]] = {}
        for path, value in tensors.items():
            part, _, name = path.partition("/")
            parts.setdefault(part, {})[name] = value
        self.model.load_state_dict(parts.pop("model"))
        state = {int(number): values for number, values in parts.items()}
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": state})


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
        settings: Training,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        code_hash: str = "",
        saving: Saving | None = None,
        least_steps: int = 1,
    ) -> None:
        if not train:
            raise UserError("the training set has no sentences")
        settings.check_dev(dev)
        self.task, self.settings, self.dev_records = task, settings, dev
        device = torch.device(device)
        with torch_seeded(settings.seed, "bilstm"):
            self.model = WordModel(task, lexicon, sizes).to(device).train()
        self.train_store = store = self.model.store(task.examples(train, lexicon))
        self.dev_examples = task.examples(dev, lexicon)
        self.dev_store = self.model.store(self.dev_examples)
        self.stream = Stream(store, settings.batch, settings.seed)
        self.passes = -(-least_steps // len(self.stream))
        self.epoch_steps = self.passes * len(self.stream)
        self.total = settings.epochs * self.epoch_steps
        words = [lexicon.words, lexicon.characters, lexicon.forms]
        known = [task.name, list(task.labels), sizes.model_dump(), self.passes, words]
        arrays = [array for each in (store, self.dev_store) for array in each.contents()]
        self.progress = History()
        identity = fingerprint(code_hash, settings, known, *arrays)
        self.checkpoints = Checkpoints(checkpoints, identity, saving, self.progress)
        rates = learning_rates(settings.learning_rate, self.total, settings.warmup, settings.schedule)
        self.engine = WordEngine(self.model, store, settings, rates, device)

    def run(self) -> WordModel:
        """Train, or go on from a checkpoint; the model ends in the selected state."""
        super().run()
        return self.model.eval()

    def batches(self, number: int) -> list[np.ndarray]:
        return [self.stream.at(number)]

    def step(self, number: int) -> None:
        # Seeding every step leaves nothing to remember: a run that goes on draws what it would have drawn.
        self.engine.seed_dropout(derive(self.settings.seed, "dropout", number))
        super().step(number)

    def predict_dev(self) -> list[dict[str, Any]]:
        return self.model.predict(self.dev_store, self.engine.device)

    def keep_best(self) -> None:
        self.best = parameters_to_vector(self.model.parameters()).detach()

    @torch.no_grad()
    def finish(self) -> None:
        parameters = list(self.model.parameters())
        if self.best is not None:
            # In place: cuDNN wants the weights of an LSTM to lie one behind the other.
            for parameter, value in zip(parameters, self.best.split([p.numel() for p in parameters]), strict=True):
                parameter.copy_(value.view_as(parameter))
