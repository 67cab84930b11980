"""The claims of `align-predict` on how its experiments were made: settings, sizes of data, spread over seeds."""

from crossalign.catalog.sets import DataSet
from crossalign.papers.align_predict.claims_shared import F1, PAPER, T1, T2, T3, T4, T5, T6, TASKS
from crossalign.results.claims.claim import Claim, background, each_sized, made_with, sized, stated
from crossalign.results.claims.evidence import Evidence
from crossalign.results.claims.groups import every
from crossalign.results.claims.predicates import equals, near
from crossalign.results.claims.quantities import different, runs, spread
from crossalign.results.claims.values import Number


def spread_claim(task: str, which: str) -> Claim:
    """The caption of table 5 on standard deviations over seeds."""
    words = {"min": "smallest", "median": "median", "max": "largest"}[which]
    return Claim(
        T5,
        f"the {words} standard deviation over seeds is {{std}} points",
        {"std": spread(T5, which, task=task)},
        number=near("std", "spread_largest" if which == "max" else "spread"),
    )


def languages_counted(evidence: Evidence) -> Number:
    """The languages of the study, without those shown beside it."""
    beside = evidence.config[PAPER]["extra_targets"]
    return different(T6, "target", ["X", *beside], layers="ref")(evidence)


def further_targets(evidence: Evidence) -> Number:
    """The languages that are no source."""
    paper = evidence.config[PAPER]
    return different(T6, "target", ["X", *paper["extra_targets"], *paper["sources"]], layers="ref")(evidence)


SETUP: dict[str, Claim] = {
    **{f"std-{task}-{which}": spread_claim(task, which) for task in TASKS for which in ("min", "median", "max")},
    "spearman-n": stated(
        T4,
        "{ours} languages stand behind the larger correlation, English itself included",
        lambda evidence: max(
            (Number(float(row["languages"]), "count") for row in evidence.select(T4, {"metric": "spearman"})),
            key=lambda number: number.value,
        ),
        equals("ours"),
    ),
    "languages": stated(T6, "{ours} languages, those beside the study not counted", languages_counted, equals("ours")),
    "sources": stated(T6, "{ours} source languages", different(T6, "source", layers="ref"), equals("ours")),
    "targets": stated(T6, "{ours} languages that are no source", further_targets, equals("ours")),
    "tasks": stated(T1, "{ours} tasks", different(T1, "task", layers="ref"), equals("ours")),
    "seeds": stated(T1, "runs behind every number: {ours} at least", runs(T1), equals("ours")),
    "mbert-layers": stated(
        F1,
        "{ours} layers above the embeddings",
        lambda evidence: Number(max(evidence.curve(F1, "English-Russian", "pretrained").points), "count"),
        equals("ours"),
    ),
    "mbert-languages": background("a fact about how mBERT was pretrained, which none of our results depends on"),
    "pud-sentences": each_sized(
        F1,
        "parallel sentences: {ours}",
        [DataSet("parallel", "pud", lang) for lang in ("en", "ru")],
        every("ours", equals),
    ),
    "fr-partut-sentences": sized(T2, "{ours} sentences", [DataSet("trees", "fr_partut", "test")], equals("ours")),
    "grid-batch": made_with(T3, "batch sizes {ours}", PAPER, "grid", "batch"),
    "grid-lr": made_with(T3, "learning rates {ours}", PAPER, "grid", "learning_rate"),
    "warmup": made_with(
        T1,
        "warm-up over {ours} % of the steps",
        "finetune",
        "defaults",
        "warmup",
        read=lambda share: round(100 * share, 6),
    ),
    "epochs-parsing": made_with(T1, "best of {ours} epochs", "finetune", "parsing", "epochs"),
    "epochs-pos-ner": made_with(
        T1,
        "best of {ours} epochs (POS; NER)",
        "finetune",
        read=lambda recipes: [recipes["pos"]["epochs"], recipes["ner"]["epochs"]],
        value="6;6",
    ),
    "gpus": background("the authors' hardware; ours is told with each run"),
}
