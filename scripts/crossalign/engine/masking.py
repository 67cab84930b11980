"""Blocks of text as batches for the engine: with some tokens hidden, or with the next token to predict.

Which tokens are hidden depends on the seed and the step only. Every block hides the same number, so that all batches
have one shape and a training step is recorded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from crossalign.engine.batches import Packed, Shape
from crossalign.engine.corpus import Corpus
from crossalign.engine.seeds import numpy_generator
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.vocabulary import mask_token
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import IGNORE
from crossalign.tasks.tokenisation import Specials

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Shares of the hidden tokens that become the mask token and a random token; the rest stays (BERT, section 3.1).
MASKED, REPLACED = 0.8, 0.1


class _Column:
    """An array that is computed when it is asked for; the engine looks at lengths and targets of examples this way."""

    def __init__(self, of: Callable[[np.ndarray], np.ndarray]) -> None:
        self.of = of

    def __getitem__(self, members: np.ndarray) -> np.ndarray:
        return self.of(members)


class Blocks(Packed):
    """What the engine expects of a store, over an endless corpus: example n belongs to step n // batch.

    A block is the start token and `block` - 1 tokens of running text; `predicted` of its tokens have a target. When
    several processes share a step (`world`), each has an even part of the batch, in the order of their `rank`.
    """

    predicted: int

    def __init__(
        self, corpus: Corpus, batch: int, start: int, seed: int, position_offset: int = 0,
        rank: int = 0, world: int = 1,
    ) -> None:  # fmt: skip
        self.corpus, self.batch, self.start, self.seed = corpus, batch, start, seed
        self.block, self.position_offset = corpus.size + 1, position_offset
        self.rank, self.world = rank, world
        self.lengths = _Column(lambda members: np.full(len(members), self.block, dtype=np.int64))
        self.targets = _Column(lambda members: (self.rows(members)[2] != IGNORE).sum(1))
        self._step: tuple[int, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None

    def members(self, step: int) -> np.ndarray:
        """The examples of a step that are this process's."""
        part = self.batch // self.world
        return step * self.batch + self.rank * part + np.arange(part)

    def rows(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens (n, block), places to predict (n, predicted) and what stands there, of examples of one step."""
        step = int(members[0]) // self.batch
        return tuple(part[members - step * self.batch] for part in self._whole(step))

    def _whole(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for the whole step, whoever works on it: so its parts are those of one process."""
        if self._step is None or self._step[0] != step:
            ids = np.empty((self.batch, self.block), dtype=np.int64)
            ids[:, 0] = self.start
            ids[:, 1:] = self.corpus.blocks(np.arange(step * self.batch, (step + 1) * self.batch))
            self._step = (step, self._prepare(ids, step))
        return self._step[1]

    def _prepare(self, ids: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise NotImplementedError

    # ---- what the engine asks of a store ------------------------------------------------------------------------

    def exact_shape(self, members: np.ndarray) -> Shape:
        """All blocks are full: the shape depends on their number only."""
        return Shape(len(members), len(members) * self.block, self.block, 0)

    def static_shape(self, members: np.ndarray, batch: int) -> Shape:
        """A piece may be one block smaller than the others when a batch is split; it then has missing rows."""
        exact = self.exact_shape(np.empty(batch, dtype=np.int64))
        return Shape(exact.batch, exact.tokens, exact.length, 0, filled=len(members) < batch)

    def assemble(self, members: np.ndarray, shape: Shape, split: tuple[int, int] = (1, 1)) -> np.ndarray:
        """The batch of these examples as one vector."""
        vector = np.zeros(self.vector_size(shape), dtype=np.int64)
        views = self.views(vector, shape)
        ids, places, truth = self.rows(members)
        count, tokens = len(members), ids.size
        views["ids"][:tokens] = ids.reshape(-1)
        views["positions"][:tokens] = np.tile(np.arange(self.block) + self.position_offset, count)
        views["rows"][:tokens] = views["cells"][:tokens] = np.arange(tokens)
        views["lengths"][:count] = self.block
        views["split"][:] = split
        views["places"][:count] = places
        views["truth"][:] = IGNORE
        views["truth"][:count] = truth
        if self.world > 1:
            views["share"][:] = self._share(int(members[0]) // self.batch)
        return vector

    def _share(self, step: int) -> tuple[int, int]:
        """Targets of this process and of all."""
        counts = (self._whole(step)[2] != IGNORE).sum(1)
        part = self.batch // self.world
        return int(counts[self.rank * part : (self.rank + 1) * part].sum()), int(counts.sum())

    def sizes(self, shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Names and sizes of the parts of a batch's vector."""
        for name in ("ids", "positions", "rows", "cells"):
            yield name, (shape.tokens,)
        yield "lengths", (shape.batch,)
        yield "split", (2,)
        yield "places", (shape.batch, self.predicted)
        yield "truth", (shape.batch, self.predicted)
        if self.world > 1:
            yield "share", (2,)


class MaskedBlocks(Blocks):
    """Blocks with a share of their tokens hidden, which are to be predicted."""

    def __init__(
        self, corpus: Corpus, batch: int, start: int, mask: int, specials: set[int], vocabulary: int, seed: int,
        share: float = 0.15, position_offset: int = 0, rank: int = 0, world: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(corpus, batch, start, seed, position_offset, rank, world)
        if not 0 < share < 1:
            raise UserError(f"a share of {share} hidden tokens is not between 0 and 1")
        self.predicted = max(1, round(share * self.block))
        self.mask = mask
        self.special = np.zeros(vocabulary, dtype=bool)
        self.special[sorted(specials)] = True
        self.ordinary = np.flatnonzero(~self.special)

    def _prepare(self, ids: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        generator = numpy_generator(self.seed, "masking", step)
        # The places with the smallest numbers are hidden; special tokens never are, as long as there are others.
        numbers = generator.random(ids.shape, dtype=np.float32)
        numbers[self.special[ids]] = 2
        places = np.sort(np.argpartition(numbers, self.predicted - 1, axis=1)[:, : self.predicted], axis=1)
        rows = np.arange(self.batch)[:, None]
        truth = ids[rows, places]
        real = ~self.special[truth]
        fate = generator.random(places.shape)
        other = self.ordinary[generator.integers(len(self.ordinary), size=places.shape)]
        shown = np.where(fate < MASKED, self.mask, np.where(fate < MASKED + REPLACED, other, truth))
        ids[rows, places] = np.where(real, shown, truth)
        return ids, places, np.where(real, truth, IGNORE)


class CausalBlocks(Blocks):
    """Blocks in which every token but the last has to predict the next one."""

    @property
    def predicted(self) -> int:
        """Targets of a block."""
        return self.block - 1

    def _prepare(self, ids: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return ids, np.broadcast_to(np.arange(self.block - 1), (len(ids), self.block - 1)), ids[:, 1:]


def block_maker(config: EncoderConfig, tokenizer: Tokenizer, share: float) -> tuple[Callable[..., Blocks], set[int]]:
    """How blocks are made for a model of this kind, and the tokens that it never predicts."""
    specials, size = Specials.of(tokenizer), tokenizer.get_vocab_size()
    if size > config.vocab_size:
        raise UserError(
            f"the tokenizer has {size} pieces, the model {config.vocab_size} embeddings; they do not belong together"
        )
    offset = config.position_offset
    if config.causal:
        # Every text begins with what the one before it ends with.
        def causal(corpus: Corpus, batch: int, seed: int, **team: int) -> CausalBlocks:
            return CausalBlocks(corpus, batch, specials.sep, seed, offset, **team)

        return causal, {specials.cls, specials.pad}
    mask = mask_token(tokenizer)
    special = {specials.cls, specials.sep, specials.pad, specials.unk, mask}

    def masked(corpus: Corpus, batch: int, seed: int, **team: int) -> MaskedBlocks:
        return MaskedBlocks(corpus, batch, specials.cls, mask, special, size, seed, share, offset, **team)

    return masked, special
