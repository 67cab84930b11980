"""The claims of `anc`."""

from crossalign.claims.claim import Claim, background, made_with, stated
from crossalign.claims.curves import curves, gaps, layers, level, part
from crossalign.claims.groups import every
from crossalign.claims.predicates import (
    all_of,
    at_least,
    at_most,
    between,
    equals,
    greater,
    near,
    positive,
    rises,
    rises_then_falls,
)
from crossalign.claims.quantities import Quantity, Value, cells, different
from crossalign.claims.values import Group, Number

PAPER = "anc"
T1 = f"{PAPER}/table1"
F1, F2, F3, F5, F6, F7, F8, F9 = (f"{PAPER}/figure{place}" for place in (1, 2, 3, 5, 6, 7, 8, 9))
NORM_LANGUAGES = f"{PAPER}.norm_languages"
PRETRAINED = "how the authors pretrained their models, which are fetched or made at another size here"


def of(item: str, panel: str) -> Quantity:
    """The curves of one model, or of one index."""
    return curves(item, panel=panel)


def highest(item: str, panel: str) -> Quantity:
    """The largest value of any curve in a panel."""

    def found(evidence) -> Number:
        points = [member.points[member.peak] for _, member in of(item, panel)(evidence)]
        return max(points, key=lambda number: number.value)

    return found


def parts(group: Quantity, first: int, last: int) -> Quantity:
    """Some layers of every curve."""
    return lambda evidence: Group(
        {name: part(lambda _, one=member: one, first, last)(evidence) for name, member in group(evidence)}
    )


def average(group: Quantity) -> Quantity:
    """The mean over the curves of a group, each over all its layers."""
    return lambda evidence: level(group, 0, 10**6)(evidence).mean()


def transfer_gaps(evidence) -> Value:
    """English minus the other language, for each model, in points."""
    accuracy = dict(cells(T1, ["model", "target"], "share")(evidence))
    english = {name.split(" ")[0]: number for name, number in accuracy.items() if name.endswith(" en")}
    return Group(
        {
            name: english[name.split(" ")[0]].minus(number).times(100, "points")
            for name, number in accuracy.items()
            if not name.endswith(" en") and name.split(" ")[0] in english
        }
    )


NORMFORMER = of(F1, "NormFormer")

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
    "cka-normformer-high": Claim(
        F1,
        "CKA of NormFormer peaks in layers 0-5 at: {lower}",
        {"lower": parts(NORMFORMER, 0, 5)},
        test=every("lower", rises),
        over=NORM_LANGUAGES,
    ),
    "cka-normformer-zero": Claim(
        F1,
        "CKA of NormFormer in layers 6-12: {upper}",
        {"upper": layers(NORMFORMER, 6, 12)},
        test=every("upper", lambda name: at_most(name, "near_zero")),
        over=NORM_LANGUAGES,
    ),
    "cka-normformer-v2": Claim(
        F7,
        "CKA of the second run in layers 6-12: {upper}; it is {away} away from the first",
        {
            "upper": layers(of(F7, "NormFormer, second run"), 6, 12),
            "away": gaps(NORMFORMER, of(F7, "NormFormer, second run")),
        },
        test=all_of(every("upper", lambda name: at_most(name, "near_zero")), at_most("away", "similarity")),
        over=NORM_LANGUAGES,
    ),
    "cka-tuned": Claim(
        F8,
        "CKA in layers 6-11: {middle}; in the last: {last}; ANC anywhere: {anc}",
        {
            "middle": layers(of(F8, "CKA"), 6, 11),
            "last": layers(of(F8, "CKA"), 12, 12),
            "anc": layers(of(F8, "ANC"), 0, 12),
        },
        test=all_of(
            every("middle", lambda name: at_most(name, "near_zero")),
            every("last", lambda name: at_least(name, "high")),
            every("anc", lambda name: at_least(name, "high")),
        ),
        over=NORM_LANGUAGES,
    ),
    "ccas": Claim(
        F9,
        "PWCCA and SVCCA in layers 6-12: {values}",
        {"values": layers(curves(F9, panel=["PWCCA", "SVCCA"]), 6, 12)},
        number=every("values", lambda name: between(name, 0.5, 0.8, "similarity")),
        over=NORM_LANGUAGES,
    ),
    "transfer-gap": Claim(
        T1,
        "English is ahead by {gaps} points",
        {"gaps": transfer_gaps},
        test=every("gaps", positive),
        number=every("gaps", lambda name: between(name, 7, 9, "points")),
        over=f"{PAPER}.xnli_languages",
    ),
    "matching-n": made_with(F2, "{ours} sentences", PAPER, "sentences"),
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
        test=every("curves", rises_then_falls),
        over=f"{PAPER}.scaling_languages",
    ),
    "mbert-vs-xlmr": Claim(
        F3,
        "mean ANC is {mbert} in mBERT and {xlmr} in XLM-R base",
        {"mbert": average(of(F3, "mBERT")), "xlmr": average(of(F3, "XLM-R base"))},
        test=greater("xlmr", "mbert"),
        over=f"{PAPER}.known_languages",
    ),
    "xnli-langs": made_with(T1, "languages {ours}", PAPER, "xnli_languages"),
}
