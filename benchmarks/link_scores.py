"""Links against known links: precision, recall and alignment error rate (Och and Ney 2003)."""

from collections.abc import Iterable
from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass
class Score:
    """Sums over sentences, from which the rates follow."""

    found: int = 0
    sure: int = 0
    found_sure: int = 0
    found_possible: int = 0

    def add(self, links: Iterable[Pair], sure: Iterable[Pair], possible: Iterable[Pair] = ()) -> None:
        """Add one sentence; sure links are possible too, whether or not they are repeated there."""
        links, sure = set(links), set(sure)
        self.found += len(links)
        self.sure += len(sure)
        self.found_sure += len(links & sure)
        self.found_possible += len(links & (sure | set(possible)))

    @property
    def precision(self) -> float:
        """Share of the links that are possible."""
        return self.found_possible / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the sure links that were found."""
        return self.found_sure / self.sure if self.sure else 0.0

    @property
    def error_rate(self) -> float:
        """1 - (found sure + found possible) / (found + sure)."""
        total = self.found + self.sure
        return 1.0 - (self.found_sure + self.found_possible) / total if total else 0.0

    @property
    def f1(self) -> float:
        """Agreement of two sets of links, where all are sure."""
        total = self.found + self.sure
        return 2 * self.found_sure / total if total else 1.0


def parse_gold(line: str) -> tuple[set[Pair], set[Pair]]:
    """Sure and possible links of a line such as `1-1 2p3` (counted from 1, as in the shared tasks), counted from 0."""
    sure, possible = set(), set()
    for token in line.split():
        kind = "p" if "p" in token else "-"
        i, j = token.split(kind)
        (possible if kind == "p" else sure).add((int(i) - 1, int(j) - 1))
    return sure, possible
