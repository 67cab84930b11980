"""The claims of `adjust`: its main results, its studies, its histograms, and how its experiments were made."""

from collections.abc import Sequence
from functools import partial

from crossalign.catalog.config import pair_count
from crossalign.catalog.sets import DataSet
from crossalign.papers.adjust.arms import FAMILIES, LEVEL, size_variant
from crossalign.papers.adjust.claims_studies import (
    ALL,
    CONTINUAL,
    NER_BEFORE,
    NLI_BEFORE,
    PAPER,
    QA_BEFORE,
    STUDIES,
    T1,
    T2,
    T3,
    T4,
    T8,
    T9,
    TEST_SET,
    entity_metric,
    gains_in,
    ner_metric,
)
from crossalign.results.claims.claim import background, claim, each_sized, made_with, sized, stated
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import count, every, most, only, some
from crossalign.results.claims.predicates import all_of, at_least, at_most, equals, near, negative, positive
from crossalign.results.claims.quantities import (
    Quantity,
    cells,
    chosen,
    derived,
    gains,
    largest,
    leads_of,
    parameters,
    quantity,
    runs,
    sizes,
    smallest,
)
from crossalign.results.claims.values import Group, Number

LANGUAGES = ("es", "ru", "vi", "hi")
CROSS = ("question target, paragraph en", "question en, paragraph target")
CROSS_SET = [*TEST_SET, "setting"]
HARDWARE = "a run time on the authors' hardware (one Tesla V100); ours is told with each run"
PROSE = "an experiment that the paper tells in prose, without numbers, table or figure; it is not part of this workflow"

NLI, NER, QA = (gains_in(task, "adjusted", "original") for task in ALL)
NLI_CONTINUAL, NER_CONTINUAL = (gains_in(task, CONTINUAL, "adjusted") for task in ("nli", "ner"))
MIXED, MIXED_CONTINUAL = (gains(T2, model, "original", setting="mixed-language") for model in ("adjusted", CONTINUAL))
QA_CROSS = gains(T4, "adjusted", "original", CROSS_SET, setting=CROSS)
QA_CONTINUAL = gains(T4, CONTINUAL, "adjusted", CROSS_SET)
MIXED_BEFORE = cells(T2, ["language", "setting"], model="original", setting=["mixed-language"])
BOTH_BEFORE = cells(T2, ["language", "setting"], model="original", setting=["original", "mixed-language"])
CROSS_BEFORE = cells(T4, CROSS_SET, model="original", setting=CROSS)
ALL_QA_BEFORE = cells(T4, CROSS_SET, model="original", setting=["monolingual", *CROSS])

# Claims on the languages of the study as a whole.
on_all = partial(claim, over=f"{PAPER}.languages")
on_nli = partial(on_all, T2, learnt={"nli": NLI_BEFORE})
on_mixed = partial(on_all, T2, learnt={"nli": BOTH_BEFORE})
on_ner = partial(on_all, T3, learnt={"ner": NER_BEFORE})
on_qa = partial(on_all, T4, learnt={"qa": QA_BEFORE})
on_cross_qa = partial(on_all, T4, learnt={"qa": CROSS_BEFORE})
about = partial(near, within="about", relative=True)


@quantity
def monolingual(evidence: Evidence) -> Group:
    """Adjusted minus original in table 8; the original SQuAD score is one number for all languages."""
    numbers = cells(T8, ["dataset", "model", "language"])(evidence).members
    members = {}
    for name, number in numbers.items():
        dataset, model, *lang = name.split(" ")
        before = numbers.get(" ".join([dataset, "original", *lang])) or numbers.get(f"{dataset} original")
        if model == "adjusted" and before is not None:
            members[" ".join([*lang, dataset])] = number.minus(before)
    if not members:
        raise evidence.absent(T8, "has no pair of models to compare")
    return Group(members)


@quantity
def extended_metrics(evidence: Evidence, *tasks: str) -> list[str]:
    """The scores of table 9 that are judged."""
    metrics = {"nli": "accuracy", "ner": ner_metric()(evidence), "qa": "F1"}
    return [metrics[task] for task in tasks]


def extended_gains(*tasks: str) -> Quantity:
    """Gains by adjustment in table 9, by test set and number of pairs."""
    return gains(T9, "adjusted", "original", ["dataset"], ["variant"], metric=extended_metrics(*tasks))


# The extended model before adjustment, to be compared with the floors.
EXTENDED_BEFORE = {
    task: cells(
        T9, ["dataset"], model="original", task=task, **({"metric": entity_metric(T9)} if task == "ner" else {})
    )
    for task in ALL
}


@quantity
def extended_leads(evidence: Evidence) -> Group:
    """The extended model minus mBERT, both original or both adjusted on as many pairs, by test set."""
    paper = evidence.config[PAPER]
    lang, main = paper["extended"]["lang"], size_variant(paper["pairs"])
    members = {}
    for item, task, setting in ((T2, "nli", "original"), (T3, "ner", "monolingual"), (T4, "qa", "monolingual")):
        keys = {"task": task, "setting": setting, "language": lang, "metric": extended_metrics(task)}
        ours, theirs = (cells(table, ["dataset", "model"], **keys, variant=["", main]) for table in (T9, item))
        members |= (ours - theirs)(evidence).members
    return Group(members)


@derived
def above(first: Sequence[str], second: Sequence[str], **scores: Group) -> Group:
    """Every language of the first minus every one of the second, in several tasks."""
    members = {}
    for task, group in scores.items():
        there = {name.split(" ")[0]: number for name, number in group}
        if lacking := [lang for lang in (*first, *second) if lang not in there]:
            raise Outside(f"there is no {', '.join(lacking)} in this run")
        members |= {f"{a}-{b} {task}": there[a].minus(there[b]) for a in first for b in second}
    return Group(members)


@quantity
def between_sets(evidence: Evidence, better: str, worse: str) -> Group:
    """One monolingual QA set minus another, by language and model."""
    numbers = cells(T4, ["dataset", "language", "model"], setting="monolingual")(evidence).members
    ours, theirs = (
        Group({name.removeprefix(f"{dataset} "): numbers[name] for name in numbers if name.startswith(f"{dataset} ")})
        for dataset in (better, worse)
    )
    leads = ours.minus(theirs)
    if not len(leads):
        raise Outside(f"no language of this run has both {FAMILIES[better]} and {FAMILIES[worse]}")
    return leads


@derived
def one_word(group: Group) -> Group:
    """The same with names of one word, so that `only` can tell test sets apart."""
    return Group({name.replace(" ", "-"): number for name, number in group})


@quantity
def diversity(evidence: Evidence) -> str:
    """How many families, scripts and word orders the languages beside English have."""
    counts = []
    for name in ("family", "script", "word_order"):
        rows = [row for row in evidence.select(T1, field=name) if row["language"] != "en"]
        counts.append(len({row["text"] for row in rows if row["text"]}))
    return ";".join(map(str, counts))


@quantity
def iterations(evidence: Evidence) -> Number:
    """How often the permutation test shuffles."""
    from inspect import signature

    from crossalign.analysis.significance import permutation_test

    evidence.select(T3, model="adjusted")
    return Number(signature(permutation_test).parameters["iterations"].default, "count")


@quantity
def level(evidence: Evidence) -> Number:
    """The level of the tests whose marks the tables carry."""
    evidence.select(T2, model="adjusted")
    return Number(LEVEL, "count")


def data(kind: str, name: str, split: str, *languages: str) -> list[DataSet]:
    return [DataSet(kind, f"{name}_{lang}", split) for lang in languages]


CLAIMS = {
    "nli-gain-adjust": on_nli(
        "adjustment changes XNLI accuracy by {gains:+} points",
        every("gains", positive),
        number=near("best", "points"),
        gains=NLI,
        best=largest(NLI),
    ),
    "nli-gain-continual": on_nli(
        "continual learning adds {gains:+} points to adjusted models, {best:+} at most",
        every("gains", positive),
        number=near("best", "points"),
        gains=NLI_CONTINUAL,
        best=largest(NLI_CONTINUAL),
    ),
    "nli-mixed-hi": claim(
        T2,
        "adjustment and continual learning change mixed-language Hindi by {gain:+} points",
        positive("gain"),
        number=near("gain", "points"),
        learnt={"nli": chosen(MIXED_BEFORE, "hi mixed-language")},
        gain=chosen(MIXED_CONTINUAL, "hi"),
    ),
    "mixed-gain-adjust": on_mixed(
        "adjustment gains more on mixed-language XNLI by {more:+} points", every("more", positive), more=MIXED - NLI
    ),
    "mixed-gain-continual": on_mixed(
        "adjustment and continual learning gain more on mixed-language XNLI by {more:+} points",
        every("more", positive),
        more=MIXED_CONTINUAL - gains_in("nli", CONTINUAL, "original"),
    ),
    "ner-gain-hi": on_ner(
        "adjustment changes Hindi NER by {gain:+} points, and that is more than elsewhere by {leads:+}",
        all_of(positive("gain"), every("leads", positive)),
        number=near("gain", "points"),
        # Of Hindi alone, whatever the other languages are.
        measured_on=lambda _: data("ner", "wikiann", "test", "hi"),
        gain=chosen(NER, "hi"),
        leads=leads_of(NER, "hi"),
    ),
    "ner-langs": on_ner(
        "adjustment changes NER by {gains:+} points", only("gains", ("ru", "vi", "hi"), positive), gains=NER
    ),
    "ner-es-falls": claim(
        T3,
        "adjustment changes Spanish NER by {gain:+} points",
        negative("gain"),
        learnt={"ner": chosen(NER_BEFORE, "es")},
        gain=chosen(NER, "es"),
    ),
    "ner-continual": on_ner(
        "continual learning changes NER of adjusted models by {gains:+} points",
        only("gains", ("ru",), positive),
        gains=NER_CONTINUAL,
    ),
    "continual-nli-only": on_all(
        T2,
        "continual learning changes adjusted models by {nli:+} points in NLI, {ner:+} in NER and {qa:+} in QA",
        all_of(every("nli", positive), count("ner", positive, value=0), count("qa", positive, value=0)),
        learnt={"nli": NLI_BEFORE, "ner": NER_BEFORE, "qa": ALL_QA_BEFORE},
        nli=NLI_CONTINUAL,
        ner=NER_CONTINUAL,
        qa=QA_CONTINUAL,
    ),
    "latin-script": claim(
        T2,
        "languages in Latin script are ahead of others by {leads:+} points",
        every("leads", positive),
        learnt={"nli": NLI_BEFORE, "ner": NER_BEFORE},
        leads=above(
            ("es", "vi"),
            ("ru", "hi"),
            NLI=NLI_BEFORE,
            NER=cells(T3, ["language"], model="original", metric=ner_metric()),
        ),
    ),
    "qa-deteriorations": on_qa(
        "adjustment changes monolingual QA by {gains:+} points, from {before}",
        some("gains", negative),
        number=count("gains", negative, "test_sets"),
        gains=QA,
        before=QA_BEFORE,
    ),
    "qa-gains": on_qa(
        "adjustment changes monolingual QA by {gains:+} points, from {before}",
        count("gains", positive, value=0),
        gains=QA,
        before=QA_BEFORE,
    ),
    "qa-falls-where": on_qa(
        "adjustment changes monolingual QA by {gains:+} points",
        only("gains", ("es-mlqa", "es-xquad", "vi-mlqa"), negative),
        gains=one_word(QA),
    ),
    "qa-continual": on_all(
        T4,
        "continual learning changes QA of adjusted models by {gains:+} points",
        most("gains", negative),
        learnt={"qa": ALL_QA_BEFORE},
        gains=QA_CONTINUAL,
    ),
    "xquad-mlqa": on_qa(
        "F1 on XQuAD is above that on MLQA by {leads:+} points",
        every("leads", positive),
        leads=between_sets("xquad", "mlqa"),
    ),
    "qa-cross-gains": on_cross_qa(
        "adjustment changes cross-lingual QA by {gains:+} points", only("gains", ("vi", "hi"), positive), gains=QA_CROSS
    ),
    "qa-cross-some": on_cross_qa(
        "adjustment changes cross-lingual QA by {gains:+} points", some("gains", positive), gains=QA_CROSS
    ),
    # Tables 8 and 9: English again, and another model.
    "mono-diff": claim(
        T8,
        "original and adjusted models differ by {differences:+} points, {most} at most",
        every("differences", lambda name: all_of(at_least(name, "points", -1), at_most(name, "points"))),
        number=at_most("most"),
        learnt={"qa": cells(T8, ["dataset", "language"], model="original")},
        differences=monolingual(),
        most=largest(sizes(monolingual())),
    ),
    "embert-gain": claim(
        T9,
        "adjustment changes extended mBERT by {gains:+} points, {least:+} at least",
        every("gains", positive),
        number=at_least("least"),
        learnt=EXTENDED_BEFORE,
        gains=extended_gains(*ALL),
        least=smallest(extended_gains(*ALL)),
    ),
    "embert-qa": claim(
        T9,
        "adjustment changes QA of extended mBERT by {gains:+} points",
        some("gains", positive),
        learnt={"qa": EXTENDED_BEFORE["qa"]},
        gains=extended_gains("qa"),
    ),
    "embert-better": claim(
        T9,
        "extended mBERT is ahead of mBERT by {leads:+} points",
        every("leads", positive),
        learnt=EXTENDED_BEFORE,
        leads=extended_leads(),
    ),
    **STUDIES,
    # How the experiments were made.
    "seeds": stated(T2, "runs behind every number: {ours} at least", runs(T2)),
    "p-threshold": stated(T2, "marks at p below {ours}", level()),
    "perm-iterations": stated(T3, "{ours} permutations", iterations()),
    "main-size": made_with(T2, "{ours} sentence pairs", PAPER, "pairs", read=pair_count),
    "pool-size": made_with(T2, "{ours} sentence pairs per language", PAPER, "pool"),
    "alpha": made_with(T2, "alpha {ours}", "pull", "continual", "alpha"),
    "bs-target": made_with(
        T2,
        "batches of {ours} (NLI; NER; QA)",
        "finetune",
        read=lambda presets: [presets[f"adjust-{task}"]["batch"] for task in ALL],
        value="32;32;32",
    ),
    "bs-align": made_with(T2, "batches of {ours} sentence pairs", "pull", "continual", "batch"),
    **{f"time-{name}": background(HARDWARE) for name in ("adjust", "nli", "qa", "ner", "nli-cl", "qa-cl", "ner-cl")},
    "budget": background("the authors' total, exploratory runs included"),
    "mbert-params": claim(
        T2,
        "{ours} million parameters in the model's file",
        number=near("ours", "exact"),
        ours=parameters(T2, "mbert", 1e-6),
    ),
    "mnli-size": background("counts all of MultiNLI; this workflow reads its training set alone, 392,702 pairs"),
    "xnli-dev": sized("anc/table1", "{ours} examples", data("nli", "xnli", "dev", "en"), about("ours")),
    "xnli-test": each_sized(T2, "examples: {ours}", data("nli", "xnli", "test", *LANGUAGES), every("ours", about)),
    "wikiann-train": sized(T3, "{ours} sentences", data("ner", "wikiann", "train", "en"), about("ours")),
    "wikiann-test-big": each_sized(
        T3, "sentences: {ours}", data("ner", "wikiann", "test", "es", "vi", "ru"), every("ours", about)
    ),
    "wikiann-test-hi": sized(T3, "{ours} sentences", data("ner", "wikiann", "test", "hi"), about("ours")),
    "wikiann-langs": background("the archive holds more languages than this workflow reads"),
    "squad-size": sized(
        T4,
        "{ours} questions in the training and dev sets",
        [*data("qa", "squad", "train", "en"), *data("qa", "squad", "dev", "en")],
        about("ours"),
    ),
    "xquad-paragraphs": background("our prepared sets count questions, not paragraphs"),
    "xquad-questions": each_sized(
        T4, "questions: {ours}", data("qa", "xquad", "test", *LANGUAGES), every("ours", equals)
    ),
    "mlqa-size": each_sized(
        T4, "questions: {ours}", data("qa", "mlqa", "test", "es", "vi", "hi"), every("ours", about)
    ),
    "tydi-ru": sized(T4, "{ours} items", data("qa", "tydiqa", "dev", "ru"), equals("ours")),
    "wikimatrix-pairs": background("this workflow reads four of the language pairs"),
    **{name: background(PROSE) for name in ("yandex", "sov", "lr-size")},
    "lang-diversity": stated(T1, "languages of {ours} families, scripts and word orders", diversity()),
}
