"""Mined sentence pairs: WikiMatrix in, a pool of the best pairs as `score TAB English words TAB other words` out.

The rules on sentences are applied here: no empty side, no pair twice, at most 64 words on a side, the best by margin
score. The rules on links need the word alignment and are applied after it (`alignment.bitext.filter_links`).
"""

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Iterator

from crossalign.data.lines import numbered, shown, wrong
from crossalign.data.report import Report
from crossalign.data.text import tidy


def read_scored(lines: Iterable[str], name: str) -> Iterator[tuple[int, str, str, str]]:
    """Rows of a file of scored pairs: line number, score as written, English, the other language."""
    for number, line in numbered(lines, name):
        fields = line.split("\t")
        if len(fields) != 3:
            raise wrong(name, number, f"{len(fields)} fields instead of score, English, other: {shown(line)}")
        try:
            usable = math.isfinite(float(fields[0]))
        except ValueError:
            usable = False
        if not usable:
            raise wrong(name, number, f"score {shown(fields[0])} is not a number")
        yield number, *fields


class Pool:
    """The best pairs seen so far, at most `size`; of equal scores the earlier pair wins.

    Memory is bounded by the size of the pool, not by the corpus. Pairs are tokenised only when their score would let
    them in, which for a sorted corpus means hardly more often than the pool has places.
    """

    def __init__(
        self,
        size: int,
        max_words: int,
        english: Callable[[str], list[str]],
        other: Callable[[str], list[str]],
        report: Report,
    ) -> None:
        self.size = size
        self.max_words = max_words
        self.english = english
        self.other = other
        self.report = report
        # Rank is (score, -line). The smallest is the first to leave; keys are digests of the pair's text.
        self._heap: list[tuple[tuple[float, int], bytes]] = []
        self._held: dict[bytes, tuple[tuple[float, int], str, str, str]] = {}

    def add(self, number: int, score: str, english: str, other: str) -> None:
        """Offer one pair; count the one that does not stay."""
        self.report.read += 1
        reason = self._try(number, score, tidy(english), tidy(other))
        if reason:
            self.report.drop(reason)

    def _try(self, number: int, score: str, english: str, other: str) -> str | None:
        if not english or not other:
            return "empty side"
        if max(english.count(" "), other.count(" ")) >= self.max_words:
            # Tokenising only ever splits words, so this pair is too long whatever it does.
            return "too long"
        rank = (float(score), -number)
        # Tokenising changes spaces only: without them, pairs that will look alike are alike.
        bare = f"{english}\t{other}".replace(" ", "")
        key = hashlib.blake2b(bare.encode(), digest_size=16).digest()
        twin = self._held.get(key)
        if twin:
            if rank > twin[0]:
                self._hold(key, (rank, score, *twin[2:]))
            return "duplicate"
        self._discard_outdated()
        if len(self._held) >= self.size and rank < self._heap[0][0]:
            return "score below the pool"
        words = self.english(english), self.other(other)
        if not words[0] or not words[1]:
            return "empty side"
        if max(map(len, words)) > self.max_words:
            return "too long"
        self._hold(key, (rank, score, " ".join(words[0]), " ".join(words[1])))
        if len(self._held) <= self.size:
            return None
        self._discard_outdated()
        del self._held[heapq.heappop(self._heap)[1]]
        return "score below the pool"

    def _hold(self, key: bytes, entry: tuple[tuple[float, int], str, str, str]) -> None:
        self._held[key] = entry
        heapq.heappush(self._heap, (entry[0], key))

    def _discard_outdated(self) -> None:
        # A pair that came again with a better score has an old entry left in the heap.
        while self._heap and self._held.get(self._heap[0][1], (None,))[0] != self._heap[0][0]:
            heapq.heappop(self._heap)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """The pool, best pair first: score, English words, other words."""
        for entry in sorted(self._held.values(), reverse=True):
            yield entry[1:]
