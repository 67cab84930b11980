"""Whole jobs: align a bitext in one direction or in both, and say what fast_align says meanwhile.

`original_links` does it with the program fast_align itself.
"""

import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from crossalign.alignment.bitext import Bitext
from crossalign.alignment.kernels import Workers
from crossalign.alignment.links import LinkSet, parse_links, symmetrise
from crossalign.alignment.model import BUDGET_MB, Aligner, Options, Step
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


def align_direction(bitext: Bitext, options: Options, workers: Workers, reverse: bool, budget_mb: float) -> LinkSet:
    """Links (source-target in any case) of one direction."""
    say(f"INITIAL PASS ({'reverse' if reverse else 'forward'})")
    facing = bitext.reversed() if reverse else bitext
    aligner = Aligner(facing, options, workers, budget_mb)
    links = aligner.train(Progress(aligner))
    return LinkSet.from_positions(links.source_of, facing.target.starts, reverse)


def align_symmetrised(
    bitext: Bitext, options: Options, workers: Workers, method: str, budget_mb: float = BUDGET_MB
) -> LinkSet:
    """Both directions, one after the other on all threads (half the memory of both at once), then one set of links."""
    both = [align_direction(bitext, options, workers, reverse, budget_mb) for reverse in (False, True)]
    return symmetrise(*both, method, workers)


def original_links(bitext: Bitext, method: str) -> LinkSet:
    """The links of the program fast_align, which must be on PATH, in both directions; symmetrised as ours are."""
    program = shutil.which("fast_align")
    if program is None:
        raise UserError("fast_align is not on PATH: build it (clab/fast_align on GitHub), or use the program 'builtin'")
    with tempfile.TemporaryDirectory(prefix="align-") as folder:
        text = Path(folder) / "bitext"
        with text.open("wb") as stream:
            for pair in np.flatnonzero(bitext.source.lengths):
                stream.write(bitext.source.text(pair) + b" ||| " + bitext.target.text(pair) + b"\n")
        return symmetrise(
            *(_ask([program, "-i", str(text), "-d", "-o", "-v", *more], bitext) for more in ((), ("-r",))), method
        )


def _ask(command: list[str], bitext: Bitext) -> LinkSet:
    """What the program prints, checked against the sentences, with an empty line for each pair it was not given."""
    say("+ " + " ".join(command))
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise UserError(f"fast_align ended with status {done.returncode}; its own messages are above")
    links = parse_links(done.stdout.splitlines(), "the links of fast_align")
    given = np.flatnonzero(bitext.source.lengths)
    if len(links) != len(given):
        raise UserError(f"fast_align printed {len(links)} lines of links for {len(given)} sentence pairs")
    pair = np.repeat(given, np.diff(links.starts))
    wrong = (links.source >= bitext.source.lengths[pair]) | (links.target >= bitext.target.lengths[pair])
    if wrong.any():
        first = int(np.argmax(wrong))
        linked = f"{links.source[first]}-{links.target[first]} in line {pair[first] + 1}"
        raise UserError(f"fast_align linked words that are not there: {linked}")
    count = np.bincount(pair, minlength=len(bitext))
    return LinkSet(np.concatenate(([0], np.cumsum(count))), links.source, links.target)
