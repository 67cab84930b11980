"""The claims of `adjust` on its studies of one language (tables 5 to 7) and on its histograms, and what all of its
claims share: scores before any change, and gains."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from crossalign.catalog.config import pair_count
from crossalign.papers.adjust.arms import ABLATIONS, FAMILIES, METRICS, Board, column_of, study_columns
from crossalign.papers.common.context import Context
from crossalign.results.claims.claim import Claim, claim
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import every, some
from crossalign.results.claims.predicates import all_of, at_least, at_most, near, negative, positive
from crossalign.results.claims.quantities import Quantity, cells, derived, gains, leads_of, merged, quantity
from crossalign.results.claims.values import Group, Number
from crossalign.results.names import TASKS, language
from crossalign.results.values import Value

PAPER = "adjust"
T1, T2, T3, T4, T5, T6, T7, T8, T9 = (f"{PAPER}/table{place}" for place in range(1, 10))
F2 = f"{PAPER}/figure2"
ALL = ("nli", "ner", "qa")
TOKEN, ENTITY = METRICS["ner"].values()
CONTINUAL = "adjusted+continual"
TEST_SET = ["language", "dataset"]
KINDS = RELATED, UNRELATED = ("related words", "unrelated words")
CHANCE = 0.5
XNLI = ("nli",)
# Models tuned on a task, with and without adjustment, and what they were before.
TUNED = {"original": ("original, {task}", "original"), "adjusted": ("adjusted, {task}", "adjusted")}


@quantity
def ner_metric(evidence: Evidence) -> str:
    """The reading of the NER score that is nearer to the printed numbers, by the rule of `judge_best`.

    The paper has one for all of its tables, and its scores are in table 3: by gains alone another could seem nearer.
    """

    def distance(metric: str) -> float:
        rows = [row for row in evidence.rows(T3) if row.get("metric") == metric and row.get("difference")]
        return sum(abs(float(row["difference"])) for row in rows) if rows else math.inf

    return ENTITY if distance(ENTITY) < distance(TOKEN) else TOKEN


@quantity
def entity_metric(evidence: Evidence, item: str) -> str:
    """Entity F1, which the floor of NER is of; token F1 where there is no other."""
    return ENTITY if any(row.get("metric") == ENTITY for row in evidence.rows(item)) else TOKEN


# Scores of original models; those of NER to be compared with its floor.
NLI_BEFORE = cells(T2, ["language", "setting"], model="original", setting=["original"])
NER_BEFORE = cells(T3, ["language"], model="original", metric=entity_metric(T3))
QA_BEFORE = cells(T4, TEST_SET, model="original", setting=["monolingual"])
BEFORE = {"nli": NLI_BEFORE, "ner": NER_BEFORE, "qa": QA_BEFORE}


def gains_in(task: str, model: str, over: str) -> Quantity:
    """Gains on the main test sets of a task; those of NER in the reading of the score that is judged."""
    if task == "ner":
        return gains(T3, model, over, metric=ner_metric())
    if task == "nli":
        return gains(T2, model, over, setting="original")
    return gains(T4, model, over, TEST_SET, setting="monolingual")


@quantity
def in_study(evidence: Evidence, before: Group, study: str) -> Group:
    """The scores of the language that a study is about."""
    lang = evidence.config[PAPER][study]["lang"]
    members = {name: number for name, number in before if name.split(" ")[0] == lang}
    if not members:
        raise Outside(f"the main tables of this run have no {lang}, which {study} is about")
    return Group(members)


@dataclass(frozen=True)
class Gain(Number):
    """A gain over the original model. `adjusted` is the score of the adjusted model, without the original's noise; None
    where the scores behind the table are not there."""

    adjusted: Number | None = None


def apart(first: Number, second: Number) -> Number:
    """The difference of two gains over the same original model, whose part cancels: it has the noise of the adjusted
    models alone. Where their scores are not there it has that of the gains, in which the original's counts twice."""
    if first.std is None and second.std is None:
        n, wanted = min(first.n, second.n), max(first.wanted, second.wanted)
        return Number(first.value - second.value, "points", None, n, wanted, 2)
    scores = [gain.adjusted for gain in (first, second) if isinstance(gain, Gain) and gain.adjusted]
    if len(scores) < 2:
        return first.minus(second)
    return replace(scores[0].minus(scores[1]), value=first.value - second.value)


def variants(evidence: Evidence, item: str, *tasks: str) -> dict[str, Group]:
    """The gains in the columns of tables 5 to 7, that is test sets, by what is varied."""
    scores = adjusted_scores(evidence, item)
    columns = {}
    for dataset in evidence.column(item, "dataset", task=tasks):
        metric = {"metric": ner_metric()(evidence)} if dataset == "wikiann" else {}
        members = {}
        for row in evidence.select(item, dataset=dataset, **metric):
            gain = evidence.number(item, row, "points")
            score = scores.get((dataset, row["metric"], row["variant"]), Value())
            # With another count of runs these are not the scores that the table was made of.
            known = score.mean is not None and score.n == gain.n
            adjusted = Number(score.mean, "points", score.std, score.n, gain.wanted) if known else None
            members[row["variant"].partition("=")[2]] = Gain(**vars(gain), adjusted=adjusted)
        columns[dataset] = Group(members)
    return columns


def adjusted_scores(evidence: Evidence, item: str) -> dict[tuple[str, str, str], Value]:
    """The scores behind the gains in tables 5 to 7, by test set, metric and what is varied."""
    study, context = ABLATIONS[item.partition("/")[2]], Context(evidence.config, evidence.results)
    return {
        (column_of(data), METRICS[task][metric], variant): Board(context).value(system, data, metric)
        for task, data, metric in study_columns(context, evidence.config[PAPER][study.key]["lang"])
        for variant, system in study.arms(context, task).items()
    }


@quantity
def leads(evidence: Evidence, item: str, ours: str, theirs: str, *tasks: str) -> Group:
    """What one variant gains more than another, by test set."""
    members = {}
    for dataset, column in variants(evidence, item, *tasks).items():
        if lacking := [name for name in (ours, theirs) if name not in column.members]:
            raise Outside(f"{item} of this run has no {', '.join(lacking)}")
        members[FAMILIES[dataset]] = apart(column.members[ours], column.members[theirs])
    return Group(members)


@quantity
def by_size(evidence: Evidence, task: str, read: Callable[[Group], Number | Group]) -> Group:
    """What `read` makes of the gains by the number of sentence pairs, from few to many, for each test set of a task."""
    members = {}
    for dataset, column in variants(evidence, T5, task).items():
        counts = {name: pair_count(name.lower()) for name in column.members}
        if len(counts) < 2:
            raise Outside(f"{T5} of this run has one number of sentence pairs alone")
        ordered = {f"{counts[name]:,}": column.members[name] for name in sorted(counts, key=counts.get)}
        members[FAMILIES[dataset]] = read(Group(ordered))
    return Group(members)


def best_size(by_pairs: Group) -> Number:
    """The number of sentence pairs with the largest gain."""
    best = max(by_pairs.members, key=lambda name: by_pairs.members[name].value)
    return Number(float(best.replace(",", "")), "count")


def fall(by_pairs: Group) -> Number:
    """The best gain from fewer pairs minus that from the most."""
    *fewer, most = by_pairs.numbers()
    return apart(max(fewer, key=lambda number: number.value), most)


def growth(by_pairs: Group) -> Number:
    """The gain from the most pairs minus that from the fewest."""
    first, *_, last = by_pairs.numbers()
    return apart(last, first)


def steps(by_pairs: Group) -> Group:
    """What each larger number of pairs adds to the gain."""
    return Group({f"to {name}": apart(number, before) for (_, before), (name, number) in pairwise(by_pairs)})


@derived
def the_one(group: Group) -> Number | Group:
    """The member of a group that has no other."""
    [member] = group.members.values()
    return member


def learnt(study: str, *tasks: str) -> dict[str, Quantity]:
    """The floors of some tasks for the language that a study is about."""
    return {task: in_study(BEFORE[task], study) for task in tasks}


def grows(task: str, score: str) -> Claim:
    """A score that grows nearly monotonically with the number of sentence pairs: no step is a visible loss."""
    return claim(
        T5,
        f"{score} gains {{growth:+}} points more from the most pairs than from the fewest, in steps of {{steps:+}}",
        all_of(positive("growth"), every("steps", at_least, "points", -1)),
        learnt=learnt("sizes", task),
        growth=the_one(by_size(task, growth)),
        steps=the_one(by_size(task, steps)),
    )


# Histograms: how well the distance of two words tells whether they translate each other.


def weights(evidence: Evidence, panel: str, kind: str) -> dict[float, float]:
    """The share of word pairs in each bin of a histogram."""
    rows = evidence.series(F2, panel, kind)
    heights = {float(row["x"] or 0): evidence.number(F2, row, "similarity").value for row in rows}
    total = sum(heights.values())
    if total <= 0:
        raise evidence.absent(F2, f"has an empty histogram for {panel}")
    return {place: value / total for place, value in heights.items()}


def area(evidence: Evidence, panel: str) -> Number:
    """Area under the ROC curve: the chance that related words are closer, ties within a bin counting half."""
    related, unrelated = (weights(evidence, panel, kind) for kind in KINDS)
    below = chance = 0.0
    for place in sorted(related.keys() | unrelated.keys()):
        here = related.get(place, 0.0)
        chance += unrelated.get(place, 0.0) * (below + here / 2)
        below += here
    return Number(chance, "similarity")


def overlap(evidence: Evidence, panel: str) -> Number:
    """The share that the histograms of related and unrelated words have in common."""
    related, unrelated = (weights(evidence, panel, kind) for kind in KINDS)
    return Number(sum(min(share, unrelated.get(place, 0.0)) for place, share in related.items()), "similarity")


def distance(evidence: Evidence, panel: str, kind: str) -> float:
    """The mean distance of related or unrelated words; bins are told by their left edge."""
    shares = weights(evidence, panel, kind)
    edges = sorted(shares)
    half = (edges[1] - edges[0]) / 2 if len(edges) > 1 else 0.0
    return sum((place + half) * share for place, share in shares.items())


def distance_change(evidence: Evidence, after: str, before: str, kind: str) -> Number:
    """The change of the mean distance of one kind of words, as a share of what it was."""
    return Number(distance(evidence, after, kind) / distance(evidence, before, kind) - 1.0, "share", terms=2)


def share_left(evidence: Evidence, after: str, before: str) -> Number:
    """The share of the area above chance that is left."""
    left, whole = area(evidence, after), area(evidence, before)
    above = whole.value - CHANCE
    if above <= whole.noise:
        raise Outside(f"{F2}: {before} tells related words from unrelated ones no better than chance")
    kept = (left.value - CHANCE) / above
    return Number(kept, "share", math.hypot(left.error, kept * whole.error) / above)


@quantity
def of_panels(evidence: Evidence, read: Callable[..., Number], tasks: Sequence[str], *names: str) -> Group:
    """What `read` makes of the panels with these names, for every language and each of some tasks (or without one)."""
    paper = evidence.config[PAPER]
    members = {}
    for lang in paper["languages"]:
        for task in [TASKS[task] for task in paper["tasks"] if task in tasks] if tasks else [""]:
            panels = [f"{language(lang)}: {name.format(task=task)}" for name in names]
            members[f"{lang} {task}".strip()] = read(evidence, *panels)
    return Group(members)


def separations(name: str, tasks: Sequence[str] = ALL) -> Quantity:
    """The area of every panel of a name; two of these can be subtracted."""
    return of_panels(area, tasks, name)


def distance_changes(after: str, before: str, kind: str, tasks: Sequence[str] = ()) -> Quantity:
    """How far one kind of words moved."""
    return of_panels(partial(distance_change, kind=kind), tasks, after, before)


@quantity
def where_separation_grew(evidence: Evidence) -> Group:
    """Changes of scores in the languages, tasks and regimes whose models separate better than those before."""
    regimes = {("adjusted", "original"): ("adjusted", "original"), (CONTINUAL, "adjusted"): ("continual", "adjusted")}
    members = {}
    for (model, over), (after, before) in regimes.items():
        separated = (separations(f"{after}, {{task}}") - separations(f"{before}, {{task}}"))(evidence).members
        for task in evidence.config[PAPER]["tasks"]:
            for name, gain in gains_in(task, model, over)(evidence):
                change = separated.get(f"{name.split(' ')[0]} {TASKS[task]}")
                if change is not None and change.value > change.noise:
                    members[f"{name} {TASKS[task]}, {model}"] = gain
    if not members:
        raise Outside("no model of this run separates related words better than the one before it")
    return Group(members)


@quantity
def top_dimensions(evidence: Evidence, share: str) -> Group:
    """The share of the squared distance that the largest dimensions carry in each XNLI model, in percent."""
    # Figures import numpy.
    from crossalign.papers.adjust.figures import models
    from crossalign.papers.common.context import Context

    context = Context(evidence.config, evidence.results)
    shares = {}
    for lang in evidence.config[PAPER]["languages"]:
        for name, run in models(context, lang, ["nli"]).items():
            if "," in name:
                panel = evidence.results.distances(run, lang)
                if panel is None or share not in panel.summary:
                    raise evidence.absent(F2, f"lacks distances/{run.path()}/{lang}")
                shares[f"{lang} {name}"] = Number(100 * panel.summary[share], "percent", 0.0)
    return Group(shares)


separates_better = partial(at_least, bound="separation")
separates_worse = partial(at_most, bound="separation", sign=-1)
on_histograms = partial(claim, F2, over=f"{PAPER}.languages")

STUDIES: dict[str, Claim] = {
    # Tables 5 to 7: one language, one setting varied.
    "qa-peak-size": claim(
        T5,
        "QA gains most from so many sentence pairs: {best}; with the most pairs it gains less by {falls} points",
        every("falls", positive),
        number=every("best", near, "roughly", relative=True),
        learnt=learnt("sizes", "qa"),
        best=by_size("qa", best_size),
        falls=by_size("qa", fall),
    ),
    "qa-few-pairs": claim(
        T5,
        "with the fewest sentence pairs QA gains {gains:+} points",
        every("gains", positive),
        learnt=learnt("sizes", "qa"),
        gains=by_size("qa", lambda by_pairs: by_pairs.numbers()[0]),
    ),
    "size-nli": grows("nli", "XNLI"),
    "size-ner": grows("ner", "NER"),
    "agg-subword": claim(
        T6,
        "alignment of sub-words changes the gain of averaged ones by {others:+} points, and by {nli:+} in NLI",
        all_of(every("others", negative), every("nli", at_least, "points", -1)),
        learnt=learnt("aggregations", *ALL),
        others=leads(T6, "subword alignment", "avg", "ner", "qa"),
        nli=leads(T6, "subword alignment", "avg", "nli"),
    ),
    "agg-start-ner": claim(
        T6,
        "the first sub-word changes the gain of averaged ones in NER by {leads:+} points",
        every("leads", positive),
        learnt=learnt("aggregations", "ner"),
        leads=leads(T6, "start", "avg", "ner"),
    ),
    "words-cls": claim(
        T7,
        "words gain more than [CLS] by {leads:+} points",
        every("leads", positive),
        number=every("leads", at_least),
        learnt=learnt("token_choices", "nli", "ner"),
        leads=leads(T7, "words", "[CLS]", "nli", "ner"),
    ),
    "words-all": claim(
        T7,
        "words and special tokens gain more than words by {leads:+} points",
        every("leads", positive),
        learnt=learnt("token_choices", "nli", "ner"),
        leads=leads(T7, "all", "words", "nli", "ner"),
    ),
    "qa-cls": claim(
        T7,
        "words and special tokens gain more in QA than [CLS] by {cls:+} points, and more than words by {words:+}",
        all_of(every("cls", positive), every("words", positive)),
        learnt=learnt("token_choices", "qa"),
        cls=leads(T7, "all", "[CLS]", "qa"),
        words=leads(T7, "all", "words", "qa"),
    ),
    # Histograms.
    "dims-10": claim(
        F2,
        "the 10 most influential dimensions carry {shares} % of the squared distance",
        number=every("shares", near, "roughly", relative=True),
        shares=top_dimensions("top10"),
    ),
    "dims-100": claim(
        F2,
        "the 100 most influential dimensions carry {shares} % of the squared distance",
        number=every("shares", near, "percent"),
        shares=top_dimensions("top100"),
    ),
    "hist-adjust": on_histograms(
        "adjustment changes the mean distance of related words by a share of {related:+}, of unrelated ones by "
        "{unrelated:+}",
        all_of(every("related", negative), every("unrelated", at_least, "apart", -1)),
        related=distance_changes("adjusted", "original", RELATED),
        unrelated=distance_changes("adjusted", "original", UNRELATED),
    ),
    "hist-ft": on_histograms(
        "after fine-tuning on NLI the histograms overlap by {common}; the area under the ROC curve changed by "
        "{changes:+}",
        all_of(every("common", at_least, "overlap"), every("changes", separates_worse)),
        common=merged(**{name: of_panels(overlap, XNLI, after) for name, (after, _) in TUNED.items()}),
        changes=merged(
            **{name: separations(after, XNLI) - separations(before, XNLI) for name, (after, before) in TUNED.items()}
        ),
    ),
    "ft-closer": on_histograms(
        "fine-tuning on NLI changes the mean distance of words by a share of {changes:+}",
        every("changes", at_most, "apart", -1),
        changes=merged(
            **{
                f"{name}, {kind}": distance_changes(*pair, kind, XNLI)
                for name, pair in TUNED.items()
                for kind in (RELATED, UNRELATED)
            }
        ),
    ),
    "ft-forgets": on_histograms(
        "fine-tuning changes the area under the ROC curve of adjusted models by {changes:+}",
        every("changes", separates_worse),
        changes=separations("adjusted, {task}") - separations("adjusted"),
    ),
    # A modest effect is a smaller one than adjustment has by itself.
    "hist-adjusted-ft": on_histograms(
        "after fine-tuning on NLI adjusted models have an area under the ROC curve that is larger by {changes:+} than "
        "that of original ones; before it the difference was larger by {faded:+}",
        all_of(every("changes", separates_better), every("faded", positive)),
        changes=separations("adjusted, {task}", XNLI) - separations("original, {task}", XNLI),
        faded=(separations("adjusted", XNLI) - separations("original", XNLI))
        - (separations("adjusted, {task}", XNLI) - separations("original, {task}", XNLI)),
    ),
    "hist-cl": on_histograms(
        "continual learning changes the area under the ROC curve of related and unrelated words by {changes:+}",
        every("changes", separates_better),
        changes=separations("continual, {task}") - separations("adjusted, {task}"),
    ),
    "cl-keeps": on_histograms(
        "after continual learning of NLI this share of the adjusted model's area above chance is left: {kept}",
        every("kept", at_least, "survives"),
        kept=of_panels(share_left, XNLI, "continual, {task}", "adjusted"),
    ),
    "hist-ner-es": claim(
        F2,
        "areas under the ROC curve of adjusted NER models: {areas}; Spanish is ahead by {leads:+}",
        every("leads", positive),
        areas=separations("adjusted, {task}", ("ner",)),
        leads=leads_of(separations("adjusted, {task}", ("ner",)), "es NER"),
    ),
    "separation-no-help": on_histograms(
        "where separation grew, scores changed by {gains:+} points",
        some("gains", negative),
        learnt=BEFORE,
        gains=where_separation_grew(),
    ),
}
