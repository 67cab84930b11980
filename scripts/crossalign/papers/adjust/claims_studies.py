"""The claims of `adjust` on tables 5 to 9: one language, one setting varied, or another model."""

from crossalign.papers.adjust.claims_quantities import (
    T5,
    T6,
    T7,
    T8,
    T9,
    best_sizes,
    extended_before,
    extended_gains,
    extended_leads,
    falls,
    growth,
    in_study,
    leads,
    monolingual,
    ner_before,
    nli_before,
    qa_before,
    steps,
    with_fewest,
)
from crossalign.results.claims.claim import Claim
from crossalign.results.claims.groups import every, some
from crossalign.results.claims.predicates import all_of, at_least, at_most, near, negative, positive
from crossalign.results.claims.quantities import cells, largest, sizes, smallest

ALL = ("nli", "ner", "qa")
BEFORE = {"nli": nli_before(), "ner": ner_before, "qa": qa_before()}


def learnt(study: str, *tasks: str) -> tuple:
    """The floors of some tasks for the language that a study is about."""
    return tuple((task, in_study(BEFORE[task], study)) for task in tasks)


def grows(task: str, score: str) -> Claim:
    """A score that grows nearly monotonically with the number of sentence pairs: no step is a visible loss."""
    return Claim(
        T5,
        f"{score} gains {{growth:+}} points more from the most pairs than from the fewest, in steps of {{steps:+}}",
        {"growth": growth(task), "steps": steps(task)},
        test=all_of(positive("growth"), every("steps", lambda name: at_least(name, "points", -1))),
        learnt=learnt("sizes", task),
    )


STUDIES: dict[str, Claim] = {
    "qa-peak-size": Claim(
        T5,
        "QA gains most from so many sentence pairs: {best}; with the most pairs it gains less by {falls} points",
        {"best": best_sizes, "falls": falls},
        test=every("falls", positive),
        number=every("best", lambda name: near(name, "roughly", relative=True)),
        learnt=learnt("sizes", "qa"),
    ),
    "qa-few-pairs": Claim(
        T5,
        "with the fewest sentence pairs QA gains {gains:+} points",
        {"gains": with_fewest},
        test=every("gains", positive),
        learnt=learnt("sizes", "qa"),
    ),
    "size-nli": grows("nli", "XNLI"),
    "size-ner": grows("ner", "NER"),
    "agg-subword": Claim(
        T6,
        "alignment of sub-words changes the gain of averaged ones by {others:+} points, and by {nli:+} in NLI",
        {
            "others": leads(T6, "subword alignment", "avg", "ner", "qa"),
            "nli": leads(T6, "subword alignment", "avg", "nli"),
        },
        test=all_of(every("others", negative), every("nli", lambda name: at_least(name, "points", -1))),
        learnt=learnt("aggregations", *ALL),
    ),
    "agg-start-ner": Claim(
        T6,
        "the first sub-word changes the gain of averaged ones in NER by {leads:+} points",
        {"leads": leads(T6, "start", "avg", "ner")},
        test=every("leads", positive),
        learnt=learnt("aggregations", "ner"),
    ),
    "words-cls": Claim(
        T7,
        "words gain more than [CLS] by {leads:+} points",
        {"leads": leads(T7, "words", "[CLS]", "nli", "ner")},
        test=every("leads", positive),
        number=every("leads", at_least),
        learnt=learnt("token_choices", "nli", "ner"),
    ),
    "words-all": Claim(
        T7,
        "words and special tokens gain more than words by {leads:+} points",
        {"leads": leads(T7, "all", "words", "nli", "ner")},
        test=every("leads", positive),
        learnt=learnt("token_choices", "nli", "ner"),
    ),
    "qa-cls": Claim(
        T7,
        "words and special tokens gain more in QA than [CLS] by {cls:+} points, and more than words by {words:+}",
        {"cls": leads(T7, "all", "[CLS]", "qa"), "words": leads(T7, "all", "words", "qa")},
        test=all_of(every("cls", positive), every("words", positive)),
        learnt=learnt("token_choices", "qa"),
    ),
    "mono-diff": Claim(
        T8,
        "original and adjusted models differ by {differences:+} points, {most} at most",
        {"differences": monolingual, "most": largest(sizes(monolingual))},
        test=every("differences", lambda name: all_of(at_least(name, "points", -1), at_most(name, "points"))),
        number=at_most("most"),
        learnt=(("qa", cells(T8, ["dataset", "language"], model="original")),),
    ),
    "embert-gain": Claim(
        T9,
        "adjustment changes extended mBERT by {gains:+} points, {least:+} at least",
        {"gains": extended_gains(*ALL), "least": smallest(extended_gains(*ALL))},
        test=every("gains", positive),
        number=at_least("least"),
        learnt=tuple((task, extended_before(task)) for task in ALL),
    ),
    "embert-qa": Claim(
        T9,
        "adjustment changes QA of extended mBERT by {gains:+} points",
        {"gains": extended_gains("qa")},
        test=some("gains", positive),
        learnt=(("qa", extended_before("qa")),),
    ),
    "embert-better": Claim(
        T9,
        "extended mBERT is ahead of mBERT by {leads:+} points",
        {"leads": extended_leads},
        test=every("leads", positive),
        learnt=tuple((task, extended_before(task)) for task in ALL),
    ),
}
