"""Whole jobs: align a bitext in one direction or in both, and say what fast_align says meanwhile."""

import math
import sys
from dataclasses import dataclass

import numpy as np

from crossalign.alignment.bitext import Bitext
from crossalign.alignment.kernels import Workers
from crossalign.alignment.links import LinkSet, symmetrise
from crossalign.alignment.model import BUDGET_MB, Aligner, Options, Step
from crossalign.alignment.parameters import Parameters
from crossalign.runtime.errors import UserError

_SHOWN = 10


def say(text: str) -> None:
    """One line on standard error, at once."""
    print(text, file=sys.stderr, flush=True)


def say_skipped(bitext: Bitext, name: str) -> None:
    """Name the first lines that were left without links, and how many there are."""
    for number, reason in bitext.skipped[:_SHOWN]:
        say(f"warning: {name}, line {number}: {reason}; left without links")
    if len(bitext.skipped) > _SHOWN:
        say(f"warning: {name}: {len(bitext.skipped)} lines in all are left without links")


class Progress:
    """Prints each iteration's likelihood, perplexity and tension in fast_align's words."""

    def __init__(self, aligner: Aligner) -> None:
        self.aligner = aligner
        say(f"expected target length = source length * {aligner.length_ratio:g}")

    def __call__(self, number: int, step: Step) -> None:
        words = self.aligner.target_words
        bits = step.likelihood / math.log(2)
        say(f"ITERATION {number}{' (FINAL)' if number == self.aligner.options.iterations else ''}")
        say(f"  log_e likelihood: {step.likelihood:g}")
        say(f"  log_2 likelihood: {bits:g}")
        say(f"     cross entropy: {-bits / words:g}")
        say(f"        perplexity: {2.0 ** min(-bits / words, 1000.0):g}")
        say(f"      posterior p0: {step.unlinked / words:g}")
        say(f" posterior al-feat: {step.feature / words:g}")
        say(f"       size counts: {self.aligner.sizes.distinct}")
        for turn, (feature, tension) in enumerate(step.tension_steps, 1):
            say(f"  {turn}  model al-feat: {feature:g} (tension={tension:g})")
        if step.tension_steps:
            say(f"     final tension: {step.tension:g}")


@dataclass
class Job:
    """Settings of a job. `loaded` are parameters that replace training; `keep` says whether to collect new ones."""

    options: Options
    workers: Workers
    budget_mb: float = BUDGET_MB
    loaded: Parameters | None = None
    keep: bool = False
    learnt: Parameters | None = None


def check(options: Options) -> None:
    """Refuse settings for which the model is not defined."""
    if options.iterations < 1:
        raise UserError(f"-I {options.iterations}: at least one iteration is needed")
    if options.variational_bayes and options.alpha <= 0:
        raise UserError(f"-a {options.alpha:g}: alpha must be greater than 0")
    if not 0 <= options.p0 < 1:
        raise UserError(f"-q {options.p0:g}: the probability of no link must be at least 0 and less than 1")
    # Beyond that, one factor of the prior leaves the range of floating-point numbers; learnt tensions end at 14.
    if not 0 < options.tension <= 500:
        raise UserError(f"-T {options.tension:g}: the tension must be greater than 0 and at most 500")


def align_direction(bitext: Bitext, job: Job, reverse: bool) -> tuple[LinkSet, np.ndarray]:
    """Links (source-target in any case) of one direction, and each pair's log-probability with the length's."""
    facing = bitext.reversed() if reverse else bitext
    if job.loaded:
        aligner = job.loaded.aligner(facing, job.workers, job.budget_mb)
        links = aligner.links()
    else:
        say(f"INITIAL PASS ({'reverse' if reverse else 'forward'})")
        aligner = Aligner(facing, job.options, job.workers, job.budget_mb)
        links = aligner.train(Progress(aligner))
    if job.keep:
        job.learnt = Parameters.of(aligner)
    scores = links.scores + _length_scores(facing, aligner.length_ratio)
    return LinkSet.from_positions(links.source_of, facing.target.starts, reverse), scores


def _length_scores(bitext: Bitext, ratio: float) -> np.ndarray:
    """Log-probability of each target length, Poisson around the expected one (fast_align's score has it, too)."""
    expected = 0.05 + bitext.source.lengths * ratio
    lengths = bitext.target.lengths
    factorial = np.array([math.lgamma(k + 1) for k in range(int(lengths.max()) + 1)])
    return np.log(expected) * lengths - factorial[lengths] - expected


def align_symmetrised(bitext: Bitext, job: Job, method: str) -> LinkSet:
    """Both directions, one after the other on all threads (half the memory of both at once), then one set of links."""
    forward, _ = align_direction(bitext, job, reverse=False)
    reverse, _ = align_direction(bitext, job, reverse=True)
    return symmetrise(forward, reverse, method, job.workers)
