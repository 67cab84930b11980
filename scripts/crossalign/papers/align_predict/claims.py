"""The claims of `align-predict`: what re-initialised layers do to scores, similarity and how it goes with transfer,
and how the experiments were made. The talk repeats some of them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from statistics import median

from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import having
from crossalign.papers.align_predict.correlation import correlated_sets
from crossalign.papers.align_predict.items import pud_languages
from crossalign.papers.align_predict.random_init import own_places, own_sets_behind, sets_behind
from crossalign.results.claims.claim import Claim, background, claim, each_sized, made_with, sized, stated
from crossalign.results.claims.curves import at, curve, curves, distance, drops, kept, part, spans
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import every, most
from crossalign.results.claims.predicates import (
    Predicate,
    all_of,
    at_least,
    at_most,
    correlates,
    equals,
    greater,
    near,
    negative,
    positive,
)
from crossalign.results.claims.quantities import (
    Quantity,
    average,
    cell,
    cells,
    chosen,
    derived,
    different,
    quantity,
    runs,
    setting,
    spread,
    together,
    without,
)
from crossalign.results.claims.shapes import keeps_rising, peaks_at, rises_then_falls
from crossalign.results.claims.values import Curve, Group, Number
from crossalign.results.names import language

PAPER = "align-predict"
T1, T2, T3, T4, T5, T6, T7, T8 = (f"{PAPER}/table{place}" for place in range(1, 9))
F1, F3, F4, F5 = (f"{PAPER}/figure{place}" for place in (1, 3, 4, 5))
RANDOM = [f"{PAPER}/figure{place}" for place in (6, 7, 8)]
# The languages whose curves are drawn.
SHOWN = f"{PAPER}.similarity_languages"
# As figures name them, within a sentence, and in the names of claims.
TASKS = {"parsing": "Parsing", "pos": "POS", "ner": "NER"}
WORDS = TASKS | {"parsing": "parsing"}
SHORT = {"parsing": "parse", "pos": "pos", "ner": "ner"}
SOURCES = {"en": "English", "ru": "Russian", "ar": "Arabic"}
# The part where representations are aligned; the first two layers are still close to the embeddings.
LOWER, BELOW, UPPER = (3, 6), (1, 6), (7, 12)
# Of table 5, without those of table 1.
LOWER_SETS, UPPER_SETS = ("1", "2", "1-3", "1-4"), ("10-12", "9-12")
SPREADS = {
    "min": ("smallest", min, "spread"),
    "median": ("median", median, "spread"),
    "max": ("largest", max, "spread_largest"),
}
TRANSLATION = "translation of in-domain test"


def tested(task: str) -> Callable[[dict], list[str]]:
    """The languages that a task is tested on, but for those beside the study."""
    return lambda config: [
        lang for lang in having(config, "languages", task) if lang not in config[PAPER]["extra_targets"]
    ]


def compared(*tasks: str) -> Callable[[dict], list[str]]:
    """The languages whose similarity is measured and that all of some tasks are tested on."""
    return lambda config: [
        lang for lang in pud_languages(config) if all(lang in having(config, "languages", task) for task in tasks)
    ]


def learnt(task: str, source: str = "en", item: str = T1) -> dict[str, Quantity]:
    """The scores of the unchanged models: in their own language, and elsewhere on average."""
    return {task: cells(item, ["target"], task=task, source=source, target=[source, "X"], layers="ref")}


ALL_LEARNT = {task: scores for each in TASKS for task, scores in learnt(each).items()}
shape = partial(claim, over=SHOWN, shape=True)


# A loss that the paper calls moderate, none that it would call one, and one that it would call sharp or large.
small = partial(at_least, bound="moderate", sign=-1)
harmless = partial(at_least, bound="harmless", sign=-1)
sharp = partial(at_most, bound="harmless", sign=-1)


def reinit_claim(
    says: str, test: Predicate, layers: str, task: str, source: str, amount: str = "", item: str = T1, same_as: str = ""
) -> Claim:
    """What re-initialising some layers does in the source language (`home`) and in the others on average."""
    return claim(
        item,
        says.format(task=WORDS[task], source=SOURCES[source]),
        test,
        number=near(amount, "points") if amount else None,
        over=tested(task),
        measured_on=partial(sets_behind, task=task, source=source, target=source if amount == "home" else "X"),
        learnt=learnt(task, source, item),
        same_as=same_as,
        elsewhere=cell(item, task=task, source=source, target="X", layers=layers),
        home=cell(item, task=task, source=source, target=source, layers=layers),
    )


# Layers 1-2: sharp drops across languages, moderate ones within the source language.
lower_claim = partial(
    reinit_claim,
    "re-initialising layers 1-2 costs {task} from {source} {{elsewhere:cost}} points elsewhere and {{home:cost}} in "
    "{source}",
    all_of(sharp("elsewhere"), small("home"), greater("home", "elsewhere")),
    "1-2",
)
# Layers 11-12: no harm, neither within the source language nor across languages.
upper_claim = partial(
    reinit_claim,
    "re-initialising layers 11-12 changes {task} from {source} by {{elsewhere:+}} points elsewhere and {{home:+}} in "
    "{source}",
    all_of(harmless("home"), harmless("elsewhere")),
    "11-12",
)


def set_change(target: str, layers: str, **keys: str) -> Quantity:
    return cell(T5, target=target, layers=layers, **keys) - cell(T5, target=target, layers="ref", **keys)


@quantity
def set_changes(evidence: Evidence, sets: Sequence[str]) -> Group:
    """What re-initialising those sets of table 5 that this run has changes in English, and elsewhere on average."""
    known = [layers for layers in sets if layers in evidence.config[PAPER]["layer_sets"]]
    if not known:
        raise Outside(f"none of the layer sets {', '.join(sets)} is part of this run")
    members = {}
    for task, layers in product(TASKS, known):
        keys = {"task": task, "split": "test"}
        members[f"{WORDS[task]} {layers} English"] = set_change("en", layers, **keys)(evidence)
        targets = evidence.column(T5, "target", **keys, layers=layers)
        others = {target: set_change(target, layers, **keys) for target in targets if target != "en"}
        if not others:
            raise Outside(f"{T5} of this run has no other language than English for {WORDS[task]}")
        members[f"{WORDS[task]} {layers} elsewhere"] = average(together(**others))(evidence)
    return Group(members)


@derived
def english_leads(changes: Group) -> Group:
    """By how much less English loses than the others."""
    english = {name.removesuffix(" English"): number for name, number in changes if name.endswith(" English")}
    return Group({name: number.minus(changes.members[f"{name} elsewhere"]) for name, number in english.items()})


# The scores of table 5 without re-initialisation, in English and elsewhere on average.
SETS_LEARNT = {
    task: together(
        en=cell(T5, task=task, target="en", split="test", layers="ref"),
        X=average(without(cells(T5, ["target"], task=task, split="test", layers="ref"), "en")),
    )
    for task in TASKS
}


@quantity
def domains(evidence: Evidence, task: str, target: str, *others: str) -> Group:
    """What re-initialising layers 1-2 does to the domains of a language, but for some that another claim is about."""
    group = without(cells(T2, ["domain"], task=task, target=target, layers="1-2")(evidence), *others)
    if target == "en" and all(name.startswith("in-domain") for name in group.members):
        raise Outside(f"{T2} of this run has no other English domain for {WORDS[task]} than the one trained on")
    if not len(group):
        raise Outside(f"{T2} of this run has no other {language(target)} domain for {WORDS[task]} than {others[0]}")
    return group


def domain_claim(task: str, english: Sequence[str] = (), french: Sequence[str] = ()) -> Claim:
    """All domains of English lose little and French loses much, but for the domains named."""
    home, away = domains(task, "en", *english), domains(task, "fr", *french)
    return claim(
        T2,
        f"points that re-initialising layers 1-2 costs {WORDS[task]}: in English {{english:cost}}; in French "
        "{french:cost}",
        all_of(every("english", small), every("french", sharp), greater("home", "away")),
        learnt={task: cells(T2, ["target", "domain"], task=task, layers="ref")},
        english=home,
        french=away,
        home=average(home),
        away=average(away),
    )


def literature_claim(amount: str, same_as: str = "") -> Claim:
    """The example of the text: English literature against the French translation, parsing."""
    english, french = (
        partial(cell, T2, task="parsing", target=target, domain=domain)
        for target, domain in (("en", "literature"), ("fr", TRANSLATION))
    )
    return claim(
        T2,
        "re-initialising layers 1-2 costs {literature:cost} points in English literature and {french:cost} in French",
        all_of(small("literature"), sharp("french"), greater("literature", "french")),
        number=near(amount, "points"),
        measured_on=lambda config: [DataSet("trees", config[PAPER]["domains"]["train"], "train")],
        learnt={"parsing": together(fr=french(layers="ref"), literature=english(layers="ref"))},
        same_as=same_as,
        french=french(layers="1-2"),
        literature=english(layers="1-2"),
    )


def trend(name: str) -> Predicate:
    """Similarity "constantly increases up to layer 5"; "from these layers forward" it decreases."""
    return all_of(peaks_at(name, 5), keeps_rising(name, 5), rises_then_falls(name))


def peak_claim(task: str) -> Claim:
    """Similarity of English and Russian in a fine-tuned model."""
    line = curve(F1, "English-Russian", TASKS[task])
    return claim(
        F1,
        "CKA of English and Russian is largest at {curve}, and {fifth} % at layer 5",
        trend("curve"),
        number=near("fifth", "percent"),
        measured_on=lambda config: own_sets_behind(config, task),
        shape=True,
        curve=line,
        fifth=derived(lambda number: number.times(100, "percent"))(at(line, 5)),
    )


def pretrained_curves(evidence: Evidence) -> Iterator[tuple[str, str, Curve]]:
    """The pretrained model's curve of every language shown, with its figure and panel."""
    for item in (F1, F5):
        for panel in evidence.column(item, "panel", series="pretrained"):
            yield item, panel, evidence.curve(item, panel, "pretrained")


@quantity
def kept_when_tuned(evidence: Evidence) -> Group:
    """What each fine-tuned model keeps of the pretrained one's similarity in the lower layers."""
    members = {}
    for item, panel, base in pretrained_curves(evidence):
        tuned = curves(item, panel=panel, series=list(TASKS.values()))(evidence)
        members |= {f"{panel}, {name}": share for name, share in kept(base, tuned, *LOWER)}
    return Group(members)


@quantity
def impact_of_ner(evidence: Evidence) -> Group:
    """By how much more fine-tuning for NER changes the upper layers than the lower ones."""
    members = {}
    for item, panel, base in pretrained_curves(evidence):
        tuned = evidence.curve(item, panel, TASKS["ner"])
        members[panel] = distance(base, tuned, *UPPER).minus(distance(base, tuned, *BELOW))
    return Group(members)


def rho(item: str, task: str, model: str) -> Quantity:
    return cell(item, "correlation", metric="spearman", task=task, model=model)


def correlation_claim(item: str, task: str, model: str = "fine-tuned", doubt: str = "", same_as: str = "") -> Claim:
    """Similarity goes with transfer."""
    return claim(
        item,
        "Spearman's rho of similarity and transfer is {rho}, p {p}",
        correlates("rho", "p"),
        number=near("rho", "correlation"),
        doubt=doubt,
        over=compared(task),
        measured_on=partial(correlated_sets, task=task),
        learnt=learnt(task),
        same_as=same_as,
        rho=rho(item, task, model),
        p=cell(item, "p", metric="p", task=task, model=model),
    )


def strong_claim(item: str, *models: str, same_as: str = "") -> Claim:
    """The correlation is called strong for every task."""
    rhos = {f"{TASKS[task]}, {model}": rho(item, task, model) for task in TASKS for model in models}
    return claim(
        item,
        "Spearman's rho of similarity and transfer: {rhos}",
        every("rhos", at_least, "strong"),
        over=compared(*TASKS),
        learnt=ALL_LEARNT,
        same_as=same_as,
        rhos=together(**rhos),
    )


def by_layer(model: str) -> Quantity:
    """The correlation by layer of all tasks, by one kind of model."""
    return curves(F3, "correlation", series=[f"{name}, {model}" for name in TASKS.values()])


SPANS = spans(by_layer("fine-tuned"), 1, 12)


def spread_claim(task: str, which: str) -> Claim:
    """The caption of table 5 on standard deviations over seeds."""
    words, summary, within = SPREADS[which]
    says = f"the {words} standard deviation over seeds is {{std}} points"
    return claim(
        T5,
        says,
        number=near("std", within),
        measured_on=lambda config: own_sets_behind(config, task, *own_places(config)),
        std=spread(T5, summary, task=task),
    )


@quantity
def languages_counted(evidence: Evidence, *left_out: str) -> Number:
    """The languages of the study, of all its tasks, without those shown beside it, and without the sources where these
    are left out."""
    paper = evidence.config[PAPER]
    others = [lang for key in ("extra_targets", *left_out) for lang in paper[key]]
    tables = [item for item in (T6, T7, T8) if not evidence.catalog.left_out(item) and evidence.rows(item)]
    return different(tables or T6, "target", ["X", *others], layers="ref")(evidence)


@quantity
def languages_correlated(evidence: Evidence) -> Number:
    return Number(max(float(row["languages"]) for row in evidence.select(T4, metric="spearman")), "count")


def tuned_with(key: str, *tasks: str, factor: float = 1) -> Quantity:
    """A setting of the fine-tunings for some tasks: once where it is the same for all, or else of each."""

    def read(presets: dict) -> list:
        values = [(presets["defaults"] | presets[task])[key] for task in tasks]
        values = [value if isinstance(value, str) else round(factor * value, 6) for value in values]
        return values if len({*values}) > 1 else values[:1]

    return setting(T1, "finetune", read=read)


def epochs_claim(says: str, *tasks: str) -> Claim:
    """The best of so many epochs is chosen, not the last."""
    return claim(
        T1,
        says,
        number=all_of(equals("ours"), equals("selection", "best")),
        is_setting=True,
        ours=tuned_with("epochs", *tasks),
        selection=tuned_with("selection", *tasks),
    )


last_layer = derived(lambda curve: Number(max(curve.points), "count"))

# English parsing is the example of the text, which prints both of its numbers: two claims, one fact.
OTHERS = [(task, source) for task in TASKS for source in SOURCES if (task, source) != ("parsing", "en")]

CLAIMS = {
    **{f"cka-peak-{task}": peak_claim(task) for task in TASKS},
    # Russian is figure 1, of which the three claims above are.
    "cka-peak-layer": shape(
        F5,
        "similarity in the fine-tuned models is largest at {curves}, over {curves:count} curves",
        most("curves", trend),
        curves=curves([F5], series=list(TASKS.values())),
    ),
    "cka-peak-pretrained": shape(
        F5,
        "similarity in the pretrained model is largest at {curves}",
        most("curves", trend),
        curves=curves([F1, F5], series="pretrained"),
    ),
    "cka-preserved": shape(
        F5,
        "of the pretrained model's CKA in layers 3-6 the fine-tuned models keep {kept}",
        most("kept", at_least, "survives"),
        kept=kept_when_tuned(),
    ),
    "cka-ner-languages": claim(
        F4,
        "similarity in the NER model is largest at {curves}, over {curves:count} languages",
        most("curves", trend),
        over=compared("ner"),
        shape=True,
        curves=curves(F4),
    ),
    "cka-ner-upper": shape(
        F5,
        "fine-tuning for NER changes CKA in layers 7-12 more than in layers 1-6 by {impact:+}",
        most("impact", at_least, "step"),
        impact=impact_of_ner(),
    ),
    # "There is no alignment" is explained as a decrease; in the re-initialised layers themselves that would be no news.
    "cka-lower-reinit": shape(
        RANDOM[0],
        "re-initialising layers 1-2 changes the mean CKA of layers 3-12 by {drops:mean+} over {drops:count} language "
        "pairs and tasks",
        most("drops", negative),
        drops=drops(RANDOM, "layers 1-2", above=2),
    ),
    "spearman-ft-parsing": correlation_claim(T4, "parsing"),
    "spearman-ft-pos": correlation_claim(T4, "pos", doubt="0.75 in the text, 0.74 in table 4 and in the talk"),
    "spearman-ft-ner": correlation_claim(T4, "ner"),
    **{f"spearman-pre-{task}": correlation_claim(T4, task, "pretrained") for task in TASKS},
    "spearman-strong": strong_claim(T4, "fine-tuned", "pretrained"),
    "spearman-layer": claim(
        F3,
        "in the pretrained model the correlation is largest at: {curves}",
        every("curves", peaks_at, 6),
        over=compared(*TASKS),
        learnt=ALL_LEARNT,
        curves=by_layer("pretrained"),
    ),
    "spearman-ner-upper": claim(
        F3,
        "in layers 7-12 the correlation of the NER model goes over {curve:range} with its peak at {curve}",
        rises_then_falls("curve", "sharp", first=UPPER[0] + 1, before_end=1),
        over=compared("ner"),
        learnt=learnt("ner"),
        curve=part(curve(F3, "correlation of gap and similarity", "NER, fine-tuned", "correlation"), *UPPER),
    ),
    "spearman-ft-varies": claim(
        F3,
        "over layers 1-12 the correlation of the fine-tuned models spans {spans}",
        all_of(every("spans", at_least, "sharp"), greater("ner", "parsing"), greater("ner", "pos")),
        over=compared(*TASKS),
        learnt=ALL_LEARNT,
        spans=SPANS,
        **{task: chosen(SPANS, f"{name}, fine-tuned") for task, name in TASKS.items()},
    ),
    "drop-en-en-parse": lower_claim("parsing", "en", "home"),
    "drop-en-x-parse": lower_claim("parsing", "en", "elsewhere", same_as=f"{PAPER}/drop-en-en-parse"),
    **{f"drop-{source}-{SHORT[task]}": lower_claim(task, source) for task, source in OTHERS},
    "upper-en-en-parse": upper_claim("parsing", "en", "home"),
    "upper-en-x-parse": upper_claim("parsing", "en", "elsewhere", same_as=f"{PAPER}/upper-en-en-parse"),
    **{f"upper-{source}-{SHORT[task]}": upper_claim(task, source) for task, source in OTHERS},
    # Single layers cost too little to be called sharp, blocks too much to be called moderate: the trend is the order.
    "sets-lower": claim(
        T5,
        "English loses less than the others by {leads} points",
        most("leads", positive),
        learnt=SETS_LEARNT,
        leads=english_leads(set_changes(LOWER_SETS)),
    ),
    "sets-upper": claim(
        T5,
        "re-initialising sets of upper layers changes scores by {changes:+} points",
        most("changes", harmless),
        learnt=SETS_LEARNT,
        changes=set_changes(UPPER_SETS),
    ),
    "domain-lit": literature_claim("literature"),
    "domain-fr": literature_claim("french", same_as=f"{PAPER}/domain-lit"),
    "domain-parse": domain_claim("parsing", ["literature"], [TRANSLATION]),
    "domain-pos": domain_claim("pos"),
    "domain-ner": domain_claim("ner"),
    **{f"std-{task}-{which}": spread_claim(task, which) for task in TASKS for which in SPREADS},
    "spearman-n": stated(
        T4, "{ours} languages stand behind the larger correlation, English itself included", languages_correlated()
    ),
    "languages": stated(T6, "{ours} languages, those beside the study not counted", languages_counted()),
    "sources": stated(T1, "{ours} source languages", different(T1, "source", layers="ref")),
    "targets": stated(T6, "{ours} languages that are no source", languages_counted("sources")),
    "tasks": stated(T1, "{ours} tasks", different(T1, "task", layers="ref")),
    "seeds": stated(T1, "runs behind every number: {ours} at least", runs(T1)),
    "mbert-layers": stated(
        F1, "{ours} layers above the embeddings", last_layer(curve(F1, "English-Russian", "pretrained"))
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
    "warmup": claim(
        T1,
        "warm-up over {ours} % of the steps, then {decay} decay",
        number=all_of(equals("ours"), equals("decay", "linear")),
        is_setting=True,
        ours=tuned_with("warmup", *TASKS, factor=100),
        decay=tuned_with("schedule", *TASKS),
    ),
    "epochs-parsing": epochs_claim("{selection} of {ours} epochs", "parsing"),
    "epochs-pos-ner": epochs_claim("{selection} of {ours} epochs (POS and NER)", "pos", "ner"),
    "gpus": background("the authors' hardware; ours is told with each run"),
}
