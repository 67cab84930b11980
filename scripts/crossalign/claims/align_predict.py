"""The claims of `align-predict`."""

from crossalign.claims.claim import Claim, background, each_sized, made_with, sized, stated
from crossalign.claims.curves import at, curve, curves, drops, part
from crossalign.claims.groups import every, most
from crossalign.claims.predicates import (
    Predicate,
    all_of,
    at_least,
    correlates,
    equals,
    greater,
    near,
    negative,
    peaks_at,
    rises_then_falls,
)
from crossalign.claims.quantities import Quantity, cell, different, runs, spread
from crossalign.claims.values import Number
from crossalign.sets import DataSet

PAPER = "align-predict"
T1, T2, T3, T4, T5, T6 = (f"{PAPER}/table{place}" for place in range(1, 7))
F1, F3, F5 = (f"{PAPER}/figure{place}" for place in (1, 3, 5))
RANDOM = [f"{PAPER}/figure{place}" for place in (6, 7, 8)]
CORRELATION = "correlation of gap and similarity"
# The languages of the study, and those whose curves are drawn.
STUDIED, SHOWN = f"{PAPER}.languages", f"{PAPER}.similarity_languages"
TASKS = {"parsing": "Parsing", "pos": "POS", "ner": "NER"}


def delta(target: str, layers: str) -> Quantity:
    """What re-initialising some layers does to parsing from English."""
    return cell(T1, task="parsing", source="en", target=target, layers=layers)


def peak_claim(task: str) -> Claim:
    """Similarity of English and Russian in a fine-tuned model is largest at layer 5."""
    line = curve(F1, "English-Russian", TASKS[task])
    return Claim(
        F1,
        "CKA of English and Russian is largest at {curve}, and {fifth} % at layer 5",
        {"curve": line, "fifth": at(line, 5, 100, "percent")},
        test=peaks_at("curve", 5),
        number=near("fifth", "percent"),
    )


def spread_claim(task: str, which: str) -> Claim:
    """The caption of table 5 on standard deviations over seeds."""
    words = {"min": "smallest", "median": "median", "max": "largest"}[which]
    return Claim(
        T5,
        f"the {words} standard deviation over seeds is {{std}} points",
        {"std": spread(T5, which, task=task)},
        number=near("std", "spread_largest" if which == "max" else "spread"),
    )


def correlation_claim(item: str, task: str, doubt: str = "") -> Claim:
    """Similarity goes with transfer."""
    keys = {"task": task, "model": "fine-tuned"}
    return Claim(
        item,
        "Spearman's rho of similarity and transfer is {rho}, p {p}",
        {
            "rho": cell(item, "correlation", metric="spearman", **keys),
            "p": cell(item, "p", metric="p", **keys),
        },
        test=correlates("rho", "p"),
        number=near("rho", "correlation"),
        doubt=doubt,
        over=STUDIED,
    )


def layers_claim(says: str, given: dict[str, Quantity], test: Predicate, amount: str) -> Claim:
    """What re-initialising a pair of layers does to parsing, with the amount in English or elsewhere."""
    return Claim(T1, says, given, test=test, number=near(amount, "points"), over=STUDIED)


def domain(domain: str, target: str) -> Quantity:
    """What re-initialising layers 1-2 does to parsing of a domain."""
    return cell(T2, task="parsing", target=target, domain=domain, layers="1-2")


def languages_counted(evidence) -> Number:
    """The languages of the study, without those shown beside it."""
    beside = evidence.config[PAPER]["beside"]
    return different(T6, "target", ["X", *beside], layers="ref")(evidence)


def further_targets(evidence) -> Number:
    """The languages that are no source."""
    paper = evidence.config[PAPER]
    return different(T6, "target", ["X", *paper["beside"], *paper["sources"]], layers="ref")(evidence)


LOWER = {"elsewhere": delta("X", "1-2"), "english": delta("en", "1-2")}
LOWER_SAYS = "re-initialising layers 1-2 costs parsing {elsewhere:cost} points elsewhere and {english:cost} in English"
UPPER = {"elsewhere": delta("X", "11-12"), "english": delta("en", "11-12")}
UPPER_SAYS = "re-initialising layers 11-12 changes parsing by {elsewhere:+} points elsewhere and {english:+} in English"
DOMAINS = {
    "french": domain("translation of in-domain test", "fr"),
    "literature": domain("literature", "en"),
}
DOMAINS_SAYS = (
    "re-initialising layers 1-2 costs {literature:cost} points in English literature and {french:cost} in French"
)

CLAIMS: dict[str, Claim] = {
    **{f"cka-peak-{task}": peak_claim(task) for task in TASKS},
    "cka-peak-layer": Claim(
        F1,
        "similarity is largest at {curves}, over {curves:count} curves",
        {"curves": curves([F1, F5])},
        test=all_of(
            most("curves", lambda name: peaks_at(name, 5)),
            most("curves", rises_then_falls),
        ),
        over=SHOWN,
    ),
    "cka-lower-reinit": Claim(
        RANDOM[0],
        "re-initialising layers 1-2 changes the mean CKA by {drops:mean+} over {drops:count} language pairs and tasks",
        {"drops": drops(RANDOM, "layers 1-2", above=2)},
        test=most("drops", negative),
        over=SHOWN,
    ),
    **{f"std-{task}-{which}": spread_claim(task, which) for task in TASKS for which in ("min", "median", "max")},
    "spearman-ft-parsing": correlation_claim(T4, "parsing"),
    "spearman-ft-pos": correlation_claim(T4, "pos", "0.75 in the text, 0.74 in table 4 and in the talk"),
    "spearman-ft-ner": correlation_claim(T4, "ner"),
    "spearman-n": stated(
        T4,
        "{ours} languages stand behind the larger correlation, English itself included",
        lambda evidence: max(
            (Number(float(row["languages"]), "count") for row in evidence.select(T4, {"metric": "spearman"})),
            key=lambda number: number.value,
        ),
        equals("ours"),
    ),
    "spearman-layer": Claim(
        F3,
        "in the pretrained model the correlation is largest at: {curves}",
        {"curves": curves(F3, "correlation", series=[f"{name}, pretrained" for name in TASKS.values()])},
        test=every("curves", lambda name: peaks_at(name, 6)),
        over=STUDIED,
    ),
    "spearman-ner-upper": Claim(
        F3,
        "in layers 7-12 the correlation of the NER model goes over {curve:range} with its peak at {curve}",
        {"curve": part(curve(F3, CORRELATION, "NER, fine-tuned", "correlation"), 7, 12)},
        test=rises_then_falls("curve", "sharp", first=None),
        over=STUDIED,
    ),
    "drop-en-en-parse": layers_claim(LOWER_SAYS, LOWER, greater("english", "elsewhere"), "english"),
    "drop-en-x-parse": layers_claim(LOWER_SAYS, LOWER, greater("english", "elsewhere"), "elsewhere"),
    "upper-en-en-parse": layers_claim(UPPER_SAYS, UPPER, at_least("english", "harmless", -1), "english"),
    "upper-en-x-parse": layers_claim(UPPER_SAYS, UPPER, at_least("elsewhere", "harmless", -1), "elsewhere"),
    "domain-lit": Claim(
        T2, DOMAINS_SAYS, DOMAINS, test=greater("literature", "french"), number=near("literature", "points")
    ),
    "domain-fr": Claim(
        T2, DOMAINS_SAYS, DOMAINS, test=greater("literature", "french"), number=near("french", "points")
    ),
    "languages": stated(T6, "{ours} languages, those beside the study not counted", languages_counted, equals("ours")),
    "sources": stated(T6, "{ours} source languages", different(T6, "source", layers="ref"), equals("ours")),
    "targets": stated(T6, "{ours} languages that are no source", further_targets, equals("ours")),
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
