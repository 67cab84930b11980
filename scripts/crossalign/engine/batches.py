"""Examples in flat arrays, their order, and batches as one vector of integers each.

A batch is packed: only real tokens, no padding, filled up to a static size where CUDA graphs want it. Because one
vector holds everything (ids, positions, labels, ...), a batch travels to the device in one copy.
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


@dataclass(frozen=True)
class Shape:
    """Sizes of a batch: sequences, packed tokens, longest sequence, most words.

    Filled: tokens that belong to no sequence may follow the real ones.
    """

    batch: int
    tokens: int
    length: int
    words: int
    filled: bool = False


class Packed:
    """What the steps ask of examples, whoever has them: `lengths`, `targets`, and batches as one vector each.

    `targets` are those that a loss counts, of each example: the weight of a part of a batch in the whole. Of a loss of
    several terms each has its own, (examples, terms).
    """

    position_offset: int
    # Arrays, or what computes them for the examples that are asked for.
    lengths: Any
    targets: Any

    def exact_shape(self, members: np.ndarray) -> Shape:
        """The smallest shape that holds these examples."""
        lengths = self.lengths[members]
        return Shape(len(members), int(lengths.sum()), int(lengths.max()), 0)

    def static_shape(self, members: np.ndarray, batch: int) -> Shape:
        """A shape out of a small set that holds these examples; `batch` rows even if there are fewer examples."""
        exact = self.exact_shape(members)
        length, words = round_up(exact.length, 64), round_up(exact.words, 64)
        return Shape(batch, static_tokens(exact.tokens), length, words, filled=True)

    def assemble(self, members: np.ndarray, shape: Shape, totals: Any = None) -> np.ndarray:
        """The batch of these examples as one vector; `totals`: the targets of the step of which they are a part."""
        raise NotImplementedError

    def with_tokens(
        self, members: np.ndarray, shape: Shape, ids: np.ndarray, totals: Any = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
        """A vector in which the tokens have their places, its parts by name, and the cells of the tokens."""
        vector = np.zeros(self.vector_size(shape), dtype=np.int64)
        views, lengths = self.views(vector, shape), self.lengths[members]
        within = places_within(lengths)
        cell = within + np.repeat(np.arange(len(members)) * shape.length, lengths)
        views["ids"][: len(ids)] = ids
        views["positions"][: len(ids)] = within + self.position_offset
        views["rows"][: len(ids)] = cell
        views["cells"][cell] = np.arange(len(ids))
        views["lengths"][: len(members)] = lengths
        own = self.targets[members].sum()
        views["split"][:] = own, own if totals is None else totals
        return vector, views, cell

    def sizes(self, shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Names and sizes of the parts of a vector, in their order."""
        for name in ("ids", "positions", "rows"):
            yield name, (shape.tokens,)
        yield "cells", (shape.batch * shape.length,)
        yield "lengths", (shape.batch,)
        yield "split", (2,)

    def vector_size(self, shape: Shape) -> int:
        """Numbers in the vector of a batch."""
        return sum(int(np.prod(size)) for _, size in self.sizes(shape))

    def views(self, vector: Any, shape: Shape) -> dict[str, Any]:
        """The parts of a vector (array or tensor) by name."""
        views, position = {}, 0
        for name, size in self.sizes(shape):
            count = int(np.prod(size))
            views[name] = vector[position : position + count].reshape(size)
            position += count
        return views


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

    def exact_shape(self, members: np.ndarray) -> Shape:
        return replace(super().exact_shape(members), words=int(self.words[members].max()))

    def assemble(self, members: np.ndarray, shape: Shape, totals: Any = None) -> np.ndarray:
        lengths = self.lengths[members]
        source = places_within(lengths) + np.repeat(self.starts[members], lengths)
        vector, views, cell = self.with_tokens(members, shape, self.ids[source], totals)
        if self.types is not None:
            views["types"][: len(source)] = self.types[source]
        if shape.words:
            counts = self.words[members]
            views["word_counts"][: len(members)] = counts
            word = places_within(counts)
            word_source = word + np.repeat(self.word_starts[members], counts)
            word_cell = word + np.repeat(np.arange(len(members)) * shape.words, counts)
        for name, field in self.fields.items():
            view = views[name]
            view[:] = field.pad
            if field.shape == "scalar":
                view[: len(members)] = self.values[name][members]
            elif field.shape == "sequence":
                view.reshape(-1)[cell] = self.values[name][source]
            else:
                view.reshape(-1)[word_cell] = self.values[name][word_source]
        return vector

    def sizes(self, shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield from super().sizes(shape)
        if self.types is not None:
            yield "types", (shape.tokens,)
        if shape.words:
            yield "word_counts", (shape.batch,)
        extent = {"sequence": (shape.length,), "words": (shape.words,), "scalar": ()}
        for name, field in self.fields.items():
            yield name, (shape.batch, *extent[field.shape])


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
    return np.arange(int(lengths.sum())) - np.repeat(_starts(lengths), lengths)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
