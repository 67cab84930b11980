"""The claims of `adjust` on how its experiments were made: settings, sizes of data, run times."""

from crossalign.catalog.config import pair_count
from crossalign.catalog.sets import DataSet
from crossalign.papers.adjust.arms import LEVEL
from crossalign.papers.adjust.claims_quantities import T1, T2, T3, T4, diversity
from crossalign.results.claims.claim import Claim, background, each_sized, made_with, sized, stated
from crossalign.results.claims.groups import every
from crossalign.results.claims.predicates import equals, near
from crossalign.results.claims.quantities import parameters, runs
from crossalign.results.claims.values import Number

PAPER = "adjust"
HARDWARE = "a run time on the authors' hardware (one Tesla V100); ours is told with each run"
PROSE = "an experiment that the paper tells in prose, without numbers, table or figure; it is not part of this workflow"


def iterations(evidence) -> Number:
    """How often the permutation test shuffles."""
    from inspect import signature

    from crossalign.analysis.significance import permutation_test

    evidence.select(T3, {"model": "adjusted"})
    return Number(signature(permutation_test).parameters["iterations"].default, "count")


def level(evidence) -> Number:
    """The level of the tests whose marks the tables carry."""
    evidence.select(T2, {"model": "adjusted"})
    return Number(LEVEL, "count")


def ner(split: str, *languages: str) -> list[DataSet]:
    return [DataSet("ner", f"wikiann_{lang}", split) for lang in languages]


SETUP: dict[str, Claim] = {
    "seeds": stated(T2, "runs behind every number: {ours} at least", runs(T2), equals("ours")),
    "p-threshold": stated(T2, "marks at p below {ours}", level, equals("ours")),
    "perm-iterations": stated(T3, "{ours} permutations", iterations, equals("ours")),
    "main-size": made_with(T2, "{ours} sentence pairs", PAPER, "pairs", read=pair_count),
    "pool-size": made_with(T2, "{ours} sentence pairs per language", PAPER, "pool"),
    "alpha": made_with(T2, "alpha {ours}", "adjustment", "continual", "alpha"),
    "bs-target": made_with(
        T2,
        "batches of {ours} (NLI; NER; QA)",
        "finetune",
        read=lambda recipes: [recipes[f"adjust-{task}"]["batch"] for task in ("nli", "ner", "qa")],
        value="32;32;32",
    ),
    "bs-align": made_with(T2, "batches of {ours} sentence pairs", "adjustment", "continual", "batch"),
    **{f"time-{name}": background(HARDWARE) for name in ("adjust", "nli", "qa", "ner", "nli-cl", "qa-cl", "ner-cl")},
    "budget": background("the authors' total, exploratory runs included"),
    "mbert-params": Claim(
        T2,
        "{ours} million parameters in the model's file",
        {"ours": parameters(T2, "mbert", 1e-6)},
        number=near("ours", "exact"),
    ),
    "mnli-size": background("counts all of MultiNLI; this workflow reads its training set alone, 392,702 pairs"),
    "xnli-dev": sized(
        "anc/table1",
        "{ours} examples",
        [DataSet("nli", "xnli_en", "dev")],
        near("ours", "about", relative=True),
    ),
    "xnli-test": each_sized(
        T2,
        "examples: {ours}",
        [DataSet("nli", f"xnli_{lang}", "test") for lang in ("es", "ru", "vi", "hi")],
        every("ours", lambda name: near(name, "about", relative=True)),
    ),
    "wikiann-train": sized(T3, "{ours} sentences", ner("train", "en"), near("ours", "about", relative=True)),
    "wikiann-test-big": each_sized(
        T3,
        "sentences: {ours}",
        ner("test", "es", "vi", "ru"),
        every("ours", lambda name: near(name, "about", relative=True)),
    ),
    "wikiann-test-hi": sized(T3, "{ours} sentences", ner("test", "hi"), near("ours", "about", relative=True)),
    "wikiann-langs": background("the archive holds more languages than this workflow reads"),
    "squad-size": sized(
        T4,
        "{ours} questions in the training and dev sets",
        [DataSet("qa", "squad_en", "train"), DataSet("qa", "squad_en", "dev")],
        near("ours", "about", relative=True),
    ),
    "xquad-paragraphs": background("our prepared sets count questions, not paragraphs"),
    "xquad-questions": each_sized(
        T4,
        "questions: {ours}",
        [DataSet("qa", f"xquad_{lang}", "test") for lang in ("es", "ru", "vi", "hi")],
        every("ours", equals),
    ),
    "mlqa-size": each_sized(
        T4,
        "questions: {ours}",
        [DataSet("qa", f"mlqa_{lang}", "test") for lang in ("es", "vi", "hi")],
        every("ours", lambda name: near(name, "about", relative=True)),
    ),
    "tydi-ru": sized(T4, "{ours} items", [DataSet("qa", "tydiqa_ru", "dev")], equals("ours")),
    "wikimatrix-pairs": background("this workflow reads four of the language pairs"),
    "yandex": background(PROSE),
    "sov": background(PROSE),
    "lr-size": background(PROSE),
    "lang-diversity": stated(T1, "languages of {ours} families, scripts and word orders", diversity, equals("ours")),
}
