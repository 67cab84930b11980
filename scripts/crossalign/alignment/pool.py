"""A prepared pool of scored sentence pairs, and the bitext that alignment programs read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from crossalign.runtime.errors import UserError

Pair = tuple[list[str], list[str]]
_BATCH = 10_000


@dataclass
class Lengths:
    """Words per side of each line of the pool that was handed to the program, and which lines those are."""

    lines: int
    numbers: np.ndarray
    source: np.ndarray
    target: np.ndarray


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


def write_bitext(pairs: Iterator[Pair], path: Path, name: str, max_words: int) -> Lengths:
    """Write `source ||| target` lines for the pairs that can be aligned."""
    kept, sizes, lines = [], [], 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        for lines, (left, right) in enumerate(pairs, 1):
            if not 0 < min(len(left), len(right)) <= max(len(left), len(right)) <= max_words:
                continue
            kept.append(lines - 1)
            sizes.append((len(left), len(right)))
            # A word that looks like the separator would be taken for it.
            stream.write(" ".join(w.replace("|||", "¦¦¦") for w in left))
            stream.write(" ||| ")
            stream.write(" ".join(w.replace("|||", "¦¦¦") for w in right))
            stream.write("\n")
    if not lines:
        raise UserError(f"{name} has no lines; each line must be 'score TAB English words TAB other words'")
    if not kept:
        raise UserError(f"{name}: none of {lines} lines has 1 to {max_words} words on both sides")
    table = np.array(sizes, np.int64)
    return Lengths(lines, np.array(kept), table[:, 0], table[:, 1])
