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
from functools import cached_property

import numpy as np
import pandas as pd

from crossalign.analysis.correlations import spearman, spearman_interval
from crossalign.results.comparable import papers_config
from crossalign.results.findings.expression import Comparison, evaluate, is_rank, names_in
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE, Finding, NotRun
from crossalign.results.findings.views import HALF, Frames, views
from crossalign.runtime.errors import UserError

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


def judge_all(
    findings: Iterable[Finding],
    frames: Mapping[str, pd.DataFrame],
    config: dict,
    printed: Callable[[str], Mapping[str, pd.DataFrame]],
    left_out: Callable[[str], str],
) -> list[Judged]:
    """Every finding judged; `printed` makes a paper's own frames, `left_out` says why an item is no part of the run."""
    shown: dict[tuple[str, str], Mapping[str, pd.DataFrame]] = {}

    def view(paper: str, control: str) -> Mapping[str, pd.DataFrame]:
        if (paper, control) not in shown:
            shown[paper, control] = views(frames, paper, config, control)
        return shown[paper, control]

    judged = []
    for one in findings:
        found = judge(one, view(one.paper, "none"), config, left_out)
        if "similarity" in one.reads and found.verdict in (HOLDS, FAILS, UNSURE):
            # Not every measure is made with length taken out.
            second = judge(one, view(one.paper, LENGTH), config, left_out).verdict
            found = replace(found, controlled="" if second == NOT_RUN else second)
        judged.append(_beside(found, one, printed(one.paper)))
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
        needed = [name for one in finding.comparisons for name in names_in(one.value)]
        if table[needed].isna().all().any():
            skipped = [why for item in finding.items if (why := left_out(item))]
            raise NotRun(skipped[0] if skipped else f"no results yet for {finding.where}")
    except NotRun as why:
        return not_run(finding, str(why))
    draws = _Draws(finding, frames if isinstance(frames, Frames) else Frames(frames), config)
    estimates, verdicts, reasons, lacking = [], [], [], []
    for group, rows in _groups(table, finding.each):
        if why := not_learnt(finding, rows):
            verdicts.append(UNLEARNT)
            reasons.append(why)
            continue
        found = [_estimate(one, group, rows, draws) for one in finding.comparisons]
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


def _groups(table: pd.DataFrame, each: tuple[str, ...]) -> Iterable[tuple[str, pd.DataFrame]]:
    if not each:
        return [("", table)]
    return [(" ".join(map(str, key)), rows) for key, rows in table.groupby(level=list(each), sort=False)]


def not_learnt(finding: Finding, rows: pd.DataFrame) -> str:
    """Which scores do not lie above what guessing reaches; empty where all do."""
    tasks = rows.index.get_level_values("task") if "task" in rows.index.names else [finding.task] * len(rows)
    for task, part in rows.groupby(np.asarray(tasks), sort=False):
        for name in [name for name in part if name.startswith("score")]:
            score = part[name].mean()
            if score <= FLOORS[task]:
                what = task + name.removeprefix("score").replace("_", " ")
                return f"{what} reaches {score:.1f}, and guessing may reach {FLOORS[task]:g}"
    return ""


def _all(verdicts: list[str]) -> str:
    return next((one for one in (FAILS, UNLEARNT, UNSURE) if one in verdicts), HOLDS)


def _most(verdicts: list[str]) -> str:
    half = len(verdicts) / 2
    if sum(one == UNLEARNT for one in verdicts) >= half:
        return UNLEARNT
    return next((one for one in (HOLDS, FAILS) if verdicts.count(one) > half), UNSURE)


def _others(finding: Finding, group: str, rows: pd.DataFrame) -> list[Estimate]:
    """Quantities that no comparison names by themselves, to be shown."""
    judged = {one.words for one in finding.comparisons}
    return [
        Estimate(group, name, "", float(by_seed.mean()), n=int(by_seed.notna().sum()))
        for name in rows
        if name not in judged and not (by_seed := rows[name].groupby(level="seed").mean()).isna().all()
    ]


def _estimate(one: Comparison, group: str, rows: pd.DataFrame, draws: "_Draws") -> Estimate:
    value, low, high, n, over = interval(one, group, rows, draws)
    verdict = UNSURE
    if not math.isnan(low + high):
        inside, outside = (high < one.bound, low >= one.bound) if one.below else (low > one.bound, high <= one.bound)
        verdict = HOLDS if inside else FAILS if outside else UNSURE
    return Estimate(group, one.words, one.rule, value, low, high, n, over, verdict)


def interval(
    one: Comparison, group: str, rows: pd.DataFrame, draws: "_Draws | None" = None
) -> tuple[float, float, float, int, str]:
    """Estimate, ends, number of seeds (or languages), and what the interval is over."""
    columns = _complete(rows[names_in(one.value)])
    if columns is None:
        return math.nan, math.nan, math.nan, 0, ""
    seeds = columns.index.get_level_values(0).unique()
    if is_rank(one.value):
        return (*_ranked(one, columns.groupby(level=1).mean()), "languages")
    by_seed = [_value(one, columns.loc[seed]) for seed in seeds]
    value = float(np.mean(by_seed))
    if len(by_seed) > 1:
        from scipy.stats import t

        half = t.ppf(0.975, len(by_seed) - 1) * float(np.std(by_seed, ddof=1)) / math.sqrt(len(by_seed))
        return value, value - half, value + half, len(by_seed), "seeds"
    units = columns.loc[seeds[0]]
    if units.notna().sum().max() >= FEW:
        return (*_resampled(one, units), "languages")
    half = HALF * draws.spread(one, group) if draws else math.nan
    return value, value - half, value + half, 1, "test sentences"


def _complete(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Seeds that have all quantities, and of each the languages that all of these seeds have."""
    levels = [name for name in rows.index.names if name != "seed"]
    units = ["|".join(map(str, key[1:])) if levels else "" for key in (rows.index if levels else zip(rows.index))]
    flat = rows.set_axis(
        pd.MultiIndex.from_arrays([rows.index.get_level_values("seed"), units], names=["seed", "unit"])
    )
    flat = flat.groupby(level=["seed", "unit"]).mean()
    there = flat.notna().groupby(level="seed").any().all(axis=1)
    flat = flat[flat.index.get_level_values("seed").isin(there[there].index)]
    if flat.empty:
        return None
    shared = flat.notna().groupby(level="unit").sum() == flat.index.get_level_values("seed").nunique()
    kept = flat.where(shared.reindex(flat.index.get_level_values("unit")).to_numpy())
    return None if kept.isna().all().any() else kept


def _means(units: pd.DataFrame, weights: np.ndarray) -> dict[str, np.ndarray]:
    """The mean of every quantity over languages, each counted as often as a row of `weights` says."""
    found = {}
    for name in units:
        values = units[name].to_numpy()
        known = ~np.isnan(values)
        # A quantity of one language only, such as the source's own, is not drawn.
        chosen = weights[:, known] if known.sum() > 1 else np.ones((len(weights), 1))
        with np.errstate(invalid="ignore"):
            found[name] = chosen @ values[known] / chosen.sum(axis=1)
    return found


def _value(one: Comparison, units: pd.DataFrame) -> float:
    """The expression's value on one row per language."""
    return float(evaluate(one.value, lambda name: float(units[name].mean()), _no_rank))


def _resampled(one: Comparison, units: pd.DataFrame) -> tuple[float, float, float, int]:
    """The value, and percentiles over resampled languages."""
    units = units.dropna(how="all")
    count = len(units)
    weights = np.random.default_rng(1).multinomial(count, np.full(count, 1 / count), RESAMPLES).astype(float)
    values = evaluate(one.value, _means(units, weights).__getitem__, _no_rank)
    low, high = np.nanquantile(values, (0.025, 0.975))
    return _value(one, units), float(low), float(high), int(units.notna().sum().max())


def _ranked(one: Comparison, units: pd.DataFrame) -> tuple[float, float, float, int]:
    """A rank correlation over languages, which stands alone in its comparison, and its interval."""
    first, second = (units.dropna()[name].tolist() for name in names_in(one.value))
    ends = spearman_interval(first, second) or (math.nan, math.nan)
    return spearman(first, second).rho, *ends, len(first)


def _no_rank(first: str, second: str) -> float:
    raise UserError(f"rho({first}, {second}) must stand alone in a comparison with a number")


class _Draws:
    """The quantities of a finding on numbers drawn again within their errors; made once, when asked."""

    def __init__(self, finding: Finding, frames: Frames, config: dict) -> None:
        self.finding, self.frames, self.config = finding, frames, config

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The means over languages in every draw, by group."""
        table = self.finding.quantities(self.frames.drawn, self.config)
        return {name: rows.groupby(level="seed").mean() for name, rows in _groups(table, self.finding.each)}

    def spread(self, one: Comparison, group: str) -> float:
        """The standard deviation of a comparison's value over the draws; NaN where a number has no error."""
        # Without errors nothing can be drawn, and a group has no draws.
        if group not in self.tables:
            return math.nan
        values = evaluate(one.value, self.tables[group].__getitem__, _no_rank)
        return float(np.std(values)) if np.isfinite(values).all() else math.nan


def _beside(judged: Judged, finding: Finding, printed: Mapping[str, pd.DataFrame]) -> Judged:
    """The estimates with the paper's own beside them: as it states them, or by the same function on its tables."""
    theirs: dict[tuple[str, str], float] = {}
    with suppress(NotRun):
        for group, rows in _groups(finding.quantities(printed, papers_config()).dropna(how="all"), finding.each):
            theirs |= {(group, one.words): interval(one, group, rows)[0] for one in finding.comparisons}
            theirs |= {(group, name): float(rows[name].mean()) for name in rows if not name.startswith("score")}
    theirs |= finding.printed()
    found = [replace(one, printed=theirs.get((one.group, one.quantity), math.nan)) for one in judged.estimates]
    return replace(judged, estimates=found)
