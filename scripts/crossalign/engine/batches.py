"""Examples in flat arrays, their order, and batches of them.

A batch is packed: only real tokens, no padding, filled up to a static size where CUDA graphs want it. It travels to
the device as one vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crossalign.engine.examples import FlatExamples
from crossalign.engine.seeds import numpy_generator
from crossalign.runtime.errors import UserError

# A target that no loss counts: padding, a label unseen in training, a head beyond the cut.
IGNORE = -100


@dataclass(frozen=True)
class Field:
    """How a field is padded: as long as `input_ids`, as long as the number of words, or a single number."""

    pad: int
    shape: Literal["sequence", "words", "scalar"]


@dataclass
class Batch:
    """Sequences packed one after another: arrays, or tensors, by name.

    Always `ids`, `positions` and `cu_seqlens`, the starts of the sequences and the end of the last one. In a static
    shape tokens that belong to no sequence follow (`filled`), and count as one. `length` and `words` are those of
    padded grids.
    """

    tensors: dict[str, Any]
    length: int
    filled: bool
    words: int = 0

    @property
    def shape(self) -> tuple:
        """All that two batches have in common which can use one CUDA graph."""
        return self.length, self.filled, self.words, *((name, *each.shape) for name, each in self.tensors.items())

    def vector(self) -> np.ndarray:
        """All numbers, one after another."""
        return np.concatenate([array.reshape(-1) for array in self.tensors.values()])

    def over(self, vector: Any) -> Batch:
        """The same batch with a vector, wherever it is, that holds its numbers."""
        views, start = {}, 0
        for name, each in self.tensors.items():
            stop = start + int(np.prod(each.shape))
            views[name] = vector[start:stop].reshape(each.shape)
            start = stop
        return replace(self, tensors=views)


class Packed:
    """What the steps ask of examples, whoever has them: `lengths`, `targets`, and batches.

    `targets` are those that a loss counts, of each example: the weight of a part of a batch in the whole. Of a loss of
    several terms each has its own, (examples, terms).
    """

    position_offset: int
    # Arrays, or what computes them for the examples that are asked for.
    lengths: Any
    targets: Any

    def assemble(self, members: np.ndarray, rows: int | None = None) -> Batch:
        """These examples as they are, or in a static shape of so many `rows`."""
        raise NotImplementedError

    def static_shape(self, lengths: np.ndarray, rows: int) -> tuple[int, int, bool]:
        """Tokens and length, out of a small set, that hold sequences of these lengths, and whether they leave room."""
        return static_tokens(int(lengths.sum())), round_up(int(lengths.max()), 64), True

    def pack(self, ids: np.ndarray, lengths: np.ndarray, rows: int | None) -> Batch:
        """A batch of nothing but tokens."""
        tokens, length, filled = len(ids), int(lengths.max()), False
        if rows is not None:
            tokens, length, filled = self.static_shape(lengths, rows)
        ends = padded(np.cumsum([0, *lengths]), (rows or len(lengths)) + 1, len(ids))
        if filled:
            ends = padded(ends, len(ends) + 1, tokens)
        places = padded(places_within(lengths) + self.position_offset, tokens)
        return Batch({"ids": padded(ids, tokens), "positions": places, "cu_seqlens": ends}, length, filled)


class Store(Packed):
    """Examples as flat arrays. `fields` maps names to a `pad` value and a `shape` (sequence, words or scalar)."""

    def __init__(
        self,
        examples: Sequence[dict[str, Any]],
        fields: dict[str, Any],
        position_offset: int = 0,
        max_length: int = 512,
    ) -> None:
        self.fields = fields
        self.position_offset = position_offset
        self.lengths = _sizes(examples, "input_ids")
        if len(self.lengths) and self.lengths.max() > max_length:
            worst = int(self.lengths.argmax())
            raise UserError(
                f"example {worst} has {self.lengths[worst]} tokens but the model has positions for {max_length} only; "
                "use a smaller maximal length"
            )
        if len(self.lengths) and self.lengths.min() == 0:
            raise UserError(f"example {int(self.lengths.argmin())} has no tokens")
        self.starts = _starts(self.lengths)
        self.ids = _flat(examples, "input_ids")
        self.types = _flat(examples, "token_type_ids") if examples and "token_type_ids" in examples[0] else None
        words = [name for name, field in fields.items() if field.shape == "words"]
        self.words = _sizes(examples, words[0]) if words else np.zeros(len(examples), dtype=np.int64)
        self.word_starts = _starts(self.words)
        self.values = {name: _flat(examples, name, field.shape == "scalar") for name, field in fields.items()}
        # Without any field of targets: examples.
        counted = {name: field.shape for name, field in fields.items() if field.pad < 0}
        self.targets = np.full(len(examples), 0 if counted else 1, dtype=np.int64)
        places = {"sequence": (self.starts, self.lengths), "words": (self.word_starts, self.words)}
        for name, shape in counted.items():
            real = (self.values[name] != fields[name].pad).astype(np.int64)
            if shape != "scalar":
                starts, sizes = places[shape]
                sums = np.concatenate([[0], np.cumsum(real)])
                real = sums[starts + sizes] - sums[starts]
            self.targets += real

    def __len__(self) -> int:
        return len(self.lengths)

    def contents(self) -> list[np.ndarray]:
        """All that tells these examples from others, labels included."""
        return [self.ids, self.lengths, *(self.values[name] for name in sorted(self.values))]

    def remap(self, mapping: np.ndarray) -> None:
        """Replace token ids, for a sliced vocabulary."""
        self.ids = mapping[self.ids]
        if len(self.ids) and self.ids.min() < 0:
            raise ValueError("a token has no row in the sliced vocabulary")

    def assemble(self, members: np.ndarray, rows: int | None = None) -> Batch:
        lengths, counts = self.lengths[members], self.words[members]
        tokens, words = ranges(self.starts[members], lengths), ranges(self.word_starts[members], counts)
        batch = self.pack(self.ids[tokens], lengths, rows)
        batch.words = int(counts.max()) if rows is None else round_up(int(counts.max()), 64)
        rows = rows or len(members)
        if self.types is not None:
            batch.tensors["types"] = padded(self.types[tokens], len(batch.tensors["ids"]))
        if batch.words:
            batch.tensors["word_counts"] = padded(counts, rows)
        for name, field in self.fields.items():
            if field.shape == "scalar":
                made = padded(self.values[name][members], rows, field.pad)
            elif field.shape == "sequence":
                made = grid(self.values[name][tokens], lengths, (rows, batch.length), field.pad)
            else:
                made = grid(self.values[name][words], counts, (rows, batch.words), field.pad)
            batch.tensors[name] = made
        return batch


class Stream:
    """Batches of a store in an order that depends on the seed and the epoch only."""

    def __init__(self, store: Store, batch_size: int, seed: int, purpose: str = "order") -> None:
        if batch_size < 1:
            raise UserError(f"batch size {batch_size} is not positive")
        if len(store) == 0:
            raise UserError("there are no examples to train on")
        self.store, self.batch_size, self.seed, self.purpose = store, batch_size, seed, purpose
        self._current: tuple[int, list[np.ndarray]] = (-1, [])

    def __len__(self) -> int:
        return -(-len(self.store) // self.batch_size)

    def epoch(self, number: int) -> list[np.ndarray]:
        """The batches (example numbers) of epoch `number`, counted from 0.

        Drawn at random, as in the papers: thanks to packing there is no need to group examples by length.
        """
        order = numpy_generator(self.seed, self.purpose, number).permutation(len(self.store))
        return [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]

    def at(self, step: int) -> np.ndarray:
        """The batch of a step, counted from 0, epoch after epoch."""
        epoch, index = divmod(step, len(self))
        if self._current[0] != epoch:
            self._current = (epoch, self.epoch(epoch))
        return self._current[1][index]


def by_length(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """All examples, the longest first, in batches whose padded size stays within `budget` tokens."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        count = max(1, budget // int(lengths[order[start]]))
        yield order[start : start + count]
        start += count


def static_tokens(count: int) -> int:
    """A number of tokens out of a small set, at least `count`: steps of 64, or of 1/16 to 1/8 of all."""
    return round_up(count, max(64, 1 << max(0, count // 16 - 1).bit_length()))


def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


def _sizes(examples: Sequence[dict[str, Any]], name: str) -> np.ndarray:
    if isinstance(examples, FlatExamples):
        return examples.sizes(name)
    return np.array([len(example[name]) for example in examples], dtype=np.int64)


def _flat(examples: Sequence[dict[str, Any]], name: str, scalar: bool = False) -> np.ndarray:
    if isinstance(examples, FlatExamples):
        return examples.columns[name].astype(np.int64)
    if scalar:
        return np.array([example[name] for example in examples], dtype=np.int64)
    parts = [np.asarray(example[name], dtype=np.int64) for example in examples]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def places_within(lengths: np.ndarray) -> np.ndarray:
    """0, 1, 2, ... for each of the sequences, one after another."""
    return ranges(np.zeros_like(lengths), lengths)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """So many numbers from each of the starts on, one after another."""
    return np.arange(int(lengths.sum())) + np.repeat(starts - _starts(lengths), lengths)


def padded(array: np.ndarray, size: int, pad: int = 0) -> np.ndarray:
    """An array with so much behind it that it has this size."""
    return np.concatenate([array, np.full(size - len(array), pad)])


def grid(values: np.ndarray, lengths: np.ndarray, shape: tuple[int, int], pad: int) -> np.ndarray:
    """A row for each of the sequences that lie in `values` one after another, and perhaps empty ones."""
    made = np.full(shape, pad)
    made[: len(lengths)][np.arange(shape[1]) < lengths[:, None]] = values
    return made


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
