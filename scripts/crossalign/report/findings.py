"""The findings of a run in words: those of findings.json or, where none is there yet, all of its papers as not run."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from crossalign.analysis.indexes import LABELS
from crossalign.papers.all_findings import findings
from crossalign.papers.all_items import ITEMS
from crossalign.results import names
from crossalign.results.findings.files import read_findings
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE, items_of
from crossalign.results.findings.judge import Estimate, Judged, not_run

# How many findings have a verdict, in words: of one, of several.
COUNTED = {
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    UNSURE: ("cannot be told either way", "cannot be told either way"),
    UNLEARNT: ("rests on a task that was not learnt", "rest on a task that was not learnt"),
    NOT_RUN: ("was not run", "were not run"),
}


class Line(NamedTuple):
    """A quantity in words. `ends` are those of its interval of 95 %, `over` seeds, languages or test sentences. A mean
    over several groups has no verdict of its own, and the ends are the least and the most of them.
    """

    words: str
    ours: str
    ends: str
    over: str
    bound: str
    printed: str
    verdict: str


@dataclass(frozen=True)
class Told(Judged):
    """A finding as the page and the overview tell it."""

    @property
    def anchor(self) -> str:
        """Where it stands in the page; letters that an address cannot hold are left out."""
        return re.sub(r"[^\w.-]", "-", f"finding-{self.paper}-{self.id}")

    @property
    def items(self) -> list[str]:
        """The tables and figures that it rests on."""
        return [name for name in items_of(self.paper, self.where) if name in ITEMS]

    @cached_property
    def lines(self) -> list[Line]:
        """What is compared, one line each; of several groups the means."""
        return lines_of([one for one in self.estimates if one.rule])

    @property
    def decides(self) -> Line | None:
        """The line that decides, where it is not the first."""
        others = [one for one in self.lines if one.verdict == self.verdict]
        return others[0] if others and others[0] is not self.lines[0] else None

    @property
    def groups(self) -> dict[str, list[Line]]:
        """Every quantity, by group."""
        found = dict.fromkeys(one.group for one in self.estimates)
        return {named(group): lines_of([one for one in self.estimates if one.group == group]) for group in found}


def tell(results: Path, papers: Iterable[str]) -> list[Told]:
    """The findings of some papers in a run."""
    papers, judged = list(papers), read_findings(results / "findings.json")
    if judged is None:
        judged = [not_run(one, "the run's findings were not judged yet") for one in findings()]
    return [Told(**vars(one)) for one in judged if one.paper in papers]


def counted(told: Iterable[Told]) -> dict[str, str]:
    """How many findings have each verdict, in words: `4 hold`."""
    counts = Counter(one.verdict for one in told)
    return {
        verdict: f"{counts[verdict]} {words[counts[verdict] > 1]}"
        for verdict, words in COUNTED.items()
        if counts[verdict]
    }


def lines_of(estimates: Iterable[Estimate]) -> list[Line]:
    """One line per quantity."""
    found: dict[str, list[Estimate]] = {}
    for one in estimates:
        found.setdefault(one.quantity, []).append(one)
    return [line(ones) for ones in found.values()]


def line(ones: list[Estimate]) -> Line:
    """A quantity that has one or more bounds, in one or more groups; the paper has a mean where it has every group."""
    rules = dict.fromkeys(one.rule for one in ones)
    same = [one for one in ones if one.rule == ones[0].rule]
    values, printed = [one.estimate for one in same], fmean(one.printed for one in same)
    ends = (min(values), max(values)) if len(same) > 1 else (same[0].low, same[0].high)
    ours, low, high, theirs = rounded(fmean(values), *ends, printed)
    verdicts = {one.verdict for one in ones} if len(same) == 1 else ()
    return Line(
        words=in_words(same[0].quantity),
        ours=ours,
        ends=f"{low} to {high}" if low and high else "",
        over="" if len(same) > 1 else f"{same[0].n} {same[0].over}" if same[0].n > 1 else same[0].over,
        bound=bounds(rules),
        printed=theirs,
        verdict=next((verdict for verdict in (FAILS, UNSURE, HOLDS) if verdict in verdicts), ""),
    )


def rounded(*numbers: float) -> list[str]:
    """Numbers with as many digits as the largest of them asks for; empty where one is not known."""
    size = max((abs(number) for number in numbers if not math.isnan(number)), default=0)
    digits = 1 if size >= 2 else 2 if size >= 0.1 else 3
    texts = ["" if math.isnan(number) else f"{number:.{digits}f}" for number in numbers]
    # No minus before nothing; a true minus sign, as in the tables.
    return [re.sub(r"^-(?=[0.]+$)", "", text).replace("-", "−") for text in texts]


def in_words(quantity: str) -> str:
    """`elsewhere - home` is elsewhere minus home."""
    text = re.sub(r"rho\((\w+), (\w+)\)", r"rank correlation of \1 with \2", quantity)
    return re.sub(r"\w+", lambda word: named(word[0]), text).replace(" - ", " minus ").replace("_", " ")


def bounds(rules: Iterable[str]) -> str:
    """What comparisons ask of a quantity: `below −2`, `between −1 and 1`."""
    found = [one for rule in rules for one in re.findall(r"([<>]) (\S+)$", rule.replace("-", "−"))]
    text = " and ".join(f"{'below' if sign == '<' else 'above'} {number}" for sign, number in found)
    return re.sub(r"^above (.+) and below", r"between \1 and", text)


def named(words: str) -> str:
    """Tasks, models, indexes and languages by their names: `POS, Russian`."""
    known = names.systems("mbert") | names.TASKS | names.MODELS | LABELS
    return ", ".join(known.get(word) or names.language(word.removeprefix("en-")) for word in words.split())
