"""Links as text: one line per sentence pair, `i-j` joined by spaces, source position first, counted from 0."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from crossalign.alignment.compiled import kernel
from crossalign.runtime.errors import UserError

_LINE = re.compile(rb"(?:\d+-\d+(?: +\d+-\d+)*)? *")
# Sentences turned into text, or read, at a time; bounds the buffer.
_BATCH = 20_000


@dataclass
class LinkSet:
    """Links of many sentence pairs; those of sentence s are at starts[s]..starts[s + 1]."""

    starts: np.ndarray
    source: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def from_positions(cls, partner: np.ndarray, starts: np.ndarray, reverse: bool = False) -> "LinkSet":
        """From an array with the partner's position of each word, or -1. `reverse`: the partners are target words."""
        linked = partner >= 0
        before = np.concatenate(([0], np.cumsum(linked)))
        own = (np.arange(len(partner)) - np.repeat(starts[:-1], np.diff(starts)))[linked].astype(np.int32)
        other = partner[linked]
        return cls(before[starts], *((own, other) if reverse else (other, own)))

    def pairs(self, sentence: int) -> list[tuple[int, int]]:
        """The links of one sentence pair."""
        span = slice(self.starts[sentence], self.starts[sentence + 1])
        return list(zip(self.source[span].tolist(), self.target[span].tolist(), strict=True))


@kernel
def _print_links(low, high, starts, source, target, digits, text):
    """Write the lines of sentences low..high into `text`; returns how many bytes were used."""
    used = 0
    for sentence in range(low, high):
        for link in range(starts[sentence], starts[sentence + 1]):
            if link > starts[sentence]:
                text[used] = 32
                used += 1
            for part in range(2):
                value = source[link] if part == 0 else target[link]
                length = 0
                while length == 0 or value > 0:
                    digits[length] = 48 + value % 10
                    value //= 10
                    length += 1
                while length > 0:
                    length -= 1
                    text[used] = digits[length]
                    used += 1
                if part == 0:
                    text[used] = 45
                    used += 1
        text[used] = 10
        used += 1
    return used


def print_links(links: LinkSet) -> Iterator[bytes]:
    """The text of all lines, in pieces."""
    largest = max((int(part.max()) for part in (links.source, links.target) if len(part)), default=0)
    width = 2 * len(str(largest)) + 2
    for low in range(0, len(links), _BATCH):
        high = min(low + _BATCH, len(links))
        text = np.empty(int(links.starts[high] - links.starts[low]) * width + high - low, np.uint8)
        used = _print_links(low, high, links.starts, links.source, links.target, np.empty(20, np.uint8), text)
        yield text[:used].tobytes()


def parse_links(lines: Iterable[bytes], name: str) -> LinkSet:
    """Read links; a UserError names the line that is not in this format."""
    counts: list[int] = []
    parts = [np.empty(0, np.int32)]
    lines = iter(lines)
    while batch := [line.rstrip(b"\r\n") for line in islice(lines, _BATCH)]:
        for number, line in enumerate(batch, len(counts) + 1):
            if not _LINE.fullmatch(line):
                shown = line[:40].decode("utf-8", "replace")
                raise UserError(f"{name}, line {number}: {shown!r} is not a list of links such as '0-0 1-2'")
        counts += [line.count(b"-") for line in batch]
        parts.append(np.array(b" ".join(batch).replace(b"-", b" ").split(), dtype=np.int32))
    starts = np.cumsum([0, *counts], dtype=np.int64)
    numbers = np.concatenate(parts).reshape(-1, 2)
    return LinkSet(starts, np.ascontiguousarray(numbers[:, 0]), np.ascontiguousarray(numbers[:, 1]))
