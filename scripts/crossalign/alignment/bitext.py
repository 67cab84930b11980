"""Parallel text: `source ||| target` lines as arrays of word numbers, and the prepared pool of scored pairs."""

import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from crossalign.runtime.errors import UserError

MAX_WORDS = 1000
SEPARATOR = b"|||"


@dataclass
class Side:
    """One language: all words in a row, where each sentence starts, and the spelling of each word number."""

    tokens: np.ndarray
    starts: np.ndarray
    words: list[bytes]

    @property
    def lengths(self) -> np.ndarray:
        """Words per sentence."""
        return np.diff(self.starts)

    def text(self, sentence: int) -> bytes:
        """The words of a sentence."""
        return b" ".join(self.words[word] for word in self.tokens[self.starts[sentence] : self.starts[sentence + 1]])


@dataclass
class Bitext:
    """Sentence pairs; a pair that cannot be aligned has no words on either side, so that line numbers stay true."""

    source: Side
    target: Side
    skipped: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.source.starts) - 1

    def reversed(self) -> "Bitext":
        """The same pairs with source and target exchanged."""
        return replace(self, source=self.target, target=self.source)


class _Collector:
    """Numbers words in order of first appearance and strings them together."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = defaultdict()
        self.numbers.default_factory = self.numbers.__len__
        self.tokens = array("i")
        self.starts = array("q", [0])

    def add(self, words: list[bytes]) -> None:
        self.tokens.extend(map(self.numbers.__getitem__, words))
        self.starts.append(len(self.tokens))

    def side(self) -> Side:
        return Side(np.array(self.tokens, np.int32), np.array(self.starts, np.int64), list(self.numbers))


def split_words(text: bytes) -> list[bytes]:
    """Words between spaces and tabs. Vertical tabs and form feeds belong to words, as in fast_align."""
    if b"\x0b" in text or b"\x0c" in text:
        return [word for word in text.strip(b"\r\n").replace(b"\t", b" ").split(b" ") if word]
    return text.split()


def split_pair(raw: bytes, name: str, number: int) -> tuple[list[bytes], list[bytes]]:
    """The words before and after `|||`; a UserError names the line that has none or is not UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{name}, line {number}: byte {error.start + 1} is not UTF-8; convert the file first") from None
    words = split_words(raw)
    try:
        middle = words.index(SEPARATOR)
    except ValueError:
        raise UserError(f"{name}, line {number}: no '|||'; each line must be 'source words ||| target words'") from None
    return words[:middle], words[middle + 1 :]


def read_bitext(lines: Iterable[bytes], name: str, max_words: int = MAX_WORDS) -> Bitext:
    """Read `source ||| target` lines; pairs with an empty or an overlong side are kept as empty pairs and listed."""
    source, target = _Collector(), _Collector()
    skipped = []
    for number, raw in enumerate(lines, 1):
        left, right = split_pair(raw, name, number)
        reason = None
        if not left or not right:
            reason = "no words on one side"
        elif max(len(left), len(right)) > max_words:
            reason = f"{max(len(left), len(right))} words on one side, at most {max_words} are aligned"
        if reason:
            skipped.append((number, reason))
            left, right = [], []
        source.add(left)
        target.add(right)
    bitext = Bitext(source.side(), target.side(), skipped)
    if not len(bitext):
        raise UserError(f"{name} has no lines")
    if len(skipped) == len(bitext):
        raise UserError(f"{name}: no pair can be aligned (line {skipped[0][0]}: {skipped[0][1]})")
    return bitext


def read_bitext_file(path: str, max_words: int = MAX_WORDS) -> Bitext:
    """Read a bitext from a file, or from standard input for `-`."""
    if path == "-":
        return read_bitext(sys.stdin.buffer, "standard input", max_words)
    try:
        with Path(path).open("rb") as stream:
            return read_bitext(stream, path, max_words)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


Pair = tuple[list[str], list[str]]
_BATCH = 10_000


def read_pool(path: str | Path) -> Iterator[Pair]:
    """The two word lists of each line `score TAB English words TAB other words`."""
    try:
        with Path(path).open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                try:
                    columns = raw.decode("utf-8").rstrip("\r\n").split("\t")
                except UnicodeDecodeError as error:
                    raise UserError(f"{path}, line {number}: byte {error.start + 1} is not UTF-8") from None
                if len(columns) != 3:
                    raise UserError(
                        f"{path}, line {number}: {len(columns)} columns instead of score, English words, other words"
                    )
                yield _words(columns[1]), _words(columns[2])
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _words(text: str) -> list[str]:
    """Words between spaces; other white space, which some programs would split at, is part of its word."""
    words = [word for word in text.split(" ") if word]
    return words if len(words) == len(text.split()) else [re.sub(r"\s", "_", word) for word in words]


def in_pieces(pairs: Iterator[Pair], tokenizer_file: str | Path) -> Iterator[Pair]:
    """Each side as the numbers of its word pieces, without special tokens, in the order of the words."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the library raises plain Exception for a missing and for a broken file
        raise UserError(f"cannot read the tokenizer {tokenizer_file}: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def numbers(sides: list[list[str]]) -> list[list[str]]:
        encoded = tokenizer.encode_batch(sides, is_pretokenized=True, add_special_tokens=False)
        return [[str(number) for number in one.ids] for one in encoded]

    while batch := list(islice(pairs, _BATCH)):
        yield from zip(numbers([left for left, _ in batch]), numbers([right for _, right in batch]), strict=True)


def bitext_lines(pairs: Iterable[Pair]) -> Iterator[bytes]:
    """Pairs as `source ||| target` lines."""
    for sides in pairs:
        # A word that looks like the separator would be taken for it.
        left, right = (" ".join(words).replace("|||", "¦¦¦") for words in sides)
        yield f"{left} ||| {right}\n".encode()


def filter_links(
    links: Iterable[tuple[int, int]], source: Sequence[str], target: Sequence[str]
) -> list[tuple[int, int]]:
    """Keep the links whose two words have no other link and are not the same string. Indexes count from 0.

    A word linked twice tells nothing certain about either partner, and identical strings (names, numbers, punctuation)
    are the same to the model already.
    """
    links = sorted(set(links))
    uses_source = Counter(i for i, _ in links)
    uses_target = Counter(j for _, j in links)
    return [(i, j) for i, j in links if uses_source[i] == 1 and uses_target[j] == 1 and source[i] != target[j]]
