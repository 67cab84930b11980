"""Quantities of the tables of `adjust`: gains, scores before any change, and the studies of one language."""

import math
from collections.abc import Sequence

from crossalign.catalog.config import pair_count
from crossalign.papers.adjust.arms import FAMILIES, METRICS, size_variant
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.quantities import Keys, Quantity, cells, gains
from crossalign.results.claims.values import Group, Number

T1, T2, T3, T4, T5, T6, T7, T8, T9 = (f"adjust/table{place}" for place in range(1, 10))
TOKEN, ENTITY = METRICS["ner"].values()
TEST_SET = ["language", "dataset"]


def ner_metric(evidence: Evidence, item: str) -> str:
    """The reading of the NER score that is nearer to the printed numbers, by the rule of `judge_best`."""

    def distance(metric: str) -> float:
        rows = [row for row in evidence.rows(item) if row.get("metric") == metric and row.get("difference")]
        return sum(abs(float(row["difference"])) for row in rows) if rows else math.inf

    return ENTITY if distance(ENTITY) < distance(TOKEN) else TOKEN


def ner_gains(model: str, over: str) -> Quantity:
    """Gains in table 3, in the reading of the score that is judged."""
    return lambda evidence: gains(T3, model, over, metric=ner_metric(evidence, T3))(evidence)


def ner_scores(evidence: Evidence) -> Group:
    """NER of original models, in the reading of the score that is judged."""
    return cells(T3, ["language"], model="original", metric=ner_metric(evidence, T3))(evidence)


def entity_metric(evidence: Evidence, item: str) -> str:
    """Entity F1, which the floor of NER is of; token F1 where there is no other."""
    return ENTITY if any(row.get("metric") == ENTITY for row in evidence.rows(item)) else TOKEN


def ner_before(evidence: Evidence) -> Group:
    """NER of original models, to be compared with its floor."""
    return cells(T3, ["language"], model="original", metric=entity_metric(evidence, T3))(evidence)


def nli_before(*settings: str) -> Quantity:
    """NLI of original models."""
    return cells(T2, ["language", "setting"], model="original", setting=settings or ("original",))


def qa_before(*settings: str, by: Sequence[str] = TEST_SET) -> Quantity:
    """QA of original models."""
    return cells(T4, by, model="original", setting=settings or ("monolingual",))


def in_study(before: Quantity, study: str) -> Quantity:
    """The scores of the language that a study is about."""

    def found(evidence: Evidence) -> Group:
        lang = evidence.config["adjust"][study]["lang"]
        members = {name: number for name, number in before(evidence) if name.split(" ")[0] == lang}
        if not members:
            raise Outside(f"the main tables of this run have no {lang}, which {study} is about")
        return Group(members)

    return found


def more_when_mixed(model: str) -> Quantity:
    """What a model gains more over the original on mixed-language XNLI than on XNLI, by language."""

    def found(evidence: Evidence) -> Group:
        mixed, plain = (
            gains(T2, model, "original", setting=setting)(evidence) for setting in ("mixed-language", "original")
        )
        return Group({name: number.minus(plain.members[name]) for name, number in mixed if name in plain.members})

    return found


def above(first: Sequence[str], second: Sequence[str], **scores: Quantity) -> Quantity:
    """Every language of the first minus every one of the second, in several tasks."""

    def found(evidence: Evidence) -> Group:
        members = {}
        for task, quantity in scores.items():
            there = {name.split(" ")[0]: number for name, number in quantity(evidence)}
            if lacking := [lang for lang in (*first, *second) if lang not in there]:
                raise Outside(f"there is no {', '.join(lacking)} in this run")
            members |= {f"{a}-{b} {task}": there[a].minus(there[b]) for a in first for b in second}
        return Group(members)

    return found


def between_sets(better: str, worse: str) -> Quantity:
    """One monolingual QA set minus another, by language and model."""

    def found(evidence: Evidence) -> Group:
        rows = dict(cells(T4, ["dataset", "language", "model"], setting="monolingual")(evidence))
        pairs = {
            name.partition(" ")[2]: (number, rows.get(name.replace(better, worse, 1)))
            for name, number in rows.items()
            if name.startswith(f"{better} ")
        }
        members = {name: ours.minus(theirs) for name, (ours, theirs) in pairs.items() if theirs is not None}
        if not members:
            raise Outside(f"no language of this run has both {FAMILIES[better]} and {FAMILIES[worse]}")
        return Group(members)

    return found


def one_word(group: Quantity) -> Quantity:
    """The same with names of one word, so that `only` can tell test sets apart."""
    return lambda evidence: Group({name.replace(" ", "-"): number for name, number in group(evidence)})


def apart(first: Number, second: Number) -> Number:
    """The difference of two gains over the same original model, whose part cancels."""
    if first.std is None and second.std is None:
        return Number(
            first.value - second.value, "points", None, min(first.n, second.n), max(first.wanted, second.wanted), 2
        )
    return first.minus(second)


def datasets(evidence: Evidence, item: str, *tasks: str) -> list[str]:
    """The test sets of some tasks that a table has."""
    return list(dict.fromkeys(row["dataset"] for row in evidence.select(item, {"task": tasks})))


def variants(item: str, dataset: str) -> Quantity:
    """The gains in a column of tables 5 to 7 by what is varied."""

    def found(evidence: Evidence) -> Group:
        keys: dict[str, Keys] = {"dataset": dataset}
        if dataset == "wikiann":
            keys["metric"] = ner_metric(evidence, item)
        rows = cells(item, ["variant"], **keys)(evidence)
        return Group({name.partition("=")[2]: number for name, number in rows})

    return found


def leads(item: str, ours: str, theirs: str, *tasks: str) -> Quantity:
    """What one variant gains more than another, by test set."""

    def found(evidence: Evidence) -> Group:
        members = {}
        for dataset in datasets(evidence, item, *tasks):
            column = variants(item, dataset)(evidence).members
            if lacking := [name for name in (ours, theirs) if name not in column]:
                raise Outside(f"{item} of this run has no {', '.join(lacking)}")
            members[FAMILIES[dataset]] = apart(column[ours], column[theirs])
        return Group(members)

    return found


def by_size(dataset: str) -> Quantity:
    """Gains by the number of sentence pairs, from few to many."""

    def found(evidence: Evidence) -> Group:
        rows = variants(T5, dataset)(evidence).members
        counts = {name: pair_count(name.lower()) for name in rows}
        if len(rows) < 2:
            raise Outside(f"{T5} of this run has one number of sentence pairs alone")
        return Group({f"{counts[name]:,}": rows[name] for name in sorted(rows, key=lambda name: counts[name])})

    return found


def best_sizes(evidence: Evidence) -> Group:
    """The number of sentence pairs with the largest gain, for each QA set."""
    found = {}
    for dataset in datasets(evidence, T5, "qa"):
        gained = by_size(dataset)(evidence).members
        best = max(gained, key=lambda name: gained[name].value)
        found[FAMILIES[dataset]] = Number(float(best.replace(",", "")), "count")
    return Group(found)


def falls(evidence: Evidence) -> Group:
    """The best gain from fewer pairs minus that from the most, for each QA set."""
    found = {}
    for dataset in datasets(evidence, T5, "qa"):
        *fewer, most = by_size(dataset)(evidence).numbers()
        found[FAMILIES[dataset]] = apart(max(fewer, key=lambda number: number.value), most)
    return Group(found)


def with_fewest(evidence: Evidence) -> Group:
    """The gain from the fewest pairs, for each QA set."""
    sets = datasets(evidence, T5, "qa")
    return Group({FAMILIES[dataset]: by_size(dataset)(evidence).numbers()[0] for dataset in sets})


def growth(task: str) -> Quantity:
    """The gain from the most pairs minus that from the fewest."""

    def found(evidence: Evidence) -> Number:
        [dataset] = datasets(evidence, T5, task)
        first, *_, last = by_size(dataset)(evidence).numbers()
        return apart(last, first)

    return found


def steps(task: str) -> Quantity:
    """What each larger number of pairs adds to the gain."""

    def found(evidence: Evidence) -> Group:
        [dataset] = datasets(evidence, T5, task)
        rows = list(by_size(dataset)(evidence))
        pairs = zip(rows, rows[1:], strict=False)
        return Group({f"to {name}": apart(number, before) for (_, before), (name, number) in pairs})

    return found


def monolingual(evidence: Evidence) -> Group:
    """Adjusted minus original in table 8; the original SQuAD score is one number for all languages."""
    rows = dict(cells(T8, ["dataset", "model", "language"])(evidence))
    found = {}
    for name, number in rows.items():
        dataset, model, *lang = name.split(" ")
        before = rows.get(" ".join([dataset, "original", *lang])) or rows.get(f"{dataset} original")
        if model == "adjusted" and before is not None:
            found[" ".join([*lang, dataset])] = number.minus(before)
    if not found:
        raise evidence.absent(T8, "has no pair of models to compare")
    return Group(found)


def extended_metrics(evidence: Evidence, *tasks: str) -> list[str]:
    """The scores of table 9 that are judged."""
    metrics = {"nli": "accuracy", "ner": ner_metric(evidence, T9), "qa": "F1"}
    return [metrics[task] for task in tasks]


def extended_gains(*tasks: str) -> Quantity:
    """Gains by adjustment in table 9, by test set and number of pairs."""
    return lambda evidence: gains(
        T9, "adjusted", "original", ["dataset"], ["variant"], metric=extended_metrics(evidence, *tasks)
    )(evidence)


def extended_before(task: str) -> Quantity:
    """The extended model before adjustment, to be compared with the floor of a task."""
    keys = {"model": "original", "task": task}
    return lambda evidence: cells(
        T9, ["dataset"], **keys, **({"metric": entity_metric(evidence, T9)} if task == "ner" else {})
    )(evidence)


def extended_leads(evidence: Evidence) -> Group:
    """The extended model minus mBERT, both original or both adjusted on as many pairs, by test set."""
    paper = evidence.config["adjust"]
    lang, main = paper["extended"]["lang"], size_variant(paper["pairs"])
    found = {}
    for item, task, setting in ((T2, "nli", "original"), (T3, "ner", "monolingual"), (T4, "qa", "monolingual")):
        keys = {"task": task, "setting": setting, "language": lang, "metric": extended_metrics(evidence, task)}
        ours, theirs = (
            dict(cells(table, ["dataset", "model"], **keys, variant=["", main])(evidence)) for table in (T9, item)
        )
        found |= {name: number.minus(theirs[name]) for name, number in ours.items() if name in theirs}
    return Group(found)


def diversity(evidence: Evidence) -> str:
    """How many families, scripts and word orders the languages beside English have."""
    counts = []
    for field in ("family", "script", "word_order"):
        rows = [row for row in evidence.select(T1, {"field": field}) if row["language"] != "en"]
        counts.append(len({row["text"] for row in rows if row["text"]}))
    return ";".join(map(str, counts))
