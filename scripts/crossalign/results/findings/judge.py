"""How a run judges a finding: an estimate with its 95 % interval for every comparison, and a verdict.

Several seeds: Student's t over the seeds of the mean over languages, each seed paired with itself. One seed: bootstrap
over the languages; for fewer than five, over test sentences, by drawing every score again within its error. Rank
correlations: bootstrap over languages, of the means over seeds.

A comparison holds where its whole interval does, does not hold where none of the interval does, and cannot be told
otherwise.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pandas as pd

from crossalign.analysis.correlations import spearman, spearman_interval
from crossalign.results.comparable import papers_config
from crossalign.results.findings.comparison import Comparison
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE, Finding, NotRun
from crossalign.results.findings.views import HALF, Frames, views
from crossalign.results.frames import AS_MEASURED

RESAMPLES = 1000
# A bootstrap over fewer languages would know too little of their spread.
FEW = 5
# Floors of competence: what guessing reaches on nine in ten public test sets at most (docs/understand/verdicts.md).
FLOORS = {"nli": 33.3, "pos": 34.0, "parsing": 16.0, "ner": 20.0, "qa": 22.0}
LENGTH = "length"


@dataclass(frozen=True)
class Estimate:
    """A quantity, or a difference of two, with its interval; without a bound it is shown and not judged."""

    group: str
    quantity: str
    rule: str
    estimate: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    over: str = ""
    verdict: str = ""
    printed: float = math.nan


@dataclass(frozen=True)
class Judged:
    """A finding in a run."""

    id: str
    paper: str
    says: str
    sentence: str
    where: str
    verdict: str
    reason: str = ""
    # Of groups that are judged apart: `4 of 6 languages`.
    agreement: str = ""
    # The verdict with the length of sentences taken out, where similarity is read.
    controlled: str = ""
    why: str = ""
    estimates: list[Estimate] = field(default_factory=list)


# The means over languages of a group in every draw; None where nothing can be drawn.
Draws = Callable[[str], pd.DataFrame | None]


def judge_all(
    findings: Iterable[Finding],
    frames: Mapping[str, pd.DataFrame],
    config: dict,
    printed: Callable[[str], Mapping[str, pd.DataFrame]],
    left_out: Callable[[str], str],
) -> list[Judged]:
    """Every finding judged; `printed` makes a paper's own frames, `left_out` says why an item is no part of the run."""
    view = cache(lambda paper, control: views(frames, paper, config, control))
    judged = []
    for one in findings:
        found = judge(one, view(one.paper, AS_MEASURED), config, left_out)
        if "similarity" in one.reads and found.verdict in (HOLDS, FAILS, UNSURE):
            # Not every measure is made with length taken out.
            second = judge(one, view(one.paper, LENGTH), config).verdict
            found = replace(found, controlled="" if second == NOT_RUN else second)
        theirs = estimates_of(one, printed(one.paper))
        beside = [replace(own, printed=theirs.get((own.group, own.quantity), math.nan)) for own in found.estimates]
        judged.append(replace(found, estimates=beside))
    return judged


def judge(
    finding: Finding,
    frames: Mapping[str, pd.DataFrame],
    config: dict,
    left_out: Callable[[str], str] = lambda item: "",
) -> Judged:
    """One finding on the frames of its paper."""
    try:
        table = finding.quantities(frames, config).dropna(how="all")
        if table[[name for one in finding.comparisons for name in one.names]].isna().all().any():
            skipped = [why for item in finding.items if (why := left_out(item))]
            raise NotRun(skipped[0] if skipped else f"no results yet for {finding.where}")
    except NotRun as why:
        return not_run(finding, str(why))

    @cache
    def drawn() -> dict[str, pd.DataFrame]:
        own = frames if isinstance(frames, Frames) else Frames(frames)
        groups = _groups(finding.quantities(own.drawn, config), finding.each)
        return {group: rows.groupby(level="seed").mean() for group, rows in groups}

    estimates, verdicts, reasons, lacking = [], [], [], []
    for group, rows in _groups(table, finding.each):
        if why := not_learnt(finding, rows):
            verdicts.append(UNLEARNT)
            reasons.append(why)
            continue
        found = [_estimate(one, group, rows, lambda group: drawn().get(group)) for one in finding.comparisons]
        if any(math.isnan(one.estimate) for one in found):
            lacking.append(group)
            continue
        verdicts.append(_all([one.verdict for one in found]))
        estimates += found + _others(finding, group, rows)
    if not verdicts:
        return not_run(finding, "no seed has all that is compared")
    if lacking:
        # What is said of all cannot be told without some of them.
        verdicts += [UNSURE] * len(lacking)
        reasons.append(f"no results yet for {', '.join(lacking)}")
    verdict = _most(verdicts) if finding.most else _all(verdicts)
    agreement = ""
    if finding.each:
        what = f"{finding.each[0].replace('pair', 'language')}s" if len(finding.each) == 1 else "cases"
        agreement = f"{verdicts.count(HOLDS)} of {len(verdicts)} {what}"
    told = not_run(finding, "; ".join(dict.fromkeys(reasons)))
    return replace(told, verdict=verdict, agreement=agreement, estimates=estimates)


def not_run(finding: Finding, reason: str) -> Judged:
    """A finding that a run does not judge, and why."""
    told = {name: getattr(finding, name) for name in ("id", "paper", "says", "sentence", "where")}
    return Judged(**told, verdict=NOT_RUN, reason=reason)


def estimates_of(finding: Finding, printed: Mapping[str, pd.DataFrame]) -> dict[tuple[str, str], float]:
    """The paper's own, by group and quantity: as it states them, or by the same function on its tables."""
    found: dict[tuple[str, str], float] = {}
    with suppress(NotRun):
        for group, rows in _groups(finding.quantities(printed, papers_config()).dropna(how="all"), finding.each):
            found |= {(group, one.words): interval(one, group, rows)[0] for one in finding.comparisons}
            found |= {(group, name): float(rows[name].mean()) for name in rows if not name.startswith("score")}
    return found | finding.printed()


def _groups(table: pd.DataFrame, each: tuple[str, ...]) -> Iterable[tuple[str, pd.DataFrame]]:
    if not each:
        return [("", table)] if len(table) else []
    return [(" ".join(map(str, key)), rows) for key, rows in table.groupby(level=list(each), sort=False)]


def not_learnt(finding: Finding, rows: pd.DataFrame) -> str:
    """Which scores do not lie above what guessing reaches; empty where all do."""
    tasks = rows.index.get_level_values("task") if "task" in rows.index.names else [finding.task] * len(rows)
    for task, part in rows.filter(regex="^score").groupby(np.asarray(tasks), sort=False):
        for name, score in part.mean().items():
            if score <= FLOORS[task]:
                what = task + name.removeprefix("score").replace("_", " ")
                return f"{what} reaches {score:.1f}, and guessing may reach {FLOORS[task]:g}"
    return ""


def _all(verdicts: list[str]) -> str:
    return next((one for one in (FAILS, UNLEARNT, UNSURE) if one in verdicts), HOLDS)


def _most(verdicts: list[str]) -> str:
    half = len(verdicts) / 2
    if verdicts.count(UNLEARNT) >= half:
        return UNLEARNT
    return next((one for one in (HOLDS, FAILS) if verdicts.count(one) > half), UNSURE)


def _others(finding: Finding, group: str, rows: pd.DataFrame) -> list[Estimate]:
    """Quantities that no comparison names by themselves, to be shown."""
    by_seed = rows.drop(columns=[one.words for one in finding.comparisons], errors="ignore").groupby(level="seed")
    found = by_seed.mean().dropna(axis=1, how="all")
    return [Estimate(group, name, "", float(found[name].mean()), n=int(found[name].count())) for name in found]


def _estimate(one: Comparison, group: str, rows: pd.DataFrame, draws: Draws) -> Estimate:
    value, low, high, n, over = interval(one, group, rows, draws)
    # Without ends neither is true.
    inside, outside = (high < one.bound, low >= one.bound) if one.below else (low > one.bound, high <= one.bound)
    verdict = HOLDS if inside else FAILS if outside else UNSURE
    return Estimate(group, one.words, one.rule, value, low, high, n, over, verdict)


def interval(
    one: Comparison, group: str, rows: pd.DataFrame, draws: Draws = lambda group: None
) -> tuple[float, float, float, int, str]:
    """Estimate, ends, number of seeds (or languages), and what the interval is over."""
    found = _complete(rows[list(one.names)])
    units = found.mean().unstack(0)[list(one.names)].dropna(how="all")
    if one.ranked:
        both = units.dropna().T.to_numpy()
        ends = spearman_interval(*both) or (math.nan, math.nan)
        return spearman(*both).rho, *ends, both.shape[1], "languages"
    by_seed = one.value({name: found[name].apply(pd.Series.mean, axis=1) for name in one.names})
    value, seeds = float(by_seed.mean()), len(by_seed)
    if math.isnan(value):
        return value, value, value, 0, ""
    if seeds > 1:
        from scipy.stats import t

        half = t.ppf(0.975, seeds - 1) * float(by_seed.std()) / math.sqrt(seeds)
        return value, value - half, value + half, seeds, "seeds"
    if (languages := int(units.count().max())) >= FEW:
        return *_resampled(one, units), languages, "languages"
    half = HALF * _spread(one, draws(group))
    return value, value - half, value + half, 1, "test sentences"


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per seed that has all quantities, a column per quantity and language: that all of these seeds have."""
    # Of rows that the seed alone tells apart there is one unit.
    units = ["|".join(("of", *map(str, levels))) for _, *levels in rows.index.to_frame().itertuples(index=False)]
    found = rows.groupby([rows.index.get_level_values("seed"), units]).mean().unstack()
    found = found[found.notna().T.groupby(level=0).any().all()]
    found.loc[:, found.isna().any()] = math.nan
    return found


def _resampled(one: Comparison, units: pd.DataFrame) -> tuple[float, float, float]:
    """The value, and percentiles over resampled languages."""
    count, draws = len(units), {}
    weights = np.random.default_rng(1).multinomial(count, np.full(count, 1 / count), RESAMPLES).astype(float)
    for name in units:
        known = units[name].notna()
        # A quantity of one language only, such as the source's own, is not drawn.
        chosen = weights[:, known] if known.sum() > 1 else np.ones((RESAMPLES, 1))
        with np.errstate(invalid="ignore"):
            draws[name] = chosen @ units[name][known].to_numpy() / chosen.sum(axis=1)
    low, high = np.nanquantile(one.value(draws), (0.025, 0.975))
    return float(one.value({name: units[name].mean() for name in units})), float(low), float(high)


def _spread(one: Comparison, draws: pd.DataFrame | None) -> float:
    """The standard deviation of a comparison's value over the draws; NaN where a number has no error."""
    values = math.nan if draws is None else one.value(draws)
    return float(np.std(values)) if np.isfinite(values).all() else math.nan
