"""The claims of `anc`."""

from crossalign.papers.anc.claims_quantities import (
    accuracies,
    ahead,
    average,
    changes,
    english_ahead,
    highest,
    of,
    over_post,
    parts,
)
from crossalign.results.claims.claim import Claim, background, made_with, stated
from crossalign.results.claims.curves import curves, gaps, layers
from crossalign.results.claims.groups import every, most
from crossalign.results.claims.predicates import (
    all_of,
    at_least,
    at_most,
    between,
    equals,
    greater,
    near,
    negative,
    positive,
    rises,
    rises_then_falls,
)
from crossalign.results.claims.quantities import different

PAPER = "anc"
T1 = f"{PAPER}/table1"
F1, F2, F3, F4, F5, F6, F7, F8, F9 = (f"{PAPER}/figure{place}" for place in range(1, 10))
NORM_LANGUAGES = f"{PAPER}.norm_languages"
SCALING = f"{PAPER}.scaling_languages"
PRETRAINED = "how the authors pretrained their models, which are fetched or made at another size here"

NORMFORMER = of(F1, "NormFormer")
MATCHING = of(F2, "NormFormer")
OTHERS = ["Post-LN", "Pre-LN"]
# What the authors computed; the formula of PWCCA that their paper cites gives other values.
CCAS = ["PWCCA (authors' library)", "SVCCA"]
LEARNT = (("nli", accuracies(T1)),)


def first_aligns(name: str):
    """The pattern as this paper has it: languages converge and "diverge slightly only at deep layers"."""
    return rises_then_falls(name, before_end=1)


def near_zero(name: str):
    return at_most(name, "near_zero")


def high(name: str):
    return at_least(name, "high")


CLAIMS: dict[str, Claim] = {
    "anc-peak": Claim(
        F3,
        "the highest curve reaches {mbert} in mBERT and {xlmr} in XLM-R base",
        {"mbert": highest(F3, "mBERT"), "xlmr": highest(F3, "XLM-R base")},
        number=all_of(near("mbert", "similarity"), near("xlmr", "similarity")),
        over=f"{PAPER}.known_languages",
    ),
    "match-fr": Claim(
        F2,
        "French sentences are matched with accuracies of {layers}",
        {"layers": layers(curves(F2, panel="NormFormer", series="English-French"), 6, 12)},
        number=every("layers", lambda name: at_least(name, 0.5)),
    ),
    "match-deep": Claim(
        F2,
        "accuracy of matching in layers 6-12: {upper}; above CKA on average by {ahead}; from layer 6 to 12 it "
        "changes by {declines:+}",
        {
            "upper": layers(MATCHING, 6, 12),
            "ahead": ahead(MATCHING, NORMFORMER, 6, 12),
            "declines": changes(MATCHING, 6, 12),
        },
        test=all_of(
            every("upper", lambda name: at_least(name, "near_zero")),
            every("ahead", positive),
            every("declines", negative),
        ),
        over=NORM_LANGUAGES,
    ),
    "cka-others": Claim(
        F1,
        "CKA of Post-LN and Pre-LN over all layers: {values}",
        {"values": layers(curves(F1, panel=OTHERS), 0, 12)},
        test=most("values", high),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "cka-normformer-high": Claim(
        F1,
        "CKA of NormFormer peaks in layers 0-5 at: {lower}",
        {"lower": parts(NORMFORMER, 0, 5)},
        test=every("lower", rises),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "cka-normformer-drop": Claim(
        F1,
        "CKA of NormFormer changes from layer 5 to 6 by {drops:+}",
        {"drops": changes(NORMFORMER, 5, 6)},
        test=every("drops", lambda name: at_most(name, "high", -1)),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "cka-normformer-zero": Claim(
        F1,
        "CKA of NormFormer in layers 6-12: {upper}",
        {"upper": layers(NORMFORMER, 6, 12)},
        test=every("upper", near_zero),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "cka-normformer-v2": Claim(
        F7,
        "CKA of the second run in layers 6-12: {upper}; it is {away} away from the first",
        {
            "upper": layers(of(F7, "NormFormer, second run"), 6, 12),
            "away": gaps(NORMFORMER, of(F7, "NormFormer, second run")),
        },
        test=all_of(every("upper", near_zero), at_most("away", "similarity")),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "cka-tuned": Claim(
        F8,
        "CKA in layers 6-11: {middle}; in the last: {last}; ANC anywhere: {anc}",
        {
            "middle": layers(of(F8, "CKA"), 6, 11),
            "last": layers(of(F8, "CKA"), 12, 12),
            "anc": layers(of(F8, "ANC"), 0, 12),
        },
        test=all_of(every("middle", near_zero), every("last", high), every("anc", high)),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "ccas": Claim(
        F9,
        "in layers 6-12, PWCCA as the authors' library has it: {pwcca}; SVCCA: {svcca}",
        {"pwcca": layers(of(F9, CCAS[0]), 6, 12), "svcca": layers(of(F9, CCAS[1]), 6, 12)},
        number=all_of(
            *(every(one, lambda name: between(name, 0.5, 0.8, "similarity")) for one in ("pwcca", "svcca")),
        ),
        over=NORM_LANGUAGES,
    ),
    "cca-passes": Claim(
        F9,
        "above CKA in layers 6-12 on average: PWCCA by {pwcca}, SVCCA by {svcca}; their values there: {values}",
        {
            "values": layers(curves(F9, panel=CCAS), 6, 12),
            "pwcca": ahead(of(F9, CCAS[0]), NORMFORMER, 6, 12),
            "svcca": ahead(of(F9, CCAS[1]), NORMFORMER, 6, 12),
        },
        test=all_of(every("values", high), every("pwcca", positive), every("svcca", positive)),
        over=NORM_LANGUAGES,
    ),
    "transfer-gap": Claim(
        T1,
        "English is ahead by {gaps} points",
        {"gaps": english_ahead(T1)},
        test=every("gaps", positive),
        number=every("gaps", lambda name: between(name, 7, 9, "points")),
        over=f"{PAPER}.xnli_languages",
        learnt=LEARNT,
    ),
    "norm-transfer": Claim(
        T1,
        "mean over the other languages, against Post-LN: {leads:+} points",
        {"leads": over_post(T1)},
        test=all_of(
            every("leads", lambda name: at_least(name, "alike", -1)),
            every("leads", lambda name: at_most(name, "alike")),
        ),
        over=f"{PAPER}.xnli_languages",
        learnt=LEARNT,
    ),
    "matching-n": made_with(F2, "{ours} sentences", PAPER, "sentences", same_as=f"{PAPER}/parallel-n"),
    "parallel-n": made_with(F1, "{ours} sentences", PAPER, "sentences"),
    "pretrain-sentences": background(PRETRAINED),
    "pretrain-steps": background(PRETRAINED),
    "pretrain-batch": background(PRETRAINED),
    "pretrain-gpus": background("the authors' hardware"),
    "pretrain-models": stated(F1, "{ours} schemes", different(F1, "panel"), equals("ours")),
    "scale-factor": background(
        "doubtful in print: 10.7 billion are 97 times the 110 million of the text and 60 times the 178 million "
        "that mBERT has"
    ),
    "mbert-params": background("doubtful in print: the model has 178 million parameters, as `adjust` says"),
    "scaling-pattern": Claim(
        F5,
        "ANC is largest at: {curves}",
        {"curves": curves([F5, F6])},
        test=every("curves", first_aligns),
        over=SCALING,
        shape=True,
    ),
    "clm-pattern": Claim(
        F6,
        "ANC of causal models is largest at: {curves}",
        {"curves": curves(F6)},
        test=every("curves", first_aligns),
        over=SCALING,
        shape=True,
    ),
    "mbert-vs-xlmr": Claim(
        F3,
        "mean ANC is {mbert} in mBERT and {xlmr} in XLM-R base",
        {"mbert": average(of(F3, "mBERT")), "xlmr": average(of(F3, "XLM-R base"))},
        test=greater("xlmr", "mbert"),
        over=f"{PAPER}.known_languages",
        shape=True,
    ),
    "anc-known": Claim(
        F3,
        "ANC is largest at: {curves}",
        {"curves": curves(F3, panel=["mBERT", "XLM-R base"])},
        test=every("curves", first_aligns),
        over=f"{PAPER}.known_languages",
        shape=True,
    ),
    "anc-normformer": Claim(
        F4,
        "ANC of NormFormer is largest at: {curves}",
        {"curves": of(F4, "NormFormer")},
        test=every("curves", first_aligns),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "anc-deep": Claim(
        F4,
        "ANC of NormFormer in layers 6-12: {upper}",
        {"upper": layers(of(F4, "NormFormer"), 6, 12)},
        test=every("upper", high),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "anc-others": Claim(
        F4,
        "ANC of Post-LN and Pre-LN is largest at: {curves}",
        {"curves": curves(F4, panel=OTHERS)},
        test=every("curves", first_aligns),
        over=NORM_LANGUAGES,
        shape=True,
    ),
    "xnli-langs": made_with(T1, "languages {ours}", PAPER, "xnli_languages"),
    "norm-langs": made_with(F1, "English with {ours}", PAPER, "norm_languages"),
    "scaling-langs": made_with(F5, "English with {ours}", PAPER, "scaling_languages"),
}
