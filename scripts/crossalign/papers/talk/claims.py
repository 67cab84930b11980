"""The claims of `talk`: facts of `align-predict` that its slides repeat, and unseen languages, of which kind each is
and what another script does."""

from collections.abc import Callable, Sequence

from crossalign.catalog.sets import DataSet, text_set
from crossalign.catalog.targets import bases, having
from crossalign.papers.align_predict.claims import (
    LOWER,
    SOURCES,
    T6,
    TASKS,
    correlation_claim,
    lower_claim,
    small,
    strong_claim,
    tested,
    upper_claim,
)
from crossalign.papers.align_predict.claims import PAPER as ALIGN
from crossalign.papers.talk.items import in_latin, task_of
from crossalign.papers.talk.tables import raw_bytes
from crossalign.results.claims.claim import Claim, background, claim, stated
from crossalign.results.claims.curves import curve, curves, kept
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import Builder, count, every
from crossalign.results.claims.predicates import all_of, at_least, greater, near, negative, positive
from crossalign.results.claims.quantities import Quantity, cell, cells, derived, different, largest, quantity, together
from crossalign.results.claims.shapes import peaks_within, rises_then_falls
from crossalign.results.claims.values import Group, Number
from crossalign.results.comparable import papers_config
from crossalign.results.names import TASKS as ALL_TASKS
from crossalign.results.names import language, systems

PAPER = "talk"
T1, T2, T3, T5 = (f"{PAPER}/table{place}" for place in (1, 2, 3, 5))
F1, F2, F3 = (f"{PAPER}/figure{place}" for place in (1, 2, 3))
WORLD = "a fact about the world that no experiment of the talk depends on"
GERMAN = curve(F1, "English-German", "pretrained")
UYGHUR = "Uyghur, Parsing"
# The claims of the paper that the slides repeat.
REPEATED = {"en": "en-en-parse", "ru": "ru-parse", "ar": "ar-parse"}
# Germanic or English Pidgin, and in Latin script (table 3). Swiss German is a claim of its own.
RELATED = ("fo", "pcm")
# Written in the script of relatives that mBERT has seen: Georgian and Russian.
OWN_SCRIPT = ("xmf", "mhr", "bxr")
# Languages that mBERT has seen in another script than Latin.
SEEN = ("ar", "ru", "ja")
SHOWN = "shows the languages of talk.profile_languages and talk.transliterated_seen alone"


@quantity
def raw_megabytes(evidence: Evidence) -> Number:
    """The prepared raw text of Narabizi."""
    size = raw_bytes(evidence.results, evidence.config, "qaf")
    if size is None:
        raise evidence.missing_set(T3, text_set(evidence.config, "qaf"))
    return Number(size / 1e6, "points", 0.0)


def zero_shot(target: str, doubt: str) -> Claim:
    """A score of the zero-shot slide."""
    says = f"LAS from English to {language(target)}: {{score}}"
    return claim(T1, says, number=near("score", "points"), doubt=doubt, score=cell(T1, target=target))


@quantity
def all_targets(evidence: Evidence) -> Group:
    """LAS from English on every other language; those beside the study are left out."""
    others = ("en", "X", *evidence.config[ALIGN]["extra_targets"])
    scores = cells(T6, ["target"], source="en", layers="ref")(evidence)
    return Group({language(name): number for name, number in scores if name not in others})


@quantity
def within_sources(evidence: Evidence) -> Group:
    """What each pair of layers does to parsing in the language that the model was fine-tuned on."""
    members = {}
    for source in having(evidence.config, "sources", "parsing"):
        members |= cells(T2, ["target", "layers"], source=source, target=source, kind="delta")(evidence).members
    return Group(members)


# Unseen languages.


def named(evidence: Evidence) -> dict[str, str]:
    """What this run calls the systems."""
    return systems(bases(evidence.config, PAPER)[0])


@quantity
def base_model(evidence: Evidence) -> str:
    """The model that is looked at: mBERT in the talk."""
    return named(evidence)["mbert"]


@quantity
def score(evidence: Evidence, system: str, lang: str) -> Number:
    """The score of a system on an unseen language."""
    if lang not in evidence.config[PAPER]["profile_languages"]:
        raise Outside(f"{language(lang)} is not among the languages of this run")
    panel = f"{ALL_TASKS[task_of(evidence.config, lang)]}, trained and tested on each language"
    return cell(F2, panel=panel, series=named(evidence)[system], x=language(lang))(evidence)


def best(lang: str, *systems: str) -> Quantity:
    """The score of the best of some systems: a task that one of them learns can be learnt from these data."""
    return largest(together(**{system: score(system, lang) for system in systems or ("bilstm", "mbert", "mlm")}))


@quantity
def margin(evidence: Evidence, lang: str) -> Number:
    """By how much mBERT, adapted or not, beats the baseline."""
    baseline = score("bilstm", lang)(evidence)
    return best(lang, "mbert", "mlm")(evidence).minus(baseline)


def category_claim(lang: str, *order: str) -> Claim:
    """What kind of language mBERT finds a language to be, by parsing: which systems are better than which."""
    return claim(
        F2,
        f"{language(lang)}: BiLSTM {{bilstm}}, {{base}} {{mbert}}, {{base}} after MLM {{mlm}} LAS",
        all_of(*(greater(*pair.split(" > ")) for pair in order)),
        learnt={"parsing": best(lang)},
        base=base_model(),
        **{system: score(system, lang) for system in ("bilstm", "mbert", "mlm")},
    )


def needs_all(evidence: Evidence, item: str) -> None:
    """The slides show few languages; the whole study is a setting."""
    ours, theirs = evidence.config[PAPER]["languages"], papers_config()[PAPER]["languages"]
    if left_out := [lang for lang in theirs if lang not in ours]:
        raise Outside(f"{len(left_out)} of the {len(theirs)} unseen languages are not part of this run")
    needs_some(evidence, item, set(ours) <= set(evidence.config[PAPER]["profile_languages"]))


def needs_some(evidence: Evidence, item: str, there: object) -> None:
    """What the slides do not show is a setting, too."""
    if not there:
        raise evidence.absent(item, SHOWN)


@quantity
def margins(evidence: Evidence) -> Group:
    """By how much mBERT beats the baseline on every unseen language."""
    needs_all(evidence, F2)
    return Group({language(lang): margin(lang)(evidence) for lang in evidence.config[PAPER]["profile_languages"]})


@derived
def hard(margins: Group) -> Group:
    """The languages on which mBERT fails in both settings."""
    return Group({name: number for name, number in margins if number.value <= 0})


@quantity
def best_scores(evidence: Evidence, task: str) -> Group:
    """The best scores on the unseen languages whose kind is told by a task."""
    langs = [lang for lang in evidence.config[PAPER]["profile_languages"] if task_of(evidence.config, lang) == task]
    return Group({language(lang): best(lang)(evidence) for lang in langs})


@quantity
def over_related(evidence: Evidence, member: Callable[[str], Quantity]) -> Group:
    """A quantity of each related language that this run has."""
    study = evidence.config[PAPER]
    langs = [lang for lang in RELATED if lang in study["languages"]]
    if not langs:
        raise Outside(f"neither {' nor '.join(map(language, RELATED))} is among the languages of this run")
    needs_some(evidence, F2, langs := [lang for lang in langs if lang in study["profile_languages"]])
    return Group({language(lang): member(lang)(evidence) for lang in langs})


@quantity
def transliterated(evidence: Evidence, key: str) -> Number:
    """How many languages of a list were tried in Latin script."""
    needs_all(evidence, F3)
    there = {row["panel"].partition(",")[0] for row in evidence.rows(F3) if row["y"]}
    return Number(sum(language(lang) in there for lang in evidence.config[PAPER][key]), "count")


@quantity
def latin_gain(evidence: Evidence, system: str, panel: str = UYGHUR) -> Number:
    """What Latin script gains."""
    keys = {"panel": panel, "x": named(evidence)[system]}
    return (cell(F3, series="Latin script", **keys) - cell(F3, series="original script", **keys))(evidence)


@quantity
def best_in(evidence: Evidence, panel: str) -> Number:
    """The best score in either script."""
    rows = [row for row in evidence.select(F3, panel=panel) if row["y"]]
    if not rows:
        raise evidence.absent(F3, f"lacks {panel}")
    return max((evidence.number(F3, row, "points") for row in rows), key=lambda number: number.value)


def panels(evidence: Evidence, langs: Sequence[str], only: str = "") -> list[str]:
    """Those of figure 3 on some languages (and one task); seen languages have NER alone."""
    study = evidence.config[PAPER]
    if not (there := [lang for lang in langs if lang in (*study["languages"], *SEEN)]):
        raise Outside(f"{', '.join(map(language, langs))}: not transliterated in this run")
    known = in_latin(evidence.config) | {lang: ["ner"] for lang in study["transliterated_seen"]}
    pairs = [(lang, task) for lang in there for task in known.get(lang, ()) if only in ("", task)]
    needs_some(evidence, F3, pairs)
    return [f"{language(lang)}, {ALL_TASKS[task]}" for lang, task in pairs]


@quantity
def latin_gains(evidence: Evidence, langs: Sequence[str], models: Sequence[str]) -> Group:
    """What Latin script gains for some languages and models."""
    pairs = [(panel, system) for panel in panels(evidence, langs) for system in models]
    return Group(
        {f"{panel}, {named(evidence)[system]}": latin_gain(system, panel)(evidence) for panel, system in pairs}
    )


@quantity
def best_of_panels(evidence: Evidence, langs: Sequence[str], task: str) -> Group:
    return Group({name: best_in(name)(evidence) for name in panels(evidence, langs, task)})


def script_claim(langs: Sequence[str], tasks: Sequence[str], sign: Builder, *models: str) -> Claim:
    """What Latin script does to some languages. The slides give no numbers: the hypothesis gives the direction."""
    return claim(
        F3,
        "Latin script changes scores by {gains:+} points",
        every("gains", sign),
        learnt={task: best_of_panels(langs, task) for task in tasks},
        gains=latin_gains(langs, models),
    )


CLAIMS = {
    **{f"{name}": background(WORLD) for name in ("languages-world", "languages-served", "lm-coverage")},
    "narabizi-raw": claim(
        T3,
        "{size} MB of prepared text",
        number=near("size", "roughly", relative=True),
        data=(DataSet("text", "narabizi_qaf", "train"),),
        size=raw_megabytes(),
    ),
    "unseen-total": background("doubtful in print: the table of the same slides lists 15 languages"),
    "unseen-listed": stated(T3, "{ours} languages", different(T3, "language")),
    "hard-count": claim(
        F2,
        "{hard:count} hard languages: {hard:names}",
        number=count("margins", negative, doubtful=True),
        over=f"{PAPER}.languages",
        learnt={task: best_scores(task) for task in ("parsing", "ner")},
        hard=hard(margins()),
        margins=margins(),
    ),
    "gsw-category": category_claim("gsw", "mbert > bilstm"),
    "wo-category": category_claim("wo", "bilstm > mbert", "mlm > bilstm"),
    "ug-category": category_claim("ug", "bilstm > mbert", "bilstm > mlm"),
    "translit-langs": stated(F3, "{ours} unseen languages", transliterated("transliterated")),
    "translit-seen": stated(F3, "{ours} seen languages", transliterated("transliterated_seen")),
    # "Highly impactful": more than a moderate change.
    "translit-effect": claim(
        F3,
        "Latin script changes LAS of Uyghur by {mbert:+} points in {base} and {mlm:+} after MLM",
        all_of(at_least("mbert", "moderate"), at_least("mlm", "moderate")),
        learnt={"parsing": best_in(UYGHUR)},
        base=base_model(),
        mbert=latin_gain("mbert"),
        mlm=latin_gain("mlm"),
    ),
    "translit-sorani": script_claim(["ckb"], ["ner"], positive, "mbert", "mlm"),
    "translit-relatives": script_claim(OWN_SCRIPT, ["parsing", "pos", "ner"], negative, "mbert", "mlm"),
    "translit-seen-effect": script_claim(SEEN, ["ner"], negative, "mbert"),
    "related-script": claim(
        F2,
        "{base}, adapted or not, beats the BiLSTM by: {margins:+} points",
        every("margins", positive),
        learnt={"parsing": over_related(best)},
        base=base_model(),
        margins=over_related(margin),
    ),
    "zero-shot-en-en": zero_shot("en", "88.98 on the RANDOM-INIT slides and in the paper"),
    "zero-shot-en-de": zero_shot("de", "70.34 in the paper, which rounds to 70.3"),
    # Whether the task is learnt is the claim itself, so that it has no floor but this.
    "zero-shot-all": claim(
        T6,
        "LAS from English: {scores}",
        every("scores", at_least, "floor_parsing"),
        over=tested("parsing"),
        scores=all_targets(),
    ),
    "same-language-small": claim(
        T2,
        "re-initialising a pair of layers changes LAS in the source language by {changes:+} points",
        every("changes", small),
        learnt={"parsing": cells(T2, ["target"], target=list(SOURCES), layers="ref")},
        changes=within_sources(),
    ),
    **{
        f"{kind}-{source}": repeat("parsing", source, item=T2, same_as=f"{ALIGN}/{original}-{name}")
        for kind, original, repeat in (("lower", "drop", lower_claim), ("upper", "upper", upper_claim))
        for source, name in REPEATED.items()
    },
    # "In the lower part of the model": up to the middle, but above the first two layers, which are near the embeddings.
    "cka-en-de": claim(
        F1,
        "CKA of English and German in the pretrained model is largest at {curve}; of its level in layers 3-6 the "
        "fine-tuned models keep {kept}",
        all_of(rises_then_falls("curve"), peaks_within("curve", *LOWER), every("kept", at_least, "survives")),
        shape=True,
        curve=GERMAN,
        kept=kept(GERMAN, curves(F1, series=list(TASKS.values())), *LOWER),
    ),
    "spearman-pos": correlation_claim(T5, "pos", same_as=f"{ALIGN}/spearman-ft-pos"),
    "spearman-strong": strong_claim(T5, "fine-tuned", same_as=f"{ALIGN}/spearman-strong"),
    "scaling": background("numbers of other papers on models that are not part of this workflow"),
}
