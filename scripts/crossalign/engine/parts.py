"""Parts of the objective: each a loss with its own examples; and several of them in one pass through the encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import Packed, Shape, Store, static_tokens
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.layout import Layout

# encode() gives the hidden states of the batch as a grid (sequences, length, hidden), encode(other) those of another
# encoder with the same vocabulary.
Encode = Callable[..., Tensor]
# (encode, batch) -> scalar loss.
Loss = Callable[[Encode, dict[str, Tensor]], Tensor]

# Pieces of a batch's vector that no loss reads.
FOR_ENCODER = {"ids", "positions", "rows", "cells", "lengths", "split", "types"}


@dataclass
class Part:
    """One term of the objective with its own examples. The loss is a mean: over targets, or else over examples.

    Alone: its loss runs other encoders too, so its batches should not share a pass with those of other parts.
    """

    store: Store
    loss: Loss
    batch_size: int
    weight: float = 1.0
    alone: bool = False

    def static_shape(self, members: np.ndarray, pieces: int = 1) -> Shape:
        """A shape out of a small set for these examples, one of so many pieces of a batch."""
        return self.store.static_shape(members, -(-self.batch_size // pieces))

    def objective(self, encode: Encode, batch: dict[str, Tensor], shape: Shape) -> Tensor:
        """The weighted loss of a batch."""
        return self.loss(encode, batch) * self.weight


def run_encoder(
    encoder: BaseEncoder, store: Store, members: np.ndarray, device: torch.device
) -> tuple[dict[str, Tensor], Tensor]:
    """Fields and masks of a batch of examples, and its hidden states as a grid."""
    shape = store.exact_shape(members)
    vector = torch.from_numpy(store.assemble(members, shape))
    # From pinned memory, or the host would wait for the batch before.
    vector = vector.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else vector
    views = store.views(vector, shape)
    layout, batch = batch_inputs(views, shape)
    states = encoder.packed(views["ids"], views["positions"], views.get("types"), layout)
    return batch, layout.to_grid(states)


def batch_inputs(views: dict[str, Tensor], shape: Shape) -> tuple[Layout, dict[str, Tensor]]:
    """The layout of a batch, and what losses and heads get: the fields, `attention_mask` and `word_mask`."""
    bound = max(shape.length, 64, shape.tokens // 8 + 1) if shape.filled else shape.length
    layout = Layout(shape.batch, shape.length, views["lengths"], views["cells"], views["rows"], shape.filled, bound)
    if layout.lengths.device.type == "cpu" and not shape.filled:
        layout.group()
    return layout, loss_inputs(views, shape, layout.mask)


def loss_inputs(views: dict[str, Tensor], shape: Shape, mask: Tensor) -> dict[str, Tensor]:
    """What losses and heads get; `mask`: the cells of the grid that hold a token."""
    batch = {name: view for name, view in views.items() if name not in FOR_ENCODER and name != "word_counts"}
    batch["attention_mask"] = mask
    if "word_counts" in views:
        counts = views["word_counts"]
        batch["word_mask"] = torch.arange(shape.words, device=counts.device) < counts[:, None]
    return batch


@dataclass(frozen=True)
class JointShape(Shape):
    """Sizes of the whole, and of each part. How the tokens divide among the parts is no matter of shape."""

    parts: tuple[Shape, ...] = ()


class Joint(Packed):
    """Several parts as one; `members` are the examples of each of them."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        # What makes its batches.
        self.store = self

    def static_shape(self, members: Sequence[np.ndarray], pieces: int = 1) -> JointShape:
        """A shape out of a small set: all parts in one grid, filled up once."""
        shapes = [part.static_shape(mine, pieces) for part, mine in zip(self.parts, members, strict=True)]
        length = max(shape.length for shape in shapes)
        rows = sum(shape.batch for shape in shapes)
        tokens = static_tokens(sum(self._counts(members)))
        parts = tuple(replace(shape, length=length, tokens=0) for shape in shapes)
        return JointShape(rows, tokens, length, 0, True, parts)

    def assemble(self, members: Sequence[np.ndarray], shape: JointShape, split: tuple[int, int] = (1, 1)) -> np.ndarray:
        """The batch as one vector; what a single loss reads has the number of its part before its name."""
        vector = np.zeros(self.vector_size(shape), dtype=np.int64)
        views = self.views(vector, shape)
        token = row = 0
        counts = self._counts(members)
        for number, (part, mine, inner, count) in enumerate(zip(self.parts, members, shape.parts, counts, strict=True)):
            inner = replace(inner, tokens=count)
            own = part.store.views(part.store.assemble(mine, inner, split), inner)
            tokens, rows = slice(token, token + count), slice(row, row + inner.batch)
            cells = slice(row * shape.length, (row + inner.batch) * shape.length)
            for name, view in own.items():
                if name not in FOR_ENCODER:
                    views[f"{number}.{name}"][:] = view
            for name in ("ids", "positions", "types"):
                if name in own:
                    views[name][tokens] = own[name]
            views["rows"][tokens] = own["rows"] + cells.start
            views["cells"][cells] = own["cells"] + token
            views["lengths"][rows] = own["lengths"]
            token, row = tokens.stop, rows.stop
        return vector

    def sizes(self, shape: JointShape) -> Iterator[tuple[str, tuple[int, ...]]]:
        own = [list(part.store.sizes(inner)) for part, inner in zip(self.parts, shape.parts, strict=True)]
        names = ["ids", "positions", "rows"]
        if any(name == "types" for sizes in own for name, _ in sizes):
            # Of a part that has none they are 0, which is what the encoder takes for none.
            names.append("types")
        yield from ((name, (shape.tokens,)) for name in names)
        yield "cells", (shape.batch * shape.length,)
        yield "lengths", (shape.batch,)
        for number, sizes in enumerate(own):
            yield from ((f"{number}.{name}", size) for name, size in sizes if name not in FOR_ENCODER)

    def objective(self, encode: Encode, batch: dict[str, Tensor], shape: JointShape) -> Tensor:
        """The weighted losses of all parts, added up; the trained encoder runs once."""
        rows = [inner.batch for inner in shape.parts]
        hidden, masks = encode().split(rows), batch["attention_mask"].split(rows)

        def of_part(number: int, other: BaseEncoder | None = None) -> Tensor:
            return hidden[number] if other is None else encode(other).split(rows)[number]

        losses = []
        for number, (part, inner) in enumerate(zip(self.parts, shape.parts, strict=True)):
            prefix = f"{number}."
            own = {name.removeprefix(prefix): view for name, view in batch.items() if name.startswith(prefix)}
            own = loss_inputs(own, inner, masks[number])
            losses.append(part.objective(partial(of_part, number), own, inner))
        return sum(losses[1:], losses[0])

    def _counts(self, members: Sequence[np.ndarray]) -> list[int]:
        return [int(part.store.lengths[mine].sum()) for part, mine in zip(self.parts, members, strict=True)]


def join(parts: Sequence[Part]) -> Joint | None:
    """The parts as one, where there are several and none wants to be alone."""
    return Joint(parts) if len(parts) > 1 and not any(part.alone for part in parts) else None
