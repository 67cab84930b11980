"""The claims of `adjust`."""

from crossalign.claims.adjust_setup import SETUP
from crossalign.claims.adjust_tables import best_sizes, falls, monolingual
from crossalign.claims.claim import Claim
from crossalign.claims.groups import count, every, only, some
from crossalign.claims.histograms import separation_changes, top_dimensions
from crossalign.claims.predicates import at_least, at_most, near, negative, positive
from crossalign.claims.quantities import cells, chosen, gains, largest, sizes, smallest

PAPER = "adjust"
T2, T3, T4, T5, T8, T9 = (f"{PAPER}/table{place}" for place in (2, 3, 4, 5, 8, 9))
F1, F2 = f"{PAPER}/figure1", f"{PAPER}/figure2"
STUDIED = f"{PAPER}.languages"
CONTINUAL = "adjusted+continual"

NLI = gains(T2, "adjusted", "original", setting="original")
NLI_CONTINUAL = gains(T2, CONTINUAL, "adjusted", setting="original")
NLI_MIXED = gains(T2, CONTINUAL, "original", setting="mixed-language")
NER = gains(T3, "adjusted", "original", metric="token F1")
NER_CONTINUAL = gains(T3, CONTINUAL, "adjusted", metric="token F1")
QA = gains(T4, "adjusted", "original", ["language", "dataset"], setting="monolingual")
QA_BEFORE = cells(T4, ["language", "dataset"], model="original", setting="monolingual")
CROSS = ["question target, paragraph en", "question en, paragraph target"]
QA_CROSS = gains(T4, "adjusted", "original", ["language", "dataset", "setting"], setting=CROSS)


CLAIMS: dict[str, Claim] = {
    "nli-gain-adjust": Claim(
        T2,
        "adjustment changes XNLI accuracy by {gains:+} points",
        {"gains": NLI, "best": largest(NLI)},
        test=every("gains", positive),
        number=near("best", "points"),
        over=STUDIED,
    ),
    "nli-gain-continual": Claim(
        T2,
        "continual learning adds {gains:+} points to adjusted models, {best:+} at most",
        {"gains": NLI_CONTINUAL, "best": largest(NLI_CONTINUAL)},
        test=positive("best"),
        number=near("best", "points"),
        over=STUDIED,
    ),
    "nli-mixed-hi": Claim(
        T2,
        "adjustment and continual learning change mixed-language Hindi by {gain:+} points",
        {"gain": chosen(NLI_MIXED, "hi")},
        test=positive("gain"),
        number=near("gain", "points"),
    ),
    "ner-gain-hi": Claim(
        T3,
        "adjustment changes Hindi NER by {gain:+} points",
        {"gain": chosen(NER, "hi")},
        test=positive("gain"),
        number=near("gain", "points"),
    ),
    "ner-langs": Claim(
        T3,
        "adjustment changes NER by {gains:+} points",
        {"gains": NER},
        test=only("gains", ("ru", "vi", "hi"), positive),
        over=STUDIED,
    ),
    "ner-continual": Claim(
        T3,
        "continual learning changes NER of adjusted models by {gains:+} points",
        {"gains": NER_CONTINUAL},
        test=only("gains", ("ru",), positive),
        over=STUDIED,
    ),
    "qa-deteriorations": Claim(
        T4,
        "adjustment changes monolingual QA by {gains:+} points, from {before}",
        {"gains": QA, "before": QA_BEFORE},
        test=some("gains", negative),
        number=count("gains", negative, "test_sets"),
        over=STUDIED,
    ),
    "qa-gains": Claim(
        T4,
        "adjustment changes monolingual QA by {gains:+} points, from {before}",
        {"gains": QA, "before": QA_BEFORE},
        test=count("gains", positive, value=0),
        over=STUDIED,
    ),
    "qa-peak-size": Claim(
        T5,
        "QA gains most from so many sentence pairs: {best}; with the most pairs it gains less by {falls} points",
        {"best": best_sizes, "falls": falls},
        test=every("falls", positive),
        number=every("best", lambda name: near(name, "roughly", relative=True)),
    ),
    "qa-cross-gains": Claim(
        T4,
        "adjustment changes cross-lingual QA by {gains:+} points",
        {"gains": QA_CROSS},
        test=only("gains", ("vi", "hi"), positive),
        over=STUDIED,
    ),
    "mono-diff": Claim(
        T8,
        "original and adjusted models differ by {most} points at most",
        {"most": largest(sizes(monolingual))},
        number=at_most("most"),
    ),
    "embert-gain": Claim(
        T9,
        "adjustment changes extended mBERT by {gains:+} points, {least:+} at least",
        {
            "gains": gains(T9, "adjusted", "original", ["dataset"], ["variant"], metric=["accuracy", "token F1", "F1"]),
            "least": smallest(
                gains(T9, "adjusted", "original", ["dataset"], ["variant"], metric=["accuracy", "token F1", "F1"])
            ),
        },
        test=every("gains", positive),
        number=at_least("least", 1.0),
    ),
    "dims-10": Claim(
        F1,
        "the 10 most influential dimensions carry {share} % of the squared distance",
        {"share": top_dimensions("top10")},
        number=near("share", "percent"),
    ),
    "dims-100": Claim(
        F1,
        "the 100 most influential dimensions carry {share} % of the squared distance",
        {"share": top_dimensions("top100")},
        number=near("share", "percent"),
    ),
    **SETUP,
    "hist-adjust": Claim(
        F2,
        "adjustment changes the area under the ROC curve of related and unrelated words by {changes:+}",
        {"changes": separation_changes(F2, "adjusted", "original")},
        test=every("changes", lambda name: at_least(name, "separation")),
        over=STUDIED,
    ),
    "hist-ft": Claim(
        F2,
        "fine-tuning changes the area under the ROC curve of related and unrelated words by {changes:+}",
        {"changes": separation_changes(F2, "original, {task}", "original")},
        test=every("changes", lambda name: at_most(name, "separation", -1)),
        over=STUDIED,
    ),
    "hist-cl": Claim(
        F2,
        "continual learning changes the area under the ROC curve of related and unrelated words by {changes:+}",
        {"changes": separation_changes(F2, "continual, {task}", "adjusted, {task}")},
        test=every("changes", lambda name: at_least(name, "separation")),
        over=STUDIED,
    ),
}
