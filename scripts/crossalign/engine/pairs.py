"""Word-linked sentence pairs as the adjustment uses them (`adjust`, section 5.1): sampled, as numbers, in batches.

A sentence is a row of units: [CLS], its words (or word pieces), [SEP]. The vector of a unit is the mean of the tokens
that belong to it; aggregation decides which do.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossalign.alignment.bitext import filter_links, read_pool
from crossalign.engine.batches import Batch, Field, Packed, Store, grid, padded, ranges, round_up
from crossalign.engine.seeds import numpy_generator
from crossalign.engine.tokens import CHUNK, Specials, word_pieces
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

Links = list[tuple[int, int]]

# As in `alignment.links`, which would bring the aligner's compiler along.
_LINE = re.compile(rb"(?:\d+-\d+(?: +\d+-\d+)*)? *")


@dataclass(frozen=True)
class Row:
    """One sampled pair: its line in both files, the words of both sides, the links as the aligner gave them."""

    line: int
    english: list[str]
    other: list[str]
    links: Links


@dataclass(frozen=True)
class Sample:
    """The sampled pairs, how large the pool is, and the file that errors about links name."""

    rows: list[Row]
    pool: int
    links_file: str

    def usable(self, row: Row, english: Sequence[Hashable], other: Sequence[Hashable], unit: str = "words") -> Links:
        """The links of a row that its adjustment uses. `english` and `other` are what the links count: words or pieces.

        Raises a UserError for a link that points at nothing.
        """
        for i, j in row.links:
            if i >= len(english) or j >= len(other):
                raise UserError(
                    f"{self.links_file}, line {row.line}: link {i}-{j} points outside the sentences, which have "
                    f"{len(english)} and {len(other)} {unit} (counted from 0); align this pool again"
                )
        return filter_links(row.links, english, other)


def sample_lines(pool: int, pairs: int, seed: int) -> np.ndarray:
    """Which lines of a pool, counted from 0 and in rising order, a run of this seed uses.

    Smaller samples are parts of larger ones. When more are asked for than there are, all lines are taken.
    """
    if pairs < 1:
        raise UserError(f"{pairs} sentence pairs: at least 1 is needed")
    return np.sort(numpy_generator(seed, "sentence pairs").permutation(pool)[:pairs])


def read_sample(bitext: str | Path, links: str | Path, pairs: int, seed: int) -> Sample:
    """The `pairs` sampled lines of a pool (`score TAB English TAB other`) with their links, line by line beside it."""
    pool, linked = (sum(1 for _ in read_lines(path)) for path in (bitext, links))
    if not pool:
        raise UserError(f"{bitext} has no lines; each line must be 'score TAB English words TAB other words'")
    if pool != linked:
        raise UserError(f"{links} has {linked} lines but {bitext} has {pool}; align this pool again")
    chosen = sample_lines(pool, pairs, seed)
    if len(chosen) < pairs:
        log.warning("%s has %d sentence pairs, not %d: all of them are taken", bitext, pool, pairs)
    wanted = np.zeros(pool, dtype=bool)
    wanted[chosen] = True
    lines = zip(wanted.tolist(), read_pool(bitext), read_lines(links), strict=True)
    rows = [
        Row(number, english, other, parse_links(line, links, number))
        for number, (take, (english, other), line) in enumerate(lines, 1)
        if take
    ]
    return Sample(rows, pool, str(links))


def read_lines(path: str | Path) -> Iterator[bytes]:
    """The lines of a file as they are."""
    try:
        with Path(path).open("rb") as stream:
            yield from stream
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def parse_links(line: bytes, path: str | Path, number: int) -> Links:
    """The links of one line, such as `0-0 1-2`."""
    line = line.rstrip(b"\r\n")
    if not _LINE.fullmatch(line):
        shown = line[:40].decode("utf-8", "replace")
        raise UserError(f"{path}, line {number}: {shown!r} is not a list of links such as '0-0 1-2'")
    numbers = list(map(int, line.replace(b"-", b" ").split()))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


AGGREGATIONS = ("avg", "start", "end", "subword")
TOKENS = ("cls", "clssep", "words", "all")


@dataclass(frozen=True)
class Choice:
    """Ablations of tables 6 and 7: which sub-words are a word's vector, and which vectors are pulled together.

    `subword`: every word piece is a unit of its own, and the links are between pieces.
    """

    aggregation: str = "avg"
    tokens: str = "all"

    def __post_init__(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            raise UserError(f"aggregation '{self.aggregation}' is not one of {', '.join(AGGREGATIONS)}")
        if self.tokens not in TOKENS:
            raise UserError(f"token choice '{self.tokens}' is not one of {', '.join(TOKENS)}")


@dataclass(frozen=True)
class Pair:
    """Both sentences (`input_ids`, and for each token the `unit` it belongs to, or -1), and for each English unit the
    unit of the other sentence that it is pulled to, or -1."""

    english: dict[str, list[int]]
    other: dict[str, list[int]]
    partners: list[int]


def make_pairs(
    sample: Sample, tokenizer: Tokenizer, choice: Choice, max_length: int
) -> tuple[list[Pair], dict[str, int]]:
    """The pairs of a sample that can be used, and how many were dropped for which reason."""
    specials = Specials.of(tokenizer)
    room = specials.room(max_length)
    sentences = [side for row in sample.rows for side in (row.english, row.other)]
    if choice.aggregation == "subword":
        sides = _whole_pieces(tokenizer, sentences)
    else:
        # One piece more than fits, so that a sentence with an endless word is seen to be too long.
        split = word_pieces(tokenizer, sentences, room + 1)
        sides = [split(words) for words in sentences]
    pairs, dropped = [], {"without links": 0, "too long": 0}
    for row, english, other in zip(sample.rows, sides[::2], sides[1::2], strict=True):
        if choice.aggregation == "subword":
            links = sample.usable(row, *([ids[0] for ids in side] for side in (english, other)), unit="word pieces")
        else:
            links = sample.usable(row, row.english, row.other)
        if not links:
            # Whatever is pulled together, the sentences are the same: the ablations of table 7 share their data.
            dropped["without links"] += 1
        elif max(sum(map(len, side)) for side in (english, other)) > room:
            dropped["too long"] += 1
        else:
            partners = _partners(links, len(english), len(other), choice.tokens, bool(specials.frame.after))
            pairs.append(Pair(*(_sentence(specials, side, choice) for side in (english, other)), partners))
    return pairs, dropped


def _whole_pieces(tokenizer: Tokenizer, sentences: Sequence[list[str]]) -> list[list[list[int]]]:
    """For each sentence its pieces as the aligner counted them: a word of which nothing remains counts as none."""
    result = []
    for start in range(0, len(sentences), CHUNK):
        part = sentences[start : start + CHUNK]
        encodings = tokenizer.encode_batch_fast(part, is_pretokenized=True, add_special_tokens=False)
        result += [[[number] for number in encoding.ids] for encoding in encodings]
    return result


def _sentence(specials: Specials, pieces: list[list[int]], choice: Choice) -> dict[str, list[int]]:
    units = [0, *[-1] * (len(specials.frame.before) - 1)]
    for number, word in enumerate(pieces, 1):
        rest = len(word) - 1
        if choice.aggregation == "start":
            units += [number, *[-1] * rest]
        elif choice.aggregation == "end":
            units += [*[-1] * rest, number]
        else:
            units += [number] * (rest + 1)
    if after := len(specials.frame.after):
        units += [*[-1] * (after - 1), len(pieces) + 1]
    return {"input_ids": specials.single(list(chain.from_iterable(pieces))), "unit": units}


def _partners(links: list[tuple[int, int]], english: int, other: int, tokens: str, ended: bool) -> list[int]:
    """`ended`: the tokenizer puts a token behind a text. Where it does not, as in decoders, none is pulled."""
    partners = [-1] * (1 + english + ended)
    if tokens != "words":
        partners[0] = 0
    if tokens in ("clssep", "all") and ended:
        partners[-1] = other + 1
    if tokens in ("words", "all"):
        for i, j in links:
            partners[i + 1] = j + 1
    return partners


class PairStore(Packed):
    """A store whose examples are pairs: a batch holds two sequences for each, the longest first.

    A batch's fields beside `unit` (of every token): for each pair the rows of its sentences (`english`, `other`), the
    number of its English units (`count`) and the first of them among those of all pairs (`first`); for each of its
    units the `partner` among the units of the other sentence, or -1.
    """

    def __init__(self, pairs: Sequence[Pair], position_offset: int = 0, max_length: int = 512) -> None:
        sentences = [sentence for pair in pairs for sentence in (pair.english, pair.other)]
        self.sequences = Store(sentences, {"unit": Field(-1, "sequence")}, position_offset, max_length)
        self.lengths = self.sequences.lengths.reshape(-1, 2).sum(1)
        self.counts = np.array([len(pair.partners) for pair in pairs])
        self.starts = np.cumsum(self.counts) - self.counts
        self.partners = np.array([unit for pair in pairs for unit in pair.partners])
        self.most_units = np.array([max(len(pair.partners), 1 + max(pair.other["unit"])) for pair in pairs])
        linked = np.array([sum(unit >= 0 for unit in pair.partners) for pair in pairs])
        # Of the two terms of equation 1.
        self.targets = np.stack([linked, self.counts], axis=1)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def ids(self) -> np.ndarray:
        return self.sequences.ids

    def contents(self) -> list[np.ndarray]:
        """All that tells these pairs from others."""
        sequences = self.sequences
        return [sequences.ids, sequences.lengths, sequences.values["unit"], self.counts, self.partners]

    def remap(self, mapping: np.ndarray) -> None:
        self.sequences.remap(mapping)

    def assemble(self, members: np.ndarray, rows: int | None = None) -> Batch:
        sentences = (2 * np.asarray(members)[:, None] + np.arange(2)).reshape(-1)
        # Neighbours of like length waste less where attention works on padded groups.
        order = np.argsort(-self.sequences.lengths[sentences], kind="stable")
        batch = self.sequences.assemble(sentences[order], None if rows is None else 2 * rows)
        english, other = np.argsort(order).reshape(-1, 2).T
        counts, most = self.counts[members], int(self.most_units[members].max())
        batch.words = most if rows is None else round_up(most, 128)
        rows = rows or len(members)
        fields = {"english": english, "other": other, "count": counts, "first": self.starts[members]}
        batch.tensors |= {name: padded(values, rows) for name, values in fields.items()}
        partners = self.partners[ranges(self.starts[members], counts)]
        batch.tensors["partner"] = grid(partners, counts, (rows, batch.words), -1)
        return batch
