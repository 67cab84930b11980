"""fast_align's model: training by expectation maximisation, and the best links under it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crossalign.alignment import kernels
from crossalign.alignment.bitext import Bitext
from crossalign.alignment.compiled import Workers
from crossalign.alignment.diagonal import Prior, diagonal_prior, tune_tension, uniform_prior
from crossalign.alignment.table import BUDGET_MB, Block, Table

# Probability of every word pair before the first iteration, and later of pairs never seen in training.
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
