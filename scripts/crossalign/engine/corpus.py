"""Text as blocks of tokens, cut from running text or one for each line, and blocks as batches: with some tokens
hidden, or with the next to predict.

Texts are encoded once into files of plain integers, which are mapped, not read; sentences end with the separator.
Which block comes when, and what is hidden in it, depends on the seed and the step alone, so training goes on exactly
where it stopped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossalign.engine.batches import IGNORE, Batch, Packed
from crossalign.engine.seeds import numpy_generator
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tokens import Specials, named_token
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import sha256, write_atomic

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Sentences encoded at a time, and draws of languages that are made at a time.
_LINES = 4096
_DRAWS = 1 << 16
# What follows a line in a block that it does not fill.
FILLER = -1


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
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: no such text")
    digest = hashlib.sha256("".join([vocabulary, *map(sha256, paths)]).encode()).hexdigest()[:16]
    # The smallest little-endian integers that hold the vocabulary.
    kind = np.dtype("<u2" if tokenizer.get_vocab_size() <= 1 << 16 else "<u4")
    target = folder / f"{name}-{digest}.{kind.name}"
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


def mapped(path: Path) -> np.ndarray:
    """The tokens of an encoded text, not read yet."""
    return np.memmap(path, dtype="<u2" if path.suffix == ".uint16" else "<u4", mode="r")


class Corpus:
    """Blocks of `size` tokens of several texts.

    A text of share q of all tokens is drawn with probability proportional to q ** exponent. Each text is gone through
    in epochs: its tokens, taken as a ring and entered at a new place, are cut into blocks and the blocks shuffled. So
    within an epoch nothing comes twice, and less than one block is left out, another stretch each time.
    """

    full = True

    def __init__(self, files: dict[str, Path], size: int, exponent: float, seed: int) -> None:
        if not files:
            raise UserError("there is no text to train on; give --texts NAME=FILE")
        self.size, self.seed = size, seed
        self.names = sorted(files)
        self.tokens = [mapped(files[name]) for name in self.names]
        self.counts = np.array([len(tokens) for tokens in self.tokens], dtype=np.int64)
        # Blocks of an epoch.
        self.examples = self._examples()
        # How much of a text there is counts by its tokens, or by its lines, which differ in length.
        sizes = self.counts if self.full else self.examples
        weights = (sizes / sizes.sum()) ** exponent
        self.shares = weights / weights.sum()
        self._bounds = np.cumsum(self.shares)[:-1]
        # How often each text was drawn before each chunk of draws.
        self._before = [np.zeros(len(self.names), dtype=np.int64)]
        # A step may reach into the next chunk or epoch, none reaches further.
        self._chunk = lru_cache(2)(self._chunk)
        self._epoch = lru_cache(2 * len(self.names))(self._epoch)

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
        texts, ordinals = np.empty((2, len(numbers)), dtype=np.int64)
        for chunk in np.unique(numbers // _DRAWS):
            rows = numbers // _DRAWS == chunk
            drawn, order = self._chunk(int(chunk))
            texts[rows], ordinals[rows] = drawn[numbers[rows] % _DRAWS], order[numbers[rows] % _DRAWS]
        return texts, ordinals

    def _chunk(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        while len(self._before) <= chunk:
            counts = np.bincount(self._languages(len(self._before) - 1), minlength=len(self.names))
            self._before.append(self._before[-1] + counts)
        drawn, order = self._languages(chunk), np.empty(_DRAWS, dtype=np.int64)
        for text, before in enumerate(self._before[chunk]):
            rows = np.flatnonzero(drawn == text)
            order[rows] = before + np.arange(len(rows))
        return drawn, order

    def _languages(self, chunk: int) -> np.ndarray:
        uniform = numpy_generator(self.seed, "texts", chunk).random(_DRAWS)
        return np.searchsorted(self._bounds, uniform, side="right")

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

    def mean_length(self) -> float:
        """Tokens of a block without its start, on average over an epoch."""
        return self.size

    def _examples(self) -> np.ndarray:
        for name, count in zip(self.names, self.counts, strict=True):
            if count < self.size:
                raise UserError(f"text '{name}' has {count} tokens, less than one block of {self.size}; give more text")
        return self.counts // self.size

    def _read(self, text: int, ordinals: np.ndarray) -> np.ndarray:
        firsts, numbers = self._drawn_blocks(text, ordinals)
        places = (firsts[:, None] + numbers[:, None] * self.size + np.arange(self.size)) % self.counts[text]
        return self.tokens[text][places]

    def _drawn_blocks(self, text: int, ordinals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the epochs of these draws enter the text, and the numbers of their blocks."""
        per_epoch = int(self.examples[text])
        firsts, numbers = np.empty((2, len(ordinals)), dtype=np.int64)
        for epoch in np.unique(ordinals // per_epoch):
            rows = np.flatnonzero(ordinals // per_epoch == epoch)
            firsts[rows], order = self._epoch(text, int(epoch))
            numbers[rows] = order[ordinals[rows] % per_epoch]
        return firsts, numbers

    def _epoch(self, text: int, epoch: int) -> tuple[int, np.ndarray]:
        generator = numpy_generator(self.seed, "blocks", self.names[text], epoch)
        return int(generator.integers(self.counts[text])), generator.permutation(int(self.examples[text]))


class Lines(Corpus):
    """A block for each line: its tokens, cut if there are too many, the separator, and filler.

    So do language-modelling scripts read a text line by line. Within an epoch each line comes once.
    """

    full = False

    def __init__(self, files: dict[str, Path], size: int, exponent: float, seed: int, *, end: int) -> None:
        self.end = end
        super().__init__(files, size, exponent, seed)

    def mean_length(self) -> float:
        spans = [np.diff(ends, prepend=-1).clip(max=self.size) for ends in self._ends]
        return float(sum(span.sum() for span in spans) / self.examples.sum())

    def _examples(self) -> np.ndarray:
        self._ends = [np.flatnonzero(tokens == self.end) for tokens in self.tokens]
        return np.array([len(ends) for ends in self._ends], dtype=np.int64)

    def _read(self, text: int, ordinals: np.ndarray) -> np.ndarray:
        ends, (_, numbers) = self._ends[text], self._drawn_blocks(text, ordinals)
        starts = np.where(numbers > 0, ends[numbers - 1] + 1, 0)
        lengths = np.minimum(ends[numbers] - starts, self.size - 1)[:, None]
        within = np.arange(self.size)
        tokens = self.tokens[text][np.minimum(starts[:, None] + within, self.counts[text] - 1)].astype(np.int64)
        return np.where(within < lengths, tokens, np.where(within == lengths, self.end, FILLER))


# Shares of the hidden tokens that become the mask token and a random token; the rest stays (BERT, section 3.1).
MASKED, REPLACED = 0.8, 0.1


class _Column:
    """An array that is computed when it is asked for; the engine looks at lengths and targets of examples this way."""

    def __init__(self, of: Callable[[np.ndarray], np.ndarray]) -> None:
        self.of = of

    def __getitem__(self, members: np.ndarray) -> np.ndarray:
        return self.of(members)


class Blocks(Packed):
    """A store over an endless corpus: example n belongs to step n // batch.

    A block is the start token and `block` - 1 tokens of a text, or fewer if it is a line; at most `predicted` of its
    tokens have a target.
    """

    predicted: int
    # Tokens that are never predicted.
    never: set[int]

    def __init__(self, corpus: Corpus, batch: int, seed: int, start: int, position_offset: int = 0) -> None:
        self.corpus, self.batch, self.start, self.seed = corpus, batch, start, seed
        self.block, self.position_offset = corpus.size + 1, position_offset
        self.lengths = _Column(self._lengths)
        self.targets = _Column(lambda members: (self.rows(members)[2] != IGNORE).sum(1))
        self._whole = lru_cache(1)(self._whole)

    def members(self, step: int) -> np.ndarray:
        """The examples of a step."""
        return np.arange(step * self.batch, (step + 1) * self.batch)

    def mean_length(self) -> float:
        """Tokens of a block, on average over an epoch."""
        return 1 + self.corpus.mean_length()

    def rows(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens (n, block), places to predict (n, predicted) and what stands there, of examples of one step."""
        step = int(members[0]) // self.batch
        return tuple(part[members - step * self.batch] for part in self._whole(step))

    def _whole(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ids = np.empty((self.batch, self.block), dtype=np.int64)
        ids[:, 0] = self.start
        ids[:, 1:] = self.corpus.blocks(self.members(step))
        return self._prepare(ids, step)

    def _prepare(self, ids: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise NotImplementedError

    def static_shape(self, lengths: np.ndarray, rows: int) -> tuple[int, int, bool]:
        """Of full blocks there is one. A piece of a batch may be one block smaller than the others."""
        if self.corpus.full:
            return rows * self.block, self.block, len(lengths) < rows
        return super().static_shape(lengths, rows)

    def assemble(self, members: np.ndarray, rows: int | None = None) -> Batch:
        ids, places, truth = self.rows(members)
        lengths = self.lengths[members]
        batch = self.pack(ids[np.arange(self.block) < lengths[:, None]], lengths, rows)
        missing = ((0, (rows or len(members)) - len(members)), (0, 0))
        batch.tensors["places"] = np.pad(places, missing)
        batch.tensors["truth"] = np.pad(truth, missing, constant_values=IGNORE)
        return batch

    def _lengths(self, members: np.ndarray) -> np.ndarray:
        if self.corpus.full:
            return np.full(len(members), self.block, dtype=np.int64)
        return (self.rows(members)[0] != FILLER).sum(1)


class MaskedBlocks(Blocks):
    """Blocks with a share of their tokens hidden, which are to be predicted."""

    def __init__(
        self, corpus: Corpus, batch: int, seed: int, start: int, mask: int, specials: set[int], vocabulary: int,
        share: float = 0.15, position_offset: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(corpus, batch, seed, start, position_offset)
        self.never = specials
        # Of lines sometimes one more than the share, as it is met on average.
        self.share, self.predicted = share, max(1, (round if corpus.full else math.ceil)(share * self.block))
        self.mask = mask
        self.special = np.zeros(vocabulary, dtype=bool)
        self.special[sorted(specials)] = True
        self.ordinary = np.flatnonzero(~self.special)

    def _prepare(self, ids: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        generator = numpy_generator(self.seed, "masking", step)
        # The places with the smallest numbers are hidden; special tokens never are, as long as there are others.
        numbers = generator.random(ids.shape, dtype=np.float32)
        numbers[self.special[ids] | (ids == FILLER)] = 2
        rows = np.arange(self.batch)[:, None]
        places = np.argpartition(numbers, self.predicted - 1, axis=1)[:, : self.predicted]
        if not self.corpus.full:
            # Of a line as large a share on average; 0 is the start token, which is never hidden.
            most = np.floor(self.share * (numbers < 2).sum(1) + generator.random(self.batch))
            rank = np.argsort(np.argsort(numbers[rows, places], axis=1), axis=1)
            places[rank >= most[:, None]] = 0
        places.sort(axis=1)
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
        truth = ids[:, 1:]
        real = truth != FILLER
        return ids, np.where(real, np.arange(self.block - 1), 0), np.where(real, truth, IGNORE)


def make_blocks(
    config: EncoderConfig, tokenizer: Tokenizer, files: dict[str, Path], settings: Any, exponent: float, seed: int
) -> Blocks:
    """Encoded texts as a model of this kind learns from them."""
    specials, size = Specials.of(tokenizer), tokenizer.get_vocab_size()
    if size > config.vocab_size:
        raise UserError(
            f"the tokenizer has {size} pieces, the model {config.vocab_size} embeddings; they do not belong together"
        )
    kind = partial(Lines, end=specials.sep) if settings.line_by_line else Corpus
    corpus = kind(files, settings.block - 1, exponent, seed)
    how = {"batch": settings.batch, "seed": seed, "position_offset": config.position_offset}
    if config.causal:
        # A text begins as the tokenizer says: XGLM's with what the one before it ends with.
        blocks = CausalBlocks(corpus, start=specials.frame.before[0], **how)
        blocks.never = {specials.cls, specials.pad}
        return blocks
    mask = named_token(tokenizer, "mask")
    if mask is None:
        raise UserError("the tokenizer has neither [MASK] nor <mask>; masked language modelling needs one")
    special = {specials.cls, specials.sep, specials.pad, specials.unk, mask}
    return MaskedBlocks(
        corpus, start=specials.cls, mask=mask, specials=special, vocabulary=size, share=settings.masking, **how
    )
