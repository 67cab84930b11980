"""The claims of `adjust` on its histograms: distances of related and unrelated words."""

from crossalign.papers.adjust.claims_quantities import T2, T4, TEST_SET, ner_before, ner_gains, nli_before, qa_before
from crossalign.results.claims.claim import Claim
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import every, some
from crossalign.results.claims.histograms import (
    RELATED,
    UNRELATED,
    distance_changes,
    effect_faded,
    overlaps,
    separation_changes,
    separation_kept,
    separations,
    top_dimensions,
)
from crossalign.results.claims.predicates import all_of, at_least, at_most, near, negative, positive
from crossalign.results.claims.quantities import gains, leads_of, merged
from crossalign.results.claims.values import Group
from crossalign.results.names import TASKS

STUDIED = "adjust.languages"
F2 = "adjust/figure2"
NLI = ("nli",)
# Models tuned on a task, with and without adjustment, and what they were before.
TUNED = {"original": ("original, {task}", "original"), "adjusted": ("adjusted, {task}", "adjusted")}
REGIMES = {
    "adjusted": ("original", "adjusted, {task}", "original, {task}"),
    "adjusted+continual": ("adjusted", "continual, {task}", "adjusted, {task}"),
}


def grows(name: str):
    return at_least(name, "separation")


def shrinks(name: str):
    return at_most(name, "separation", -1)


def where_separation_grew(evidence: Evidence) -> Group:
    """Changes of scores in the languages, tasks and regimes whose models separate better than those before."""
    members = {}
    for model, (over, after, before) in REGIMES.items():
        separated = dict(separation_changes(F2, after, before)(evidence))
        scores = {
            "nli": gains(T2, model, over, setting="original"),
            "ner": ner_gains(model, over),
            "qa": gains(T4, model, over, TEST_SET, setting="monolingual"),
        }
        for task in evidence.config["adjust"]["tasks"]:
            for name, gain in scores[task](evidence):
                change = separated.get(f"{name.split(' ')[0]} {TASKS[task]}")
                if change is not None and change.value > change.noise:
                    members[f"{name} {TASKS[task]}, {model}"] = gain
    if not members:
        raise Outside("no model of this run separates related words better than the one before it")
    return Group(members)


FIGURES: dict[str, Claim] = {
    "dims-10": Claim(
        F2,
        "the 10 most influential dimensions carry {shares} % of the squared distance",
        {"shares": top_dimensions(F2, "top10")},
        number=every("shares", lambda name: near(name, "roughly", relative=True)),
    ),
    "dims-100": Claim(
        F2,
        "the 100 most influential dimensions carry {shares} % of the squared distance",
        {"shares": top_dimensions(F2, "top100")},
        number=every("shares", lambda name: near(name, "percent")),
    ),
    "hist-adjust": Claim(
        F2,
        "adjustment changes the mean distance of related words by a share of {related:+}, of unrelated ones by "
        "{unrelated:+}",
        {
            "related": distance_changes(F2, "adjusted", "original", RELATED),
            "unrelated": distance_changes(F2, "adjusted", "original", UNRELATED),
        },
        test=all_of(every("related", negative), every("unrelated", lambda name: at_least(name, "apart", -1))),
        over=STUDIED,
    ),
    "hist-ft": Claim(
        F2,
        "after fine-tuning on NLI the histograms overlap by {common}; the area under the ROC curve changed by "
        "{changes:+}",
        {
            "common": merged(**{name: overlaps(F2, after, NLI) for name, (after, _) in TUNED.items()}),
            "changes": merged(**{name: separation_changes(F2, *pair, NLI) for name, pair in TUNED.items()}),
        },
        test=all_of(every("common", lambda name: at_least(name, "overlap")), every("changes", shrinks)),
        over=STUDIED,
    ),
    "ft-closer": Claim(
        F2,
        "fine-tuning on NLI changes the mean distance of words by a share of {changes:+}",
        {
            "changes": merged(
                **{
                    f"{name}, {kind}": distance_changes(F2, *pair, kind, NLI)
                    for name, pair in TUNED.items()
                    for kind in (RELATED, UNRELATED)
                }
            )
        },
        test=every("changes", lambda name: at_most(name, "apart", -1)),
        over=STUDIED,
    ),
    "ft-forgets": Claim(
        F2,
        "fine-tuning changes the area under the ROC curve of adjusted models by {changes:+}",
        {"changes": separation_changes(F2, *TUNED["adjusted"])},
        test=every("changes", shrinks),
        over=STUDIED,
    ),
    "hist-adjusted-ft": Claim(
        F2,
        "after fine-tuning on NLI adjusted models have an area under the ROC curve that is larger by {changes:+} than "
        "that of original ones; before it the difference was larger by {faded:+}",
        {
            "changes": separation_changes(F2, "adjusted, {task}", "original, {task}", NLI),
            "faded": effect_faded(F2, NLI),
        },
        # A modest effect is a smaller one than adjustment has by itself.
        test=all_of(every("changes", grows), every("faded", positive)),
        over=STUDIED,
    ),
    "hist-cl": Claim(
        F2,
        "continual learning changes the area under the ROC curve of related and unrelated words by {changes:+}",
        {"changes": separation_changes(F2, "continual, {task}", "adjusted, {task}")},
        test=every("changes", grows),
        over=STUDIED,
    ),
    "cl-keeps": Claim(
        F2,
        "after continual learning of NLI this share of the adjusted model's area above chance is left: {kept}",
        {"kept": separation_kept(F2, "continual, {task}", "adjusted", NLI)},
        test=every("kept", lambda name: at_least(name, "survives")),
        over=STUDIED,
    ),
    "hist-ner-es": Claim(
        F2,
        "areas under the ROC curve of adjusted NER models: {areas}; Spanish is ahead by {leads:+}",
        {
            "areas": separations(F2, "adjusted, {task}", ("ner",)),
            "leads": leads_of(separations(F2, "adjusted, {task}", ("ner",)), "es NER"),
        },
        test=every("leads", positive),
    ),
    "separation-no-help": Claim(
        F2,
        "where separation grew, scores changed by {gains:+} points",
        {"gains": where_separation_grew},
        test=some("gains", negative),
        over=STUDIED,
        learnt=(("nli", nli_before()), ("ner", ner_before), ("qa", qa_before())),
    ),
}
