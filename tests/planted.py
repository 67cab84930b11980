"""Frames with planted effects, and the verdict of a finding on them.

`spread` makes several seeds of frames that have one, each with noise; `verdict` judges. Mutants are frames in which an
effect is turned round: a finding that still holds on them would find anything.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from crossalign.papers.all_findings import findings, printed
from crossalign.results.comparable import papers_config
from crossalign.results.findings.finding import Finding
from crossalign.results.findings.judge import Judged, judge

# The medians in the caption of align-predict table 5 are 0.34 to 0.5 points; two pretrained models differ by less.
NOISE = {"scores": 0.4, "similarity": 0.005, "distances": 0.003}
NUMBERS = {"scores": ["value"], "similarity": ["value"], "distances": ["related", "unrelated", "separation"]}


def finding(name: str) -> Finding:
    """A finding by its id."""
    return next(one for one in findings() if one.id == name)


def spread(frames: Mapping[str, pd.DataFrame], seeds: int = 5, times: float = 1.0) -> dict[str, pd.DataFrame]:
    """The same numbers by several seeds, each with the papers' noise, so many times as large."""
    generator = np.random.default_rng(7)
    made = {}
    for name, frame in frames.items():
        copies = []
        for seed in range(1, seeds + 1):
            copy = frame[frame["seed"] == frame["seed"].min()].assign(seed=seed)
            noise = generator.standard_normal((len(copy), len(NUMBERS[name]))) * NOISE[name] * times
            copy[NUMBERS[name]] = copy[NUMBERS[name]] + noise
            copies.append(copy)
        made[name] = pd.concat(copies, ignore_index=True)
    return made


def judged(name: str, frames: Mapping[str, pd.DataFrame], config: dict | None = None) -> Judged:
    """A finding on frames, by default with the papers' config."""
    return judge(finding(name), frames, config or papers_config())


def verdict(name: str, frames: Mapping[str, pd.DataFrame], config: dict | None = None) -> str:
    """Its verdict alone."""
    return judged(name, frames, config).verdict


def as_printed(paper: str, seeds: int = 5, times: float = 1.0) -> dict[str, pd.DataFrame]:
    """What a paper prints, by several seeds."""
    return spread(printed(paper), seeds, times)
