"""The claims of `align-predict` on cross-lingual similarity and on how it goes with transfer."""

from collections.abc import Callable

from crossalign.papers.align_predict.claims_shared import F1, F3, F4, F5, RANDOM, SHOWN, STUDIED, T4, TASKS, learnt
from crossalign.results.claims.claim import Claim
from crossalign.results.claims.curves import at, changes, curve, curves, drops, kept, part, spans
from crossalign.results.claims.evidence import Evidence
from crossalign.results.claims.groups import every, most
from crossalign.results.claims.predicates import (
    Predicate,
    all_of,
    at_least,
    correlates,
    greater,
    keeps_rising,
    near,
    negative,
    peaks_at,
    rises_then_falls,
)
from crossalign.results.claims.quantities import Quantity, cell, chosen, difference, together
from crossalign.results.claims.values import Group, Number

CORRELATION = "correlation of gap and similarity"
MODELS = ("fine-tuned", "pretrained")
# The part where representations are aligned; the first two layers are still close to the embeddings.
LOWER, BELOW, UPPER = (3, 6), (1, 6), (7, 12)


def trend(name: str) -> Predicate:
    """Similarity "constantly increases up to layer 5"; "from these layers forward" it decreases."""
    return all_of(peaks_at(name, 5), keeps_rising(name, 5), rises_then_falls(name))


def peak_claim(task: str) -> Claim:
    """Similarity of English and Russian in a fine-tuned model."""
    line = curve(F1, "English-Russian", TASKS[task])
    return Claim(
        F1,
        "CKA of English and Russian is largest at {curve}, and {fifth} % at layer 5",
        {"curve": line, "fifth": at(line, 5, 100, "percent")},
        test=trend("curve"),
        number=near("fifth", "percent"),
        shape=True,
    )


def by_language(items: list[str], member: Callable[[Evidence, str, str, Quantity], dict[str, Number]]) -> Quantity:
    """What `member` makes of the pretrained curve of each panel, the item and the panel."""

    def found(evidence: Evidence) -> Group:
        members = {}
        for item in items:
            for panel in dict.fromkeys(row["panel"] for row in evidence.select(item, {"series": "pretrained"})):
                members |= member(evidence, item, panel, curve(item, panel, "pretrained"))
        return Group(members)

    return found


def kept_of(evidence: Evidence, item: str, panel: str, base: Quantity) -> dict[str, Number]:
    """What each fine-tuned model keeps of the pretrained one's similarity in the lower layers."""
    tuned = curves(item, panel=panel, series=list(TASKS.values()))
    return {f"{panel}, {name}": share for name, share in kept(base, tuned, *LOWER)(evidence)}


def impact_of(evidence: Evidence, item: str, panel: str, base: Quantity) -> dict[str, Number]:
    """By how much more fine-tuning for NER changes the upper layers than the lower ones."""
    tuned = curve(item, panel, TASKS["ner"])
    upper, lower = (changes(base, tuned, *layers) for layers in (UPPER, BELOW))
    return {panel: difference(upper, lower)(evidence)}


def correlation_claim(item: str, task: str, model: str = "fine-tuned", doubt: str = "", same_as: str = "") -> Claim:
    """Similarity goes with transfer."""
    keys = {"task": task, "model": model}
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
        learnt=(learnt(task),),
        same_as=same_as,
    )


def strong_claim(item: str, models: tuple[str, ...] = MODELS, same_as: str = "") -> Claim:
    """The correlation is called strong for every task."""
    rhos = {
        f"{name}, {model}": cell(item, "correlation", metric="spearman", task=task, model=model)
        for task, name in TASKS.items()
        for model in models
    }
    return Claim(
        item,
        "Spearman's rho of similarity and transfer: {rhos}",
        {"rhos": together(rhos)},
        test=every("rhos", lambda name: at_least(name, "strong")),
        over=STUDIED,
        learnt=tuple(learnt(task) for task in TASKS),
        same_as=same_as,
    )


def by_layer(model: str) -> Quantity:
    """The correlation by layer of all tasks, by one kind of model."""
    return curves(F3, "correlation", series=[f"{name}, {model}" for name in TASKS.values()])


SPANS = spans(by_layer("fine-tuned"), 1, 12)

SIMILARITY: dict[str, Claim] = {
    **{f"cka-peak-{task}": peak_claim(task) for task in TASKS},
    # Russian is figure 1, of which the three claims above are.
    "cka-peak-layer": Claim(
        F5,
        "similarity in the fine-tuned models is largest at {curves}, over {curves:count} curves",
        {"curves": curves([F5], series=list(TASKS.values()))},
        test=most("curves", trend),
        over=SHOWN,
        shape=True,
    ),
    "cka-peak-pretrained": Claim(
        F5,
        "similarity in the pretrained model is largest at {curves}",
        {"curves": curves([F1, F5], series="pretrained")},
        test=most("curves", trend),
        over=SHOWN,
        shape=True,
    ),
    "cka-preserved": Claim(
        F5,
        "of the pretrained model's CKA in layers 3-6 the fine-tuned models keep {kept}",
        {"kept": by_language([F1, F5], kept_of)},
        test=most("kept", lambda name: at_least(name, "survives")),
        over=SHOWN,
        shape=True,
    ),
    "cka-ner-languages": Claim(
        F4,
        "similarity in the NER model is largest at {curves}, over {curves:count} languages",
        {"curves": curves(F4)},
        test=most("curves", trend),
        over=STUDIED,
        shape=True,
    ),
    "cka-ner-upper": Claim(
        F5,
        "fine-tuning for NER changes CKA in layers 7-12 more than in layers 1-6 by {impact:+}",
        {"impact": by_language([F1, F5], impact_of)},
        test=most("impact", lambda name: at_least(name, "step")),
        over=SHOWN,
        shape=True,
    ),
    # "There is no alignment" is explained as a decrease; in the re-initialised layers themselves that would be no news.
    "cka-lower-reinit": Claim(
        RANDOM[0],
        "re-initialising layers 1-2 changes the mean CKA of layers 3-12 by {drops:mean+} over {drops:count} language "
        "pairs and tasks",
        {"drops": drops(RANDOM, "layers 1-2", above=2)},
        test=most("drops", negative),
        over=SHOWN,
        shape=True,
    ),
    "spearman-ft-parsing": correlation_claim(T4, "parsing"),
    "spearman-ft-pos": correlation_claim(T4, "pos", doubt="0.75 in the text, 0.74 in table 4 and in the talk"),
    "spearman-ft-ner": correlation_claim(T4, "ner"),
    **{f"spearman-pre-{task}": correlation_claim(T4, task, "pretrained") for task in TASKS},
    "spearman-strong": strong_claim(T4),
    "spearman-layer": Claim(
        F3,
        "in the pretrained model the correlation is largest at: {curves}",
        {"curves": by_layer("pretrained")},
        test=every("curves", lambda name: peaks_at(name, 6)),
        over=STUDIED,
        learnt=tuple(learnt(task) for task in TASKS),
    ),
    "spearman-ner-upper": Claim(
        F3,
        "in layers 7-12 the correlation of the NER model goes over {curve:range} with its peak at {curve}",
        {"curve": part(curve(F3, CORRELATION, "NER, fine-tuned", "correlation"), *UPPER)},
        test=rises_then_falls("curve", "sharp", first=UPPER[0] + 1, before_end=1),
        over=STUDIED,
        learnt=(learnt("ner"),),
    ),
    "spearman-ft-varies": Claim(
        F3,
        "over layers 1-12 the correlation of the fine-tuned models spans {spans}",
        {"spans": SPANS} | {task: chosen(SPANS, f"{name}, fine-tuned") for task, name in TASKS.items()},
        test=all_of(
            every("spans", lambda name: at_least(name, "sharp")), greater("ner", "parsing"), greater("ner", "pos")
        ),
        over=STUDIED,
        learnt=tuple(learnt(task) for task in TASKS),
    ),
}
