"""The co-occurrence table of a bitext, built once: which target words each source word meets, and where.

Memory: 20 bytes per distinct word pair, about 30 per running word, and 2 or 4 bytes per cell (source word x target
word of a sentence pair). The cells are the bulk; where they exceed the budget, blocks of sentences take turns in one
buffer of that size, and their cells are written anew in every iteration. The result is the same to the last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossalign.alignment import kernels
from crossalign.alignment.bitext import Bitext
from crossalign.alignment.compiled import Workers, even_ranges
from crossalign.alignment.diagonal import Sizes

BUDGET_MB = 1024
# Cells per task: small enough to balance many cores, large enough to hide the cost of a call.
TASK_CELLS = 1 << 20


@dataclass
class Block:
    """Consecutive sentences with their cells in memory; they hold occurrences first..last of each source word."""

    low: int
    high: int
    first: np.ndarray
    last: np.ndarray
    sentence_ranges: list[tuple[int, int]]
    word_ranges: list[tuple[int, int]]


class Table:
    """Rows of target words per source word, and the cells that point into them."""

    def __init__(self, bitext: Bitext, workers: Workers, budget_mb: float = BUDGET_MB) -> None:
        self.bitext, self.workers = bitext, workers
        source, target = bitext.source, bitext.target
        self.cell_start = np.concatenate(([0], np.cumsum(source.lengths * target.lengths, dtype=np.int64)))
        self.longest = int(target.lengths.max())
        self.sizes = Sizes.of(source.lengths, target.lengths)
        of_j, of_i = self.sizes.starts()
        columns = (
            self.cell_start[:-1], source.starts[:-1], target.starts[:-1], source.lengths, target.lengths,
            self.sizes.of_sentence, of_j[self.sizes.of_sentence], of_i[self.sizes.of_sentence],
        )  # fmt: skip
        self.sentences = np.stack(columns, axis=1).astype(np.int64)
        self.order = np.argsort(source.tokens, kind="stable").astype(np.int32)
        self.place_sentence = np.repeat(np.arange(len(bitext), dtype=np.int32), source.lengths)[self.order]
        occurrences = np.bincount(source.tokens, minlength=len(source.words))
        self.type_start = np.concatenate(([0], np.cumsum(occurrences, dtype=np.int64)))
        self._build_rows()
        self._cut_blocks(budget_mb)
        self._filled: Block | None = None

    @property
    def pairs(self) -> int:
        """Distinct (source word, target word) pairs."""
        return len(self.row_target)

    def _work(self, low: int, high: int) -> np.ndarray:
        """Cells of each source word within sentences low..high."""
        source, target = self.bitext.source, self.bitext.target
        span = slice(source.starts[low], source.starts[high])
        weights = np.repeat(target.lengths[low:high], source.lengths[low:high])
        return np.bincount(source.tokens[span], weights=weights, minlength=len(source.words)).astype(np.int64)

    def _build_rows(self) -> None:
        target = self.bitext.target
        work = self._work(0, len(self.bitext))
        room = np.minimum(work, len(target.words))

        def row_piece(low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
            seen = np.full(len(target.words), -1, np.int32)
            found = np.empty(int(room[low:high].sum()), np.int32)
            lengths = np.zeros(high - low, np.int64)
            arguments = (self.type_start, self.place_sentence, self.sentences, target.tokens)
            filled = kernels.distinct_targets(low, high, seen, found, lengths, *arguments)
            return found[:filled].copy(), lengths

        results = self.workers.run(row_piece, even_ranges(work, TASK_CELLS))
        lengths = np.concatenate([lengths for _, lengths in results])
        self.row_start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self.row_target = np.concatenate([found for found, _ in results])
        self.row_ranges = even_ranges(lengths, TASK_CELLS)

    def _cut_blocks(self, budget_mb: float) -> None:
        widest = int(np.diff(self.row_start).max())
        kind = np.dtype(np.uint16 if widest <= 1 << 16 else np.uint32)
        sizes = np.diff(self.cell_start)
        fitting = max(int(budget_mb * 2**20 / kind.itemsize), int(sizes.max()))
        self.blocks, low, first = [], 0, self.type_start[:-1]
        while low < len(sizes):
            high = int(np.searchsorted(self.cell_start, self.cell_start[low] + fitting, side="right")) - 1
            span = slice(self.bitext.source.starts[low], self.bitext.source.starts[high])
            last = first + np.bincount(self.bitext.source.tokens[span], minlength=len(first))
            sentences = [(low + a, low + b) for a, b in even_ranges(sizes[low:high], TASK_CELLS)]
            self.blocks.append(Block(low, high, first, last, sentences, even_ranges(self._work(low, high), TASK_CELLS)))
            low, first = high, last
        self.cells = np.empty(max(int(self.cell_start[b.high] - self.cell_start[b.low]) for b in self.blocks), kind)

    def filled_blocks(self) -> Iterator[Block]:
        """Each block in turn, with `cells` holding its ranks."""
        for block in self.blocks:
            if self._filled is not block:
                self._fill(block)
            yield block

    def _fill(self, block: Block) -> None:
        target = self.bitext.target

        def fill(low: int, high: int) -> None:
            rank = np.zeros(len(target.words), np.int32)
            kernels.fill_cells(
                low, high, rank, self.cells, self.cell_start[block.low], block.first, block.last, self.order,
                self.place_sentence, self.sentences, target.tokens, self.row_start, self.row_target,
            )  # fmt: skip

        self.workers.run(fill, block.word_ranges)
        self._filled = block
