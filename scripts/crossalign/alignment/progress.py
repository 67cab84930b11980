"""What fast_align says on standard error while it works."""

import math
import sys

from crossalign.alignment.bitext import Bitext
from crossalign.alignment.model import Aligner, Step

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
        aligner = self.aligner
        final = number == aligner.options.iterations
        words = aligner.target_words
        bits = step.likelihood / math.log(2)
        say(f"ITERATION {number}{' (FINAL)' if final else ''}")
        say(f"  log_e likelihood: {step.likelihood:g}")
        say(f"  log_2 likelihood: {bits:g}")
        say(f"     cross entropy: {-bits / words:g}")
        say(f"        perplexity: {2.0 ** min(-bits / words, 1000.0):g}")
        say(f"      posterior p0: {step.unlinked / words:g}")
        say(f" posterior al-feat: {step.feature / words:g}")
        say(f"       size counts: {aligner.sizes.distinct}")
        for turn, (feature, tension) in enumerate(step.tension_steps, 1):
            say(f"  {turn}  model al-feat: {feature:g} (tension={tension:g})")
        if step.tension_steps:
            say(f"     final tension: {step.tension:g}")
