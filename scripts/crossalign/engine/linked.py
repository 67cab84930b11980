"""A sample of the word-linked sentence pairs of a pool, as the adjustment uses them (`adjust`, section 5.1)."""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossalign.alignment.bitext import read_pool
from crossalign.data.bitext import filter_links
from crossalign.engine.seeds import numpy_generator
from crossalign.runtime.errors import UserError

log = logging.getLogger(__name__)

Links = list[tuple[int, int]]

# As in `alignment.pharaoh`, which would bring the aligner's compiler along.
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
    pool, linked = _count(bitext), _count(links)
    if not pool:
        raise UserError(f"{bitext} has no lines; each line must be 'score TAB English words TAB other words'")
    if pool != linked:
        raise UserError(f"{links} has {linked} lines but {bitext} has {pool}; align this pool again")
    chosen = sample_lines(pool, pairs, seed)
    if len(chosen) < pairs:
        log.warning("%s has %d sentence pairs, not %d: all of them are taken", bitext, pool, pairs)
    wanted = np.zeros(pool, dtype=bool)
    wanted[chosen] = True
    lines = zip(wanted.tolist(), read_pool(bitext), _lines(links), strict=True)
    rows = [
        Row(number, english, other, _parse(line, links, number))
        for number, (take, (english, other), line) in enumerate(lines, 1)
        if take
    ]
    return Sample(rows, pool, str(links))


def _count(path: str | Path) -> int:
    return sum(1 for _ in _lines(path))


def _lines(path: str | Path) -> Iterator[bytes]:
    try:
        with Path(path).open("rb") as stream:
            yield from stream
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _parse(line: bytes, path: str | Path, number: int) -> Links:
    line = line.rstrip(b"\r\n")
    if not _LINE.fullmatch(line):
        shown = line[:40].decode("utf-8", "replace")
        raise UserError(f"{path}, line {number}: {shown!r} is not a list of links such as '0-0 1-2'")
    numbers = list(map(int, line.replace(b"-", b" ").split()))
    return list(zip(numbers[::2], numbers[1::2], strict=True))
