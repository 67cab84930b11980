"""The claims of `anc`."""

from collections import defaultdict
from functools import partial

from crossalign.results.claims.claim import background, claim, made_with, stated
from crossalign.results.claims.curves import at, curves, gaps, layers, level, part
from crossalign.results.claims.evidence import Evidence
from crossalign.results.claims.groups import every, most
from crossalign.results.claims.predicates import all_of, at_least, at_most, between, greater, near, negative, positive
from crossalign.results.claims.quantities import Quantity, cells, derived, different, largest, quantity
from crossalign.results.claims.shapes import rises, rises_then_falls
from crossalign.results.claims.values import Group, Number

PAPER = "anc"
T1 = f"{PAPER}/table1"
F1, F2, F3, F4, F5, F6, F7, F8, F9 = (f"{PAPER}/figure{place}" for place in range(1, 10))
PRETRAINED = "how the authors pretrained their models, which are fetched or made at another size here"
NORMFORMER, MATCHING = (curves(item, panel="NormFormer") for item in (F1, F2))
SECOND_RUN = curves(F7, panel="NormFormer, second run")
ANC = curves(F4, panel="NormFormer")
OTHERS = ["Post-LN", "Pre-LN"]
MBERT, XLMR = (curves(F3, panel=panel) for panel in ("mBERT", "XLM-R base"))
# What the authors computed; the formula of PWCCA that their paper cites gives other values.
CCAS = ["PWCCA (authors' library)", "SVCCA"]
PWCCA, SVCCA = (curves(F9, panel=panel) for panel in CCAS)

on_norms = partial(claim, over=f"{PAPER}.norm_languages")
shape_of_norms = partial(on_norms, shape=True)
on_known_models = partial(claim, over=f"{PAPER}.known_languages")
shape_of_large_models = partial(claim, over=f"{PAPER}.scaling_languages", shape=True)


# The pattern as this paper has it: languages converge and "diverge slightly only at deep layers".
first_aligns = partial(rises_then_falls, before_end=1)
near_zero = partial(at_most, bound="near_zero")
high = partial(at_least, bound="high")
# The single values from layer 6 on, where CKA of NormFormer is said to fail.
deep = partial(layers, first=6, last=12)


def ahead_of_cka(group: Quantity) -> Quantity:
    """How far curves lie above CKA of NormFormer in the same layers, on average."""
    return level(group, 6, 12) - level(NORMFORMER, 6, 12)


@quantity
def accuracies(evidence: Evidence) -> Group:
    """Accuracy on XNLI in points, by model and language."""
    scores = cells(T1, ["model", "target"], "share")(evidence)
    return Group({name: number.times(100, "points") for name, number in scores})


@derived
def english_ahead(scores: Group) -> Group:
    """English minus each other language, by model."""
    english = {name.removesuffix(" en"): number for name, number in scores if name.endswith(" en")}
    others = {name: number for name, number in scores if not name.endswith(" en") and name.split(" ")[0] in english}
    return Group({name: english[name.split(" ")[0]].minus(number) for name, number in others.items()})


@quantity
def over_post(evidence: Evidence, scores: Group) -> Group:
    """The mean over the languages beside English of each model, minus that of Post-LN."""
    by_model: dict[str, dict[str, Number]] = defaultdict(dict)
    for name, number in scores:
        model, lang = name.split(" ")
        if lang != "en":
            by_model[model][lang] = number
    if "scale_post" not in by_model:
        raise evidence.lacks(T1, "scale_post")
    means = {model: Group(numbers).mean() for model, numbers in by_model.items()}
    reference = means.pop("scale_post")
    return Group({model: number.minus(reference) for model, number in means.items()})


SCORES = accuracies()
mean_of_all = derived(lambda group: level(group).mean())
on_transfer = partial(claim, T1, over=f"{PAPER}.xnli_languages", learnt={"nli": SCORES})

CLAIMS = {
    "anc-peak": on_known_models(
        F3,
        "the highest curve reaches {mbert} in mBERT and {xlmr} in XLM-R base",
        number=all_of(near("mbert", "similarity"), near("xlmr", "similarity")),
        mbert=largest(MBERT),
        xlmr=largest(XLMR),
    ),
    "match-fr": claim(
        F2,
        "French sentences are matched with accuracies of {layers}",
        number=every("layers", at_least, 0.5),
        layers=deep(curves(F2, panel="NormFormer", series="English-French")),
    ),
    "match-deep": on_norms(
        F2,
        "accuracy of matching in layers 6-12: {upper}; above CKA on average by {ahead}; from layer 6 to 12 it "
        "changes by {declines:+}",
        all_of(every("upper", at_least, "near_zero"), every("ahead", positive), every("declines", negative)),
        upper=deep(MATCHING),
        ahead=ahead_of_cka(MATCHING),
        declines=at(MATCHING, 12) - at(MATCHING, 6),
    ),
    "cka-others": shape_of_norms(
        F1,
        "CKA of Post-LN and Pre-LN over all layers: {values}",
        most("values", high),
        values=layers(curves(F1, panel=OTHERS), 0, 12),
    ),
    "cka-normformer-high": shape_of_norms(
        F1, "CKA of NormFormer peaks in layers 0-5 at: {lower}", every("lower", rises), lower=part(NORMFORMER, 0, 5)
    ),
    "cka-normformer-drop": shape_of_norms(
        F1,
        "CKA of NormFormer changes from layer 5 to 6 by {drops:+}",
        every("drops", at_most, "high", -1),
        drops=at(NORMFORMER, 6) - at(NORMFORMER, 5),
    ),
    "cka-normformer-zero": shape_of_norms(
        F1, "CKA of NormFormer in layers 6-12: {upper}", every("upper", near_zero), upper=deep(NORMFORMER)
    ),
    "cka-normformer-v2": shape_of_norms(
        F7,
        "CKA of the second run in layers 6-12: {upper}; it is {away} away from the first",
        all_of(every("upper", near_zero), at_most("away", "similarity")),
        upper=deep(SECOND_RUN),
        away=gaps(NORMFORMER, SECOND_RUN),
    ),
    "cka-tuned": shape_of_norms(
        F8,
        "CKA in layers 6-11: {middle}; in the last: {last}; ANC anywhere: {anc}",
        all_of(every("middle", near_zero), every("last", high), every("anc", high)),
        middle=deep(curves(F8, panel="CKA"), last=11),
        last=layers(curves(F8, panel="CKA"), 12, 12),
        anc=layers(curves(F8, panel="ANC"), 0, 12),
    ),
    "ccas": on_norms(
        F9,
        "in layers 6-12, PWCCA as the authors' library has it: {pwcca}; SVCCA: {svcca}",
        number=all_of(*(every(name, between, 0.5, 0.8, "similarity") for name in ("pwcca", "svcca"))),
        pwcca=deep(PWCCA),
        svcca=deep(SVCCA),
    ),
    "cca-passes": on_norms(
        F9,
        "above CKA in layers 6-12 on average: PWCCA by {pwcca}, SVCCA by {svcca}; their values there: {values}",
        all_of(every("values", high), every("pwcca", positive), every("svcca", positive)),
        values=deep(curves(F9, panel=CCAS)),
        pwcca=ahead_of_cka(PWCCA),
        svcca=ahead_of_cka(SVCCA),
    ),
    "transfer-gap": on_transfer(
        "English is ahead by {gaps} points",
        every("gaps", positive),
        number=every("gaps", between, 7, 9, "points"),
        gaps=english_ahead(SCORES),
    ),
    "norm-transfer": on_transfer(
        "mean over the other languages, against Post-LN: {leads:+} points",
        all_of(every("leads", at_least, "alike", -1), every("leads", at_most, "alike")),
        leads=over_post(SCORES),
    ),
    "matching-n": made_with(F2, "{ours} sentences", PAPER, "sentences", same_as=f"{PAPER}/parallel-n"),
    "parallel-n": made_with(F1, "{ours} sentences", PAPER, "sentences"),
    **{f"pretrain-{name}": background(PRETRAINED) for name in ("sentences", "steps", "batch")},
    "pretrain-gpus": background("the authors' hardware"),
    "pretrain-models": stated(F1, "{ours} schemes", different(F1, "panel")),
    "scale-factor": background(
        "doubtful in print: 10.7 billion are 97 times the 110 million of the text and 60 times the 178 million "
        "that mBERT has"
    ),
    "mbert-params": background("doubtful in print: the model has 178 million parameters, as `adjust` says"),
    "scaling-pattern": shape_of_large_models(
        F5, "ANC is largest at: {curves}", every("curves", first_aligns), curves=curves([F5, F6])
    ),
    "clm-pattern": shape_of_large_models(
        F6, "ANC of causal models is largest at: {curves}", every("curves", first_aligns), curves=curves(F6)
    ),
    "mbert-vs-xlmr": on_known_models(
        F3,
        "mean ANC is {mbert} in mBERT and {xlmr} in XLM-R base",
        greater("xlmr", "mbert"),
        shape=True,
        mbert=mean_of_all(MBERT),
        xlmr=mean_of_all(XLMR),
    ),
    "anc-known": on_known_models(
        F3,
        "ANC is largest at: {curves}",
        every("curves", first_aligns),
        shape=True,
        curves=curves(F3, panel=["mBERT", "XLM-R base"]),
    ),
    "anc-normformer": shape_of_norms(
        F4, "ANC of NormFormer is largest at: {curves}", every("curves", first_aligns), curves=ANC
    ),
    "anc-deep": shape_of_norms(F4, "ANC of NormFormer in layers 6-12: {upper}", every("upper", high), upper=deep(ANC)),
    "anc-others": shape_of_norms(
        F4,
        "ANC of Post-LN and Pre-LN is largest at: {curves}",
        every("curves", first_aligns),
        curves=curves(F4, panel=OTHERS),
    ),
    "xnli-langs": made_with(T1, "languages {ours}", PAPER, "xnli_languages"),
    "norm-langs": made_with(F1, "English with {ours}", PAPER, "norm_languages"),
    "scaling-langs": made_with(F5, "English with {ours}", PAPER, "scaling_languages"),
}
