"""A set of digests in a flat table: eight bytes a place, where a Python set of integers takes seventy or more."""

import hashlib
from array import array


class SeenTexts:
    """Remembers texts by a 64-bit digest, for corpora of many millions of lines.

    Two different texts share a digest by chance once in some 10^19 comparisons; among 50 million lines that loses a
    line with a probability below 1 in 10,000.
    """

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 << 12))
        self._used = 0

    def add(self, text: str) -> bool:
        """Remember `text`; say whether it is new."""
        # Zero marks a free place.
        digest = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) or 1
        if not self._place(self._table, digest):
            return False
        self._used += 1
        if 2 * self._used > len(self._table):
            larger = array("Q", bytes(16 * len(self._table)))
            for old in self._table:
                if old:
                    self._place(larger, old)
            self._table = larger
        return True

    @staticmethod
    def _place(table: array, digest: int) -> bool:
        mask = len(table) - 1
        place = digest & mask
        while (found := table[place]) and found != digest:
            place = (place + 1) & mask
        table[place] = digest
        return not found

    def __len__(self) -> int:
        return self._used
