"""The claims of `adjust` on how its experiments were made: settings, sizes of data, run times."""

from crossalign.claims.claim import Claim, background, made_with, stated
from crossalign.claims.groups import every
from crossalign.claims.predicates import equals, near
from crossalign.claims.quantities import examples, parameters, runs, sample_sizes
from crossalign.claims.values import Number
from crossalign.config import pair_count
from crossalign.render.significance import LEVEL
from crossalign.sets import DataSet

PAPER = "adjust"
T2, T3, T4 = (f"{PAPER}/table{place}" for place in (2, 3, 4))
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
    "xnli-dev": Claim(
        "anc/table1",
        "{ours} examples",
        {"ours": examples("anc/table1", DataSet("nli", "xnli_en", "dev"))},
        number=near("ours", "about", relative=True),
    ),
    "xnli-test": Claim(
        T2,
        "examples: {ours}",
        {"ours": sample_sizes(T2, [DataSet("nli", f"xnli_{lang}", "test") for lang in ("es", "ru", "vi", "hi")])},
        number=every("ours", lambda name: near(name, "about", relative=True)),
    ),
    "wikiann-train": Claim(
        T3, "{ours} sentences", {"ours": examples(T3, *ner("train", "en"))}, number=near("ours", "about", relative=True)
    ),
    "wikiann-test-big": Claim(
        T3,
        "sentences: {ours}",
        {"ours": sample_sizes(T3, ner("test", "es", "vi", "ru"))},
        number=every("ours", lambda name: near(name, "about", relative=True)),
    ),
    "wikiann-test-hi": Claim(
        T3, "{ours} sentences", {"ours": examples(T3, *ner("test", "hi"))}, number=near("ours", "about", relative=True)
    ),
    "wikiann-langs": background("the archive holds more languages than this workflow reads"),
    "squad-size": Claim(
        T4,
        "{ours} questions in the training and dev sets",
        {"ours": examples(T4, DataSet("qa", "squad_en", "train"), DataSet("qa", "squad_en", "dev"))},
        number=near("ours", "about", relative=True),
    ),
    "xquad-paragraphs": background("our prepared sets count questions, not paragraphs"),
    "xquad-questions": Claim(
        T4,
        "questions: {ours}",
        {"ours": sample_sizes(T4, [DataSet("qa", f"xquad_{lang}", "test") for lang in ("es", "ru", "vi", "hi")])},
        number=every("ours", equals),
    ),
    "mlqa-size": Claim(
        T4,
        "questions: {ours}",
        {"ours": sample_sizes(T4, [DataSet("qa", f"mlqa_{lang}", "test") for lang in ("es", "vi", "hi")])},
        number=every("ours", lambda name: near(name, "about", relative=True)),
    ),
    "tydi-ru": Claim(
        T4, "{ours} items", {"ours": examples(T4, DataSet("qa", "tydiqa_ru", "dev"))}, number=equals("ours")
    ),
    "wikimatrix-pairs": background("this workflow reads four of the language pairs"),
    "yandex": background(PROSE),
    "sov": background(PROSE),
}
