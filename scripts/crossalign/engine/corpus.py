"""Running text as blocks of tokens, and blocks as batches: with some tokens hidden, or with the next to predict.

Texts are encoded once into files of plain integers, which are mapped, not read; sentences end with the separator.
Which block comes when, and what is hidden in it, depends on the seed and the step alone, so training goes on exactly
where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossalign.engine.batches import IGNORE, Packed, Shape
from crossalign.engine.seeds import numpy_generator
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tokenizer import mask_token
from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Sentences encoded at a time, and draws of languages that are made at a time.
_LINES = 4096
_DRAWS = 1 << 16


def lines_of(path: Path) -> Iterator[str]:
    """The sentences of a prepared text, one a line."""
    try:
        with path.open(encoding="utf-8", newline="\n") as stream:
            for line in stream:
                line = line.strip()
                if line:
                    yield line
    except FileNotFoundError:
        raise UserError(f"{path}: no such text") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8: {error}") from None


def encode_texts(texts: dict[str, list[Path]], tokenizer: Tokenizer, folder: Path) -> dict[str, Path]:
    """Encode each text into `folder`, unless its file of numbers, made with the same vocabulary, is there already."""
    vocabulary = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    return {name: _encode(name, paths, tokenizer, vocabulary, folder) for name, paths in texts.items()}


def _encode(name: str, paths: list[Path], tokenizer: Tokenizer, vocabulary: str, folder: Path) -> Path:
    digest = hashlib.sha256(vocabulary.encode())
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: no such text")
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    kind = token_type(tokenizer.get_vocab_size())
    target = folder / f"{name}-{digest.hexdigest()[:16]}.{kind.name}"
    if target.exists():
        return target
    end = Specials.of(tokenizer).sep
    lines = (line for path in paths for line in lines_of(path))
    with write_atomic(target, "wb") as stream:
        while part := list(islice(lines, _LINES)):
            numbers: list[int] = []
            for encoding in tokenizer.encode_batch_fast(part, add_special_tokens=False):
                numbers += encoding.ids
                numbers.append(end)
            stream.write(np.asarray(numbers, dtype=kind).tobytes())
        if not stream.tell():
            raise UserError(f"text '{name}' has no sentences: {', '.join(map(str, paths))} is empty")
    return target


def token_type(vocabulary: int) -> np.dtype:
    """The smallest little-endian integers that hold the vocabulary."""
    return np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")


class Corpus:
    """Blocks of `size` tokens of several texts.

    A text of share q of all tokens is drawn with probability proportional to q ** exponent. Each text is gone through
    in epochs: its tokens, taken as a ring and entered at a new place, are cut into blocks and the blocks shuffled. So
    within an epoch nothing comes twice, and less than one block is left out, another stretch each time.
    """

    def __init__(self, files: dict[str, Path], size: int, exponent: float, seed: int) -> None:
        if not files:
            raise UserError("there is no text to train on; give --texts NAME=FILE")
        self.size, self.seed = size, seed
        self.names = sorted(files)
        self.tokens = [_mapped(name, files[name], size) for name in self.names]
        self.counts = np.array([len(tokens) for tokens in self.tokens], dtype=np.int64)
        weights = (self.counts / self.counts.sum()) ** exponent
        self.shares = weights / weights.sum()
        self._bounds = np.cumsum(self.shares)[:-1]
        self._draws: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._before = np.zeros((1, len(self.names)), dtype=np.int64)
        self._epochs: dict[tuple[int, int], tuple[int, np.ndarray]] = {}

    def blocks(self, numbers: np.ndarray) -> np.ndarray:
        """The blocks of these draws, counted from 0: (draws, size)."""
        texts, ordinals = self.drawn(numbers)
        result = np.empty((len(numbers), self.size), dtype=np.int64)
        for text in np.unique(texts):
            rows = np.flatnonzero(texts == text)
            result[rows] = self._read(int(text), ordinals[rows])
        return result

    def drawn(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each draw the number of its text, and how often that text was drawn before."""
        texts = np.empty(len(numbers), dtype=np.int64)
        ordinals = np.empty(len(numbers), dtype=np.int64)
        chunks = numbers // _DRAWS
        for chunk in np.unique(chunks):
            rows = np.flatnonzero(chunks == chunk)
            drawn, order = self._chunk(int(chunk))
            texts[rows] = drawn[numbers[rows] % _DRAWS]
            ordinals[rows] = order[numbers[rows] % _DRAWS]
        return texts, ordinals

    def unigram_entropy(self, leave_out: set[int], most: int = 1_000_000) -> float:
        """Loss, in nats, of a model that knows nothing but frequencies; from the first `most` tokens of each text.

        Training often stays there for a while before it finds that neighbours tell more.
        """
        counts = [np.bincount(np.asarray(tokens[:most], dtype=np.int64)) for tokens in self.tokens]
        mixture = np.zeros(max(map(len, counts)))
        for share, count in zip(self.shares, counts, strict=True):
            count[[number for number in leave_out if number < len(count)]] = 0
            mixture[: len(count)] += share * count / max(1, count.sum())
        mixture = mixture[mixture > 0] / max(mixture.sum(), 1e-12)
        return float(-(mixture * np.log(mixture)).sum())

    def _chunk(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        if chunk not in self._draws:
            while len(self._before) <= chunk:
                counts = np.bincount(self._languages(len(self._before) - 1), minlength=len(self.names))
                self._before = np.vstack([self._before, self._before[-1] + counts])
            drawn = self._languages(chunk)
            order = np.empty(_DRAWS, dtype=np.int64)
            for text in range(len(self.names)):
                rows = np.flatnonzero(drawn == text)
                order[rows] = self._before[chunk, text] + np.arange(len(rows))
            # A step may reach into the next chunk, none reaches further.
            self._draws = {key: value for key, value in self._draws.items() if key == chunk - 1}
            self._draws[chunk] = (drawn, order)
        return self._draws[chunk]

    def _languages(self, chunk: int) -> np.ndarray:
        uniform = numpy_generator(self.seed, "texts", chunk).random(_DRAWS)
        return np.searchsorted(self._bounds, uniform, side="right")

    def _read(self, text: int, ordinals: np.ndarray) -> np.ndarray:
        per_epoch = self.counts[text] // self.size
        starts = np.empty(len(ordinals), dtype=np.int64)
        for epoch in np.unique(ordinals // per_epoch):
            rows = np.flatnonzero(ordinals // per_epoch == epoch)
            first, order = self._epoch(text, int(epoch), int(per_epoch))
            starts[rows] = first + order[ordinals[rows] % per_epoch] * self.size
        places = (starts[:, None] + np.arange(self.size)) % self.counts[text]
        return self.tokens[text][places]

    def _epoch(self, text: int, epoch: int, blocks: int) -> tuple[int, np.ndarray]:
        key = (text, epoch)
        if key not in self._epochs:
            generator = numpy_generator(self.seed, "blocks", self.names[text], epoch)
            first = int(generator.integers(self.counts[text]))
            self._epochs.pop((text, epoch - 2), None)
            self._epochs[key] = (first, generator.permutation(blocks))
        return self._epochs[key]


class ShuffledCorpus(Corpus):
    """The same blocks, with the order of their tokens lost."""

    def blocks(self, numbers: np.ndarray) -> np.ndarray:
        return numpy_generator(self.seed, "order", int(numbers[0])).permuted(super().blocks(numbers), axis=1)


def token_count(path: Path) -> int:
    """The tokens of an encoded text."""
    return path.stat().st_size // _kind(path).itemsize


def _kind(path: Path) -> np.dtype:
    return np.dtype("<u2" if path.suffix == ".uint16" else "<u4")


def _mapped(name: str, path: Path, size: int) -> np.ndarray:
    kind, count = _kind(path), token_count(path)
    if count < size:
        raise UserError(f"text '{name}' has {count} tokens, less than one block of {size}; give more text")
    return np.memmap(path, dtype=kind, mode="r", shape=(count,))


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
        self, corpus: Corpus, batch: int, seed: int, start: int, position_offset: int = 0, rank: int = 0, world: int = 1
    ) -> None:
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
        self, corpus: Corpus, batch: int, seed: int, start: int, mask: int, specials: set[int], vocabulary: int,
        share: float = 0.15, **place: int,
    ) -> None:  # fmt: skip
        super().__init__(corpus, batch, seed, start, **place)
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
    place = {"position_offset": config.position_offset}
    if config.causal:
        # A text begins as the tokenizer says: XGLM's with what the one before it ends with.
        return partial(CausalBlocks, start=specials.frame.before[0], **place), {specials.cls, specials.pad}
    mask = mask_token(tokenizer)
    special = {specials.cls, specials.sep, specials.pad, specials.unk, mask}
    masked = {"start": specials.cls, "mask": mask, "specials": special, "vocabulary": size, "share": share}
    return partial(MaskedBlocks, **masked, **place), special
