"""The claims of `talk`; those on unseen languages are in `talk_unseen.py`."""

from crossalign.catalog.sets import DataSet, text_set
from crossalign.papers.align_predict.claims import lower_claim, small, upper_claim
from crossalign.papers.align_predict.claims_shared import PAPER as ALIGN
from crossalign.papers.align_predict.claims_shared import SOURCES, STUDIED, T6, TASKS
from crossalign.papers.align_predict.claims_similarity import LOWER, correlation_claim, strong_claim
from crossalign.papers.talk.claims_unseen import PAPER, UNSEEN
from crossalign.results.claims.claim import Claim, background, stated
from crossalign.results.claims.curves import curve, curves, kept
from crossalign.results.claims.evidence import Evidence
from crossalign.results.claims.groups import every
from crossalign.results.claims.predicates import all_of, at_least, equals, near, peaks_within, rises_then_falls
from crossalign.results.claims.quantities import cell, cells, different
from crossalign.results.claims.values import Group, Number
from crossalign.results.names import language

T1, T2, T3, T5 = (f"{PAPER}/table{place}" for place in (1, 2, 3, 5))
F1 = f"{PAPER}/figure1"
WORLD = "a fact about the world that no experiment of the talk depends on"
GERMAN = curve(F1, "English-German", "pretrained")
# The claims of the paper that the slides repeat.
DROPS = {"en": "drop-en-en-parse", "ru": "drop-ru-parse", "ar": "drop-ar-parse"}
UPPER = {"en": "upper-en-en-parse", "ru": "upper-ru-parse", "ar": "upper-ar-parse"}


def raw_megabytes(evidence: Evidence) -> Number:
    """The prepared raw text of Narabizi."""
    found = [evidence.results.size(text_set(evidence.config, "qaf", split)) for split in ("train", "dev")]
    if found[0] is None:
        raise evidence.missing_set(T3, text_set(evidence.config, "qaf"))
    return Number(sum(size or 0 for size in found) / 1e6, "points", 0.0)


def zero_shot(target: str, doubt: str) -> Claim:
    """A score of the zero-shot slide."""
    return Claim(
        T1,
        f"LAS from English to {language(target)}: {{score}}",
        {"score": cell(T1, target=target)},
        number=near("score", "points"),
        doubt=doubt,
    )


def all_targets(evidence: Evidence) -> Group:
    """LAS from English on every other language; those beside the study are left out."""
    without = ("en", "X", *evidence.config[ALIGN]["extra_targets"])
    found = cells(T6, ("target",), source="en", layers="ref")(evidence)
    return Group({language(name): number for name, number in found if name not in without})


def within_sources(evidence: Evidence) -> Group:
    """What each pair of layers does to parsing in the language that the model was fine-tuned on."""
    members = {}
    for source in [source for source in SOURCES if source in evidence.config[ALIGN]["sources"]]:
        found = cells(T2, ("target", "layers"), source=source, target=source, kind="delta")(evidence)
        members |= dict(found)
    return Group(members)


CLAIMS: dict[str, Claim] = {
    "languages-world": background(WORLD),
    "languages-served": background(WORLD),
    "lm-coverage": background(WORLD),
    "narabizi-raw": Claim(
        T3,
        "{size} MB of prepared text",
        {"size": raw_megabytes},
        number=near("size", "roughly", relative=True),
        data=(DataSet("text", "narabizi_qaf", "train"),),
    ),
    "unseen-total": background("doubtful in print: the table of the same slides lists 15 languages"),
    "unseen-listed": stated(T3, "{ours} languages", different(T3, "language"), equals("ours")),
    **UNSEEN,
    "zero-shot-en-en": zero_shot("en", "88.98 on the RANDOM-INIT slides and in the paper"),
    "zero-shot-en-de": zero_shot("de", "70.34 in the paper, which rounds to 70.3"),
    # Whether the task is learnt is the claim itself, so that it has no floor but this.
    "zero-shot-all": Claim(
        T6,
        "LAS from English: {scores}",
        {"scores": all_targets},
        test=every("scores", lambda name: at_least(name, "floor_parsing")),
        over=STUDIED,
    ),
    "same-language-small": Claim(
        T2,
        "re-initialising a pair of layers changes LAS in the source language by {changes:+} points",
        {"changes": within_sources},
        test=every("changes", small),
        learnt=(("parsing", cells(T2, ("target",), target=list(SOURCES), layers="ref")),),
    ),
    **{
        f"lower-{source}": lower_claim("parsing", source, item=T2, same_as=f"{ALIGN}/{name}")
        for source, name in DROPS.items()
    },
    **{
        f"upper-{source}": upper_claim("parsing", source, item=T2, same_as=f"{ALIGN}/{name}")
        for source, name in UPPER.items()
    },
    # "In the lower part of the model": up to the middle, but above the first two layers, which are near the embeddings.
    "cka-en-de": Claim(
        F1,
        "CKA of English and German in the pretrained model is largest at {curve}; of its level in layers 3-6 the "
        "fine-tuned models keep {kept}",
        {"curve": GERMAN, "kept": kept(GERMAN, curves(F1, series=list(TASKS.values())), *LOWER)},
        test=all_of(
            rises_then_falls("curve"),
            peaks_within("curve", *LOWER),
            every("kept", lambda name: at_least(name, "survives")),
        ),
        shape=True,
    ),
    "spearman-pos": correlation_claim(T5, "pos", same_as=f"{ALIGN}/spearman-ft-pos"),
    "spearman-strong": strong_claim(T5, ("fine-tuned",), same_as=f"{ALIGN}/spearman-strong"),
    "scaling": background("numbers of other papers on models that are not part of this workflow"),
}
