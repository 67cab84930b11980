"""Whole jobs: align a bitext in one direction or in both, with new or with loaded parameters."""

import math
from dataclasses import dataclass, field

import numpy as np

from crossalign.alignment.bitext import Bitext
from crossalign.alignment.compiled import Workers
from crossalign.alignment.model import Aligner, Options
from crossalign.alignment.parameters import Parameters
from crossalign.alignment.pharaoh import LinkSet
from crossalign.alignment.progress import Progress, say
from crossalign.alignment.symmetrise import symmetrise
from crossalign.alignment.table import BUDGET_MB
from crossalign.runtime.errors import UserError


@dataclass
class Job:
    """Settings of a job. `loaded` holds parameters that replace training; `keep` says whether to collect new ones."""

    options: Options
    workers: Workers
    budget_mb: float = BUDGET_MB
    loaded: dict[str, Parameters] = field(default_factory=dict)
    keep: bool = False
    learnt: dict[str, Parameters] = field(default_factory=dict)


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
    check(job.options)
    name = "reverse" if reverse else "forward"
    facing = bitext.reversed() if reverse else bitext
    if job.loaded:
        if name not in job.loaded:
            raise UserError(f"the loaded model has no {name} direction; save one from a run with --symmetrise")
        aligner = job.loaded[name].aligner(facing, job.workers, job.budget_mb)
        found = aligner.links()
    else:
        say(f"INITIAL PASS ({name})")
        aligner = Aligner(facing, job.options, job.workers, job.budget_mb)
        found = aligner.train(Progress(aligner))
    if job.keep:
        job.learnt[name] = Parameters.of(aligner)
    scores = found.scores + _length_scores(facing, aligner.length_ratio)
    return LinkSet.from_positions(found.source_of, facing.target.starts, reverse), scores


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
