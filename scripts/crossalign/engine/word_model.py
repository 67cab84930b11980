"""A BiLSTM with its lexicon and the head of its task: batches, loss, predictions, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from crossalign.engine.batches import Store, by_length
from crossalign.engine.bilstm import BiLstm, Sizes, Words
from crossalign.engine.lexicon import Lexicon
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json
from crossalign.tasks.words import WholeWords, get_word_task

# Words per batch of prediction.
BUDGET = {"cuda": 16384, "cpu": 2048}
# There are no positions to run out of.
NO_LIMIT = 1 << 30


class WordModel(nn.Module):
    """An encoder of words, the head of a task, and the lexicon that turns forms into numbers."""

    def __init__(self, task: WholeWords, lexicon: Lexicon, sizes: Sizes, vectors: np.ndarray | None = None) -> None:
        super().__init__()
        self.task, self.lexicon, self.sizes = task, lexicon, sizes
        self.encoder = BiLstm(sizes, *lexicon.sizes, None if vectors is None else torch.from_numpy(vectors))
        self.head = task.make_head(self.encoder.width, sizes.dropout)

    def store(self, examples: Sequence[dict[str, Any]]) -> Store:
        """Examples in flat arrays."""
        return Store(examples, self.task.fields, max_length=NO_LIMIT)

    def batch(self, store: Store, members: np.ndarray, device: torch.device) -> tuple[Words, dict[str, Tensor]]:
        """The words of some examples, each distinct form once, and the task's fields."""
        shape = store.exact_shape(members)
        views = store.views(store.assemble(members, shape), shape)
        forms, place = np.unique(views["ids"], return_inverse=True)
        spelt = self.lexicon.spell(forms)
        grid = place.reshape(-1)[views["cells"]].reshape(shape.batch, shape.length)
        given = {"words": spelt.words, "given": spelt.given, "characters": spelt.characters, "grid": grid}
        parts = {name: torch.from_numpy(array).to(device) for name, array in given.items()}
        counts = views["word_counts"]
        words = Words(**parts, counts=torch.from_numpy(counts), lengths=torch.from_numpy(spelt.lengths))
        fields = {name: torch.from_numpy(views[name]).to(device) for name in store.fields}
        mask = np.arange(shape.words) < counts[:, None]
        return words, {**fields, "word_mask": torch.from_numpy(mask).to(device)}

    def loss(self, words: Words, batch: dict[str, Tensor]) -> Tensor:
        """The task's loss."""
        return self.task.loss(self.head, self.encoder(words), batch)

    def predict(self, examples: Sequence[dict[str, Any]] | Store, device: torch.device | str) -> list[dict[str, Any]]:
        """What `task.predict` gives for each example, in their order; rows are padded as their batch was."""
        store = examples if isinstance(examples, Store) else self.store(examples)
        device = torch.device(device)
        outputs: list[dict[str, Any]] = [{} for _ in range(len(store))]
        training = self.training
        self.eval()
        try:
            with torch.inference_mode():
                for members in by_length(store, BUDGET[device.type]):
                    words, batch = self.batch(store, members, device)
                    for name, tensor in self.task.predict(self.head, self.encoder(words), batch).items():
                        for member, row in zip(members, tensor.cpu().numpy(), strict=True):
                            outputs[member][name] = row
        finally:
            self.train(training)
        return outputs


def save_word_model(folder: str | Path, model: WordModel, info: dict[str, Any]) -> None:
    """Write weights, vocabulary and a configuration, which `info` is added to."""
    folder = Path(folder)
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        stream.write(save(tensors, metadata={"format": "pt"}))
    model.lexicon.save(folder / "vocabulary.json")
    config = {**info, "sizes": asdict(model.sizes), "task": model.task.name, "labels": list(model.task.labels)}
    write_json(folder / "config.json", config, ensure_ascii=False)


def load_word_model(folder: str | Path) -> WordModel:
    """The model that `save_word_model` wrote, ready to predict."""
    folder = Path(folder)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        task, sizes = get_word_task(config["task"], config["labels"]), Sizes(**config["sizes"])
        tensors = load((folder / "model.safetensors").read_bytes())
        vectors = tensors.get("encoder.vectors")
        # The row of the forms without a vector is added by the model itself.
        given = None if vectors is None else vectors[1:].numpy()
        model = WordModel(task, Lexicon.load(folder / "vocabulary.json"), sizes, given)
        model.load_state_dict(tensors)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is missing: {folder} is no BiLSTM") from None
    except (ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{folder} cannot be read as a BiLSTM: {error}") from None
    return model.eval()
