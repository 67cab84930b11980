"""Links as text and their symmetrisation (Och and Ney 2003; Koehn, Och and Marcu 2003).

One line per sentence pair, `i-j` joined by spaces, source position first, counted from 0.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from crossalign.alignment.kernels import Workers, even_ranges, kernel
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


def print_links(links: LinkSet) -> Iterator[bytes]:
    """The text of all lines, in pieces."""
    for low in range(0, len(links), _BATCH):
        starts = links.starts[low : low + _BATCH + 1]
        span = slice(starts[0], starts[-1])
        pairs = zip(links.source[span].tolist(), links.target[span].tolist(), strict=True)
        texts = [f"{i}-{j}" for i, j in pairs]
        lines = (" ".join(texts[first:last]) for first, last in pairwise((starts - starts[0]).tolist()))
        yield "".join(f"{line}\n" for line in lines).encode()


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


METHODS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")
_INTERSECTION, _UNION, _GROW, _FINAL, _FINAL_AND = range(5)
# Bits of a cell; the first two are also the numbers of the steps that add the rest of a direction.
_FORWARD, _REVERSE, _CHOSEN = 1, 2, 4
_TASK_LINKS = 1 << 18


def method_number(name: str) -> int:
    """The number of a method; `intersect` is atools' name of the intersection."""
    name = "intersection" if name == "intersect" else name
    if name not in METHODS:
        raise UserError(f"no symmetrisation is called {name!r}; choose one of {', '.join(METHODS)}")
    return METHODS.index(name)


@kernel
def _merge(low, high, grid, linked_i, linked_j, waiting, method, starts1, source1, target1, starts2, source2, target2,
           source, target, count):  # fmt: skip
    """Symmetrise sentences low..high; their links go to source/target from starts1 + starts2 on, sorted."""
    for sentence in range(low, high):
        a, a_end, b, b_end = starts1[sentence], starts1[sentence + 1], starts2[sentence], starts2[sentence + 1]
        n, m = 0, 0
        for link in range(a, a_end):
            n, m = max(n, source1[link] + 1), max(m, target1[link] + 1)
        for link in range(b, b_end):
            n, m = max(n, source2[link] + 1), max(m, target2[link] + 1)
        # A border of empty cells spares every question about the edge: link (i, j) is cell (i + 1, j + 1).
        width = m + 2
        for cell in range((n + 2) * width):
            grid[cell] = 0
        for link in range(a, a_end):
            grid[(source1[link] + 1) * width + target1[link] + 1] |= _FORWARD
        for link in range(b, b_end):
            grid[(source2[link] + 1) * width + target2[link] + 1] |= _REVERSE

        for i in range(n + 2):
            linked_i[i] = False
        for j in range(width):
            linked_j[j] = False
        n_waiting = 0
        for cell in range((n + 2) * width):
            if grid[cell] == _FORWARD | _REVERSE or (method == _UNION and grid[cell] != 0):
                grid[cell] |= _CHOSEN
                linked_i[cell // width] = True
                linked_j[cell % width] = True
            elif grid[cell] != 0:
                waiting[n_waiting] = cell
                n_waiting += 1

        # Step 0 grows along neighbours until nothing changes; steps 1 and 2 add what is left of either direction.
        step, last = 0, (0 if method == _GROW else 2)
        while method >= _GROW and step <= last:
            changed = False
            for k in range(n_waiting):
                cell = waiting[k]
                if grid[cell] & _CHOSEN:
                    continue
                taken_i, taken_j = linked_i[cell // width], linked_j[cell % width]
                if step == 0:
                    fits = False
                    if not (taken_i and taken_j):
                        for shift in range(-width, 2 * width, width):
                            for near in range(cell + shift - 1, cell + shift + 2):
                                fits |= grid[near] & _CHOSEN != 0
                elif method == _FINAL:
                    fits = grid[cell] & step != 0 and not (taken_i and taken_j)
                else:
                    fits = grid[cell] & step != 0 and not (taken_i or taken_j)
                if fits:
                    grid[cell] |= _CHOSEN
                    linked_i[cell // width] = True
                    linked_j[cell % width] = True
                    changed = True
            if step > 0 or not changed:
                step += 1

        place = a + b
        for cell in range((n + 2) * width):
            if grid[cell] & _CHOSEN:
                source[place] = cell // width - 1
                target[place] = cell % width - 1
                place += 1
        count[sentence] = place - a - b


def symmetrise(forward: LinkSet, reverse: LinkSet, method: str, workers: Workers | None = None) -> LinkSet:
    """Combine the links of both directions, sentence by sentence; both must be source-target pairs.

    The order in which links are considered is atools': rows of the source, then of the target.
    """
    number = method_number(method)
    if len(forward) != len(reverse):
        raise UserError(
            f"the forward links have {len(forward)} lines, the reverse links {len(reverse)}; they must be equal"
        )
    room = forward.starts + reverse.starts
    source, target = np.empty(room[-1], np.int32), np.empty(room[-1], np.int32)
    count = np.zeros(len(forward), np.int64)
    arguments = (
        number, forward.starts, forward.source, forward.target, reverse.starts, reverse.source, reverse.target,
        source, target, count,
    )  # fmt: skip
    n, m = (
        3 + max((int(part.max()) for part in parts if len(part)), default=-1)
        for parts in ((forward.source, reverse.source), (forward.target, reverse.target))
    )
    most = int(np.diff(room).max(initial=0))

    def merge(low: int, high: int) -> None:
        flags = np.empty(n, np.bool_), np.empty(m, np.bool_)
        _merge(low, high, np.empty(n * m, np.uint8), *flags, np.empty(most, np.int64), *arguments)

    (workers or Workers(1)).run(merge, even_ranges(np.diff(room) + 1, _TASK_LINKS))
    starts = np.concatenate(([0], np.cumsum(count)))
    kept = np.arange(starts[-1]) + np.repeat(room[:-1] - starts[:-1], count)
    return LinkSet(starts, source[kept], target[kept])
