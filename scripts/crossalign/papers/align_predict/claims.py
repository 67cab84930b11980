"""The claims of `align-predict` on RANDOM-INIT: what re-initialised layers do to scores.

Similarity and correlation are in `align_predict_similarity.py`, settings and sizes in `align_predict_setup.py`.
"""

from collections.abc import Callable, Sequence

from crossalign.papers.align_predict.claims_setup import SETUP
from crossalign.papers.align_predict.claims_shared import PAPER, SOURCES, STUDIED, T1, T2, T5, TASKS, WORDS, learnt
from crossalign.papers.align_predict.claims_similarity import SIMILARITY
from crossalign.results.claims.claim import Claim
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import every, most
from crossalign.results.claims.predicates import Predicate, all_of, at_least, at_most, greater, near, positive
from crossalign.results.claims.quantities import Quantity, average, cell, cells, difference, together
from crossalign.results.claims.values import Group

Losses = dict[str, Quantity]

SHORT = {"parsing": "parse", "pos": "pos", "ner": "ner"}
# Of table 5, without those of table 1.
LOWER_SETS, UPPER_SETS = ("1", "2", "1-3", "1-4"), ("10-12", "9-12")


def small(name: str) -> Predicate:
    """A loss that the paper calls moderate."""
    return at_least(name, "moderate", -1)


def harmless(name: str) -> Predicate:
    """No loss that the paper would call one."""
    return at_least(name, "harmless", -1)


def sharp(name: str) -> Predicate:
    """A loss that the paper would call sharp or large, and not only noise beside a small one."""
    return at_most(name, "harmless", -1)


def deltas(item: str, task: str, source: str, layers: str) -> dict[str, Quantity]:
    """What re-initialising some layers does in the source language and in the others on average."""
    return {
        name: cell(item, task=task, source=source, target=target, layers=layers)
        for name, target in (("elsewhere", "X"), ("home", source))
    }


def lower_claim(task: str, source: str, amount: str = "", item: str = T1, same_as: str = "") -> Claim:
    """Layers 1-2: sharp drops across languages, moderate ones within the source language."""
    return Claim(
        item,
        f"re-initialising layers 1-2 costs {WORDS[task]} from {SOURCES[source]} {{elsewhere:cost}} points elsewhere "
        f"and {{home:cost}} in {SOURCES[source]}",
        deltas(item, task, source, "1-2"),
        test=all_of(sharp("elsewhere"), small("home"), greater("home", "elsewhere")),
        number=near(amount, "points") if amount else None,
        over=STUDIED,
        learnt=(learnt(task, source, item),),
        same_as=same_as,
    )


def upper_claim(task: str, source: str, amount: str = "", item: str = T1, same_as: str = "") -> Claim:
    """Layers 11-12: no harm, neither within the source language nor across languages."""
    return Claim(
        item,
        f"re-initialising layers 11-12 changes {WORDS[task]} from {SOURCES[source]} by {{elsewhere:+}} points "
        f"elsewhere and {{home:+}} in {SOURCES[source]}",
        deltas(item, task, source, "11-12"),
        test=all_of(harmless("home"), harmless("elsewhere")),
        number=near(amount, "points") if amount else None,
        over=STUDIED,
        learnt=(learnt(task, source, item),),
        same_as=same_as,
    )


def set_losses(task: str, layers: str) -> Losses:
    """What re-initialising a set of table 5 changes in English, and in its other languages on average."""
    keys = {"task": task, "split": "test"}

    def change(target: str) -> Quantity:
        scores = (cell(T5, target=target, layers=name, **keys) for name in (layers, "ref"))
        return difference(*scores)

    def elsewhere(evidence: Evidence) -> Group:
        targets = dict.fromkeys(row["target"] for row in evidence.select(T5, keys | {"layers": layers}))
        return together({target: change(target) for target in targets if target != "en"})(evidence)

    return {"English": change("en"), "elsewhere": average(elsewhere)}


def over_sets(sets: Sequence[str], members: Callable[[Losses], Losses]) -> Quantity:
    """Quantities of every task and those sets of layers that this run has; `members` makes them, by name."""

    def found(evidence: Evidence) -> Group:
        chosen = [layers for layers in sets if layers in evidence.config[PAPER]["layer_sets"]]
        if not chosen:
            raise Outside(f"none of the layer sets {', '.join(sets)} is part of this run")
        quantities = {
            " ".join(filter(None, (WORDS[task], layers, name))): quantity
            for task in TASKS
            for layers in chosen
            for name, quantity in members(set_losses(task, layers)).items()
        }
        return together(quantities)(evidence)

    return found


def english_lead(losses: Losses) -> Losses:
    """By how much less English loses."""
    return {"": difference(losses["English"], losses["elsewhere"])}


def sets_learnt(task: str) -> tuple[str, Quantity]:
    """The scores of table 5 without re-initialisation, in English and elsewhere on average."""
    scores = cells(T5, ("target",), task=task, split="test", layers="ref")

    def elsewhere(evidence: Evidence) -> Group:
        return Group({name: number for name, number in scores(evidence) if name != "en"})

    return task, together({"en": cell(T5, task=task, target="en", split="test", layers="ref"), "X": average(elsewhere)})


def domain(name: str, target: str, layers: str = "1-2") -> Quantity:
    """What re-initialising layers does to parsing of a domain."""
    return cell(T2, task="parsing", target=target, domain=name, layers=layers)


def domains(task: str, target: str, without: Sequence[str]) -> Quantity:
    """What re-initialising layers 1-2 does to the domains of a language, but for some that another claim is about."""

    def found(evidence: Evidence) -> Group:
        members = cells(T2, ("domain",), task=task, target=target, layers="1-2")(evidence)
        chosen = {name: number for name, number in members if name not in without}
        if target == "en" and all(name.startswith("in-domain") for name in chosen):
            raise Outside(f"{T2} of this run has no other English domain for {WORDS[task]} than the one trained on")
        return Group(chosen)

    return found


def domain_claim(task: str, english: Sequence[str] = (), french: Sequence[str] = ()) -> Claim:
    """All domains of English lose little and French loses much, but for the domains named."""
    home, away = domains(task, "en", english), domains(task, "fr", french)
    return Claim(
        T2,
        f"points that re-initialising layers 1-2 costs {WORDS[task]}: in English {{english:cost}}; in French "
        "{french:cost}",
        {"english": home, "french": away, "home": average(home), "away": average(away)},
        test=all_of(every("english", small), every("french", sharp), greater("home", "away")),
        learnt=((task, cells(T2, ("target", "domain"), task=task, layers="ref")),),
    )


TRANSLATION = "translation of in-domain test"
DOMAINS = {"french": domain(TRANSLATION, "fr"), "literature": domain("literature", "en")}
SCORES = {"fr": domain(TRANSLATION, "fr", "ref"), "literature": domain("literature", "en", "ref")}


def literature_claim(amount: str, same_as: str = "") -> Claim:
    """The example of the text: English literature against the French translation, parsing."""
    return Claim(
        T2,
        "re-initialising layers 1-2 costs {literature:cost} points in English literature and {french:cost} in French",
        DOMAINS,
        test=all_of(small("literature"), sharp("french"), greater("literature", "french")),
        number=near(amount, "points"),
        learnt=(("parsing", together(SCORES)),),
        same_as=same_as,
    )


# English parsing is the example of the text, which prints both of its numbers: two claims, one fact.
OTHERS = [(task, source) for task in TASKS for source in SOURCES if (task, source) != ("parsing", "en")]

CLAIMS: dict[str, Claim] = {
    **SIMILARITY,
    "drop-en-en-parse": lower_claim("parsing", "en", "home"),
    "drop-en-x-parse": lower_claim("parsing", "en", "elsewhere", same_as=f"{PAPER}/drop-en-en-parse"),
    **{f"drop-{source}-{SHORT[task]}": lower_claim(task, source) for task, source in OTHERS},
    "upper-en-en-parse": upper_claim("parsing", "en", "home"),
    "upper-en-x-parse": upper_claim("parsing", "en", "elsewhere", same_as=f"{PAPER}/upper-en-en-parse"),
    **{f"upper-{source}-{SHORT[task]}": upper_claim(task, source) for task, source in OTHERS},
    # Single layers cost too little to be called sharp, blocks too much to be called moderate: the trend is the order.
    "sets-lower": Claim(
        T5,
        "English loses less than the others by {leads} points",
        {"leads": over_sets(LOWER_SETS, english_lead)},
        test=most("leads", positive),
        learnt=tuple(sets_learnt(task) for task in TASKS),
    ),
    "sets-upper": Claim(
        T5,
        "re-initialising sets of upper layers changes scores by {changes:+} points",
        {"changes": over_sets(UPPER_SETS, dict)},
        test=most("changes", harmless),
        learnt=tuple(sets_learnt(task) for task in TASKS),
    ),
    "domain-lit": literature_claim("literature"),
    "domain-fr": literature_claim("french", same_as=f"{PAPER}/domain-lit"),
    "domain-parse": domain_claim("parsing", ["literature"], [TRANSLATION]),
    "domain-pos": domain_claim("pos"),
    "domain-ner": domain_claim("ner"),
    **SETUP,
}
