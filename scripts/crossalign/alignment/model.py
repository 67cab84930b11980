"""fast_align's model (Dyer, Chahuneau and Smith 2013): the diagonal prior, the table of words that meet, training.

Target position j of m is linked to source position i of n with probability proportional to
exp(-tension * |i/n - j/m|), to no word with probability p0. The partition function and its derivative are
geometric series on both sides of the diagonal (section 3.1 of the paper). They are computed for all sentence sizes
at once.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crossalign.alignment import kernels
from crossalign.alignment.bitext import Bitext
from crossalign.alignment.kernels import Workers, even_ranges


@dataclass
class Sizes:
    """The distinct (source length n, target length m) of a bitext, and which of them each sentence has."""

    source: np.ndarray
    target: np.ndarray
    count: np.ndarray
    of_sentence: np.ndarray

    @classmethod
    def of(cls, source_lengths: np.ndarray, target_lengths: np.ndarray) -> "Sizes":
        """Count the sizes."""
        base = int(target_lengths.max()) + 1
        keys, inverse, count = np.unique(
            source_lengths * base + target_lengths, return_inverse=True, return_counts=True
        )
        return cls(keys // base, keys % base, count, inverse.astype(np.int32))

    @property
    def distinct(self) -> int:
        """How many sizes occur, not counting pairs that were left out."""
        return int(np.count_nonzero(self.source))

    def starts(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each size begins in arrays over target positions and in arrays over source positions."""
        return _strung(self.target)[2], _strung(self.source)[2]


@dataclass
class Prior:
    """Probability of link (i, j) as a product of one factor of i and one of j.

    Below the diagonal (j/m <= i/n) it is `rise[j] * shrink[i]`, above it `fall[j] * grow[i]`; so the inner loops
    need no exponential. Arrays of all sizes are strung together; `Sizes.starts` says where each begins.
    """

    rise: np.ndarray
    fall: np.ndarray
    grow: np.ndarray
    shrink: np.ndarray
    null: np.ndarray


def _strung(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For lengths 2, 3: owners 0 0 1 1 1, positions 1 2 1 2 3, starts 0 2."""
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return owner, np.arange(len(owner)) - starts[owner] + 1, starts


def _series(nearest: np.ndarray, terms: np.ndarray, n: np.ndarray, tension: float) -> tuple[np.ndarray, np.ndarray]:
    """Sum of exp(-tension * x) and of x * exp(-tension * x) for x = nearest, nearest + 1/n, ... (`terms` values)."""
    ratio = np.exp(-tension / n)
    rest = -np.expm1(-tension / n)
    first = np.exp(-tension * nearest)
    power = np.exp(-tension / n * terms)
    total = first * (1 - power) / rest
    # sum of k * ratio**k for k < terms
    steps = ratio * (1 - power) / rest**2 - terms * power / rest
    return np.where(terms > 0, total, 0.0), np.where(terms > 0, nearest * total + first * steps / n, 0.0)


def partition(sizes: Sizes, tension: float) -> tuple[np.ndarray, np.ndarray]:
    """The partition function of each (size, target position), and the model's expectation of -|i/n - j/m| there."""
    owner, j, _ = _strung(sizes.target)
    n, m = sizes.source[owner], sizes.target[owner]
    below = j * n // m
    lower, lower_distance = _series(j / m - below / n, below, n, tension)
    upper, upper_distance = _series((below + 1) / n - j / m, n - below, n, tension)
    total = lower + upper
    return total, -(lower_distance + upper_distance) / total


def diagonal_prior(sizes: Sizes, tension: float, p0: float, use_null: bool) -> Prior:
    """The prior with the given tension. Without a null word the others still share 1 - p0, as in fast_align."""
    owner, j, _ = _strung(sizes.target)
    total, _ = partition(sizes, tension)
    scale = (1.0 - p0) / total
    bend = tension * j / sizes.target[owner]
    owner, i, _ = _strung(sizes.source)
    slope = tension * i / sizes.source[owner]
    null = np.full(len(sizes.source), p0 if use_null else 0.0)
    return Prior(scale * np.exp(bend), scale * np.exp(-bend), np.exp(slope), np.exp(-slope), null)


def uniform_prior(sizes: Sizes, use_null: bool) -> Prior:
    """The prior of IBM Model 1: every source word and the null word alike."""
    owner, _, _ = _strung(sizes.target)
    each = 1.0 / np.maximum(sizes.source + use_null, 1)
    ones = np.ones(int(sizes.source.sum()))
    null = each if use_null else np.zeros(len(each))
    return Prior(each[owner], each[owner], ones, ones, null)


def model_feature(sizes: Sizes, tension: float, target_words: int) -> float:
    """The model's mean of -|i/n - j/m| over all target words."""
    owner, _, _ = _strung(sizes.target)
    return float(np.sum(sizes.count[owner] * partition(sizes, tension)[1])) / target_words


def tune_tension(
    sizes: Sizes, tension: float, observed: float, target_words: int
) -> tuple[float, list[tuple[float, float]]]:
    """Eight gradient steps of size 20 towards the observed feature, in [0.1, 14]; also (feature, tension) per step."""
    steps = []
    for _ in range(8):
        expected = model_feature(sizes, tension, target_words)
        steps.append((expected, tension))
        tension = min(max(tension + 20.0 * (observed - expected), 0.1), 14.0)
    return tension, steps


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
    """Which target words each source word meets (its row), and where: cells that point into the rows. Built once.

    Memory: 20 bytes per distinct word pair, about 30 per running word, and 2 or 4 bytes per cell (source word x target
    word of a sentence pair). The cells are the bulk; where they exceed the budget, blocks of sentences take turns in
    one buffer of that size, and their cells are written anew in every iteration. The result is the same to the bit.
    """

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
            met = np.empty(int(room[low:high].sum()), np.int32)
            lengths = np.zeros(high - low, np.int64)
            arguments = (self.type_start, self.place_sentence, self.sentences, target.tokens)
            filled = kernels.distinct_targets(low, high, seen, met, lengths, *arguments)
            return met[:filled].copy(), lengths

        results = self.workers.run(row_piece, even_ranges(work, TASK_CELLS))
        lengths = np.concatenate([lengths for _, lengths in results])
        self.row_start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self.row_target = np.concatenate([met for met, _ in results])
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


# Probability of every word pair before the first iteration.
FLOOR = 1e-9


@dataclass(frozen=True)
class Options:
    """fast_align's settings, with its defaults."""

    iterations: int = 5
    favour_diagonal: bool = False
    tension: float = 4.0
    optimise_tension: bool = False
    variational_bayes: bool = False
    alpha: float = 0.01
    p0: float = 0.08
    use_null: bool = True


@dataclass
class Step:
    """What one iteration saw: sums over the bitext under the parameters before its update."""

    likelihood: float
    unlinked: float
    feature: float
    tension_steps: list[tuple[float, float]] = field(default_factory=list)
    tension: float = 0.0


@dataclass
class Links:
    """For each target word the source position it is linked to, or -1; and the log-likelihood of each sentence."""

    source_of: np.ndarray
    scores: np.ndarray


class Aligner:
    """One direction of the model over one bitext: the source predicts the target."""

    def __init__(
        self, bitext: Bitext, options: Options, workers: Workers | None = None, budget_mb: float = BUDGET_MB
    ) -> None:
        self.bitext, self.options = bitext, options
        self.table = Table(bitext, workers or Workers(), budget_mb)
        self.sizes = self.table.sizes
        self.tension = options.tension
        self.prob = np.full(self.table.pairs, FLOOR)
        self.null_prob = np.full(len(bitext.target.words), FLOOR)
        self.target_words = len(bitext.target.tokens)
        real = bitext.source.lengths > 0
        self.length_ratio = float(np.mean(bitext.target.lengths[real] / bitext.source.lengths[real]))

    def prior(self) -> Prior:
        """The prior under the present tension."""
        if self.options.favour_diagonal:
            return diagonal_prior(self.sizes, self.tension, self.options.p0, self.options.use_null)
        return uniform_prior(self.sizes, self.options.use_null)

    def _over_sentences(self, function: Callable, block: Block, prior: Prior, *results: Any) -> None:
        """Run a kernel that reads sentence by sentence."""
        table = self.table
        arguments = (
            table.cells, table.cell_start[block.low], table.sentences, self.bitext.source.tokens,
            self.bitext.target.tokens, table.row_start, self.prob, self.null_prob,
            prior.rise, prior.fall, prior.grow, prior.shrink, prior.null, *results,
        )  # fmt: skip

        def task(low: int, high: int) -> None:
            function(low, high, np.empty(table.longest), np.empty(table.longest), *arguments)

        table.workers.run(task, block.sentence_ranges)

    def iterate(self, tune: bool = False) -> Step:
        """One iteration of training: expectations under the present parameters, then the update of the parameters."""
        table, prior = self.table, self.prior()
        inverse = np.zeros(self.target_words)
        counts = np.zeros(table.pairs)
        sums = np.zeros((3, len(self.bitext)))
        for block in table.filled_blocks():
            self._over_sentences(kernels.expect, block, prior, inverse, sums)
            arguments = (
                table.cells, table.cell_start[block.low], block.first, block.last, table.order, table.place_sentence,
                table.sentences, table.row_start, prior.rise, prior.fall, prior.grow, prior.shrink, inverse, counts,
            )  # fmt: skip
            table.workers.run(kernels.count_links, [(low, high, *arguments) for low, high in block.word_ranges])
        step = Step(*(math.fsum(part) for part in sums))
        if tune:
            observed = step.feature / self.target_words
            self.tension, step.tension_steps = tune_tension(self.sizes, self.tension, observed, self.target_words)
        step.tension = self.tension
        self._update(counts, inverse, prior)
        return step

    def _update(self, counts: np.ndarray, inverse: np.ndarray, prior: Prior) -> None:
        alpha = self.options.alpha if self.options.variational_bayes else 0.0
        table, target = self.table, self.bitext.target
        table.workers.run(
            kernels.normalise,
            [(low, high, table.row_start, self.prob, counts, alpha) for low, high in table.row_ranges],
        )
        if self.options.use_null:
            weights = inverse * np.repeat(prior.null[self.sizes.of_sentence], target.lengths)
            null_counts = np.bincount(target.tokens, weights=weights, minlength=len(target.words))
            kernels.normalise(0, 1, np.array([0, len(target.words)]), self.null_prob, null_counts, alpha)

    def links(self) -> Links:
        """The most probable link of every target word."""
        links = Links(np.empty(self.target_words, np.int32), np.zeros(len(self.bitext)))
        prior = self.prior()
        for block in self.table.filled_blocks():
            self._over_sentences(kernels.best_links, block, prior, self.options.use_null, links.source_of, links.scores)
        return links

    def train(self, report: Callable[[int, Step], None] = lambda number, step: None) -> Links:
        """All iterations; like fast_align's, the last one updates nothing but finds the links.

        The tension is tuned from the second iteration on.
        """
        for number in range(1, self.options.iterations):
            tune = self.options.favour_diagonal and self.options.optimise_tension and number > 1
            report(number, self.iterate(tune))
        links = self.links()
        report(self.options.iterations, Step(math.fsum(links.scores), 0.0, 0.0, [], self.tension))
        return links
