"""The claims of `talk` on unseen languages: which kind each is of, and what another script does."""

from collections.abc import Mapping, Sequence

from crossalign.results.claims.claim import Claim, stated
from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.groups import Builder, count, every
from crossalign.results.claims.languages import papers_config
from crossalign.results.claims.predicates import Predicate, all_of, at_least, equals, greater, negative, positive
from crossalign.results.claims.quantities import Quantity, cell, largest, together
from crossalign.results.claims.values import Group, Number
from crossalign.results.names import TASKS, language, systems

PAPER = "talk"
F2, F3 = f"{PAPER}/figure2", f"{PAPER}/figure3"
# Germanic or English Pidgin, and in Latin script (table 3). Swiss German is a claim of its own.
RELATED = ("fo", "pcm")
# Written in the script of relatives that mBERT has seen: Georgian and Russian.
OWN_SCRIPT = ("xmf", "mhr", "bxr")


def named(evidence: Evidence) -> dict[str, str]:
    """What this run calls the systems."""
    return systems(evidence.config[PAPER]["base"])


def base_model(evidence: Evidence) -> str:
    """The model that is looked at: mBERT in the talk."""
    return named(evidence)["mbert"]


def task_of(evidence: Evidence, lang: str) -> str:
    """The task that the kind of a language is told by: parsing, or else NER."""
    return "parsing" if lang in evidence.config[PAPER]["treebanks"] else "ner"


def score(system: str, lang: str) -> Quantity:
    """The score of a system on an unseen language."""

    def found(evidence: Evidence) -> Number:
        study = evidence.config[PAPER]
        if lang not in study["languages" if study["scope"] == "full" else "profile_languages"]:
            raise Outside(f"{language(lang)} is not among the languages of this run")
        panel = f"{TASKS[task_of(evidence, lang)]}, trained and tested on each language"
        return cell(F2, panel=panel, series=named(evidence)[system], x=language(lang))(evidence)

    return found


def scores(lang: str) -> dict[str, Quantity]:
    """The baseline, mBERT, and mBERT after MLM."""
    return {system: score(system, lang) for system in ("bilstm", "mbert", "mlm")}


def best(members: Mapping[str, Quantity]) -> Quantity:
    """The score of the best of some systems: a task that one of them learns can be learnt from these data."""
    return largest(together(members))


def margin(lang: str) -> Quantity:
    """By how much mBERT, adapted or not, beats the baseline."""

    def found(evidence: Evidence) -> Number:
        ours = scores(lang)
        baseline = ours.pop("bilstm")(evidence)
        return best(ours)(evidence).minus(baseline)

    return found


def category_claim(lang: str, test: Predicate) -> Claim:
    """What kind of language mBERT finds a language to be, by parsing."""
    return Claim(
        F2,
        f"{language(lang)}: BiLSTM {{bilstm}}, {{base}} {{mbert}}, {{base}} after MLM {{mlm}} LAS",
        {"base": base_model, **scores(lang)},
        test=test,
        learnt=(("parsing", best(scores(lang))),),
    )


def needs_all(evidence: Evidence, item: str) -> None:
    """The slides show few languages; the whole study is a setting."""
    ours, theirs = evidence.config[PAPER]["languages"], papers_config()[PAPER]["languages"]
    if left_out := [lang for lang in theirs if lang not in ours]:
        raise Outside(f"{len(left_out)} of the {len(theirs)} unseen languages are not part of this run")
    needs_full(evidence, item)


def needs_full(evidence: Evidence, item: str) -> None:
    """What the slides do not show is a setting, too."""
    if evidence.config[PAPER]["scope"] != "full":
        raise evidence.absent(item, "shows the languages of the slides alone; set talk.scope: full in the config")


def margins(evidence: Evidence) -> Group:
    """By how much mBERT beats the baseline on every unseen language."""
    needs_all(evidence, F2)
    return Group({language(lang): margin(lang)(evidence) for lang in evidence.config[PAPER]["languages"]})


def hard(evidence: Evidence) -> Group:
    """The languages on which mBERT fails in both settings."""
    return Group({name: number for name, number in margins(evidence) if number.value <= 0})


def best_scores(task: str) -> Quantity:
    """The best scores on the unseen languages whose kind is told by a task."""

    def found(evidence: Evidence) -> Group:
        langs = [lang for lang in evidence.config[PAPER]["languages"] if task_of(evidence, lang) == task]
        return Group({language(lang): best(scores(lang))(evidence) for lang in langs})

    return found


def over_related(member: Quantity) -> Quantity:
    """A quantity of each related language that this run has."""

    def found(evidence: Evidence) -> Group:
        study = evidence.config[PAPER]
        langs = [lang for lang in RELATED if lang in study["languages"]]
        if not langs:
            raise Outside(f"neither {' nor '.join(map(language, RELATED))} is among the languages of this run")
        if study["scope"] != "full" and not (langs := [lang for lang in langs if lang in study["profile_languages"]]):
            needs_full(evidence, F2)
        return Group({language(lang): member(lang)(evidence) for lang in langs})

    return found


def transliterated(key: str) -> Quantity:
    """How many languages of a list were tried in Latin script."""

    def found(evidence: Evidence) -> Number:
        needs_all(evidence, F3)
        names = [language(lang) for lang in evidence.config[PAPER][key]]
        there = {row["panel"].partition(",")[0] for row in evidence.rows(F3) if row["y"]}
        return Number(sum(name in there for name in names), "count")

    return found


def latin_gain(system: str, panel: str = "Uyghur, Parsing") -> Quantity:
    """What Latin script gains."""

    def found(evidence: Evidence) -> Number:
        keys = {"panel": panel, "x": named(evidence)[system]}
        after, before = (cell(F3, series=f"{script} script", **keys)(evidence) for script in ("Latin", "original"))
        return after.minus(before)

    return found


def best_in(panel: str) -> Quantity:
    """The best score in either script."""

    def found(evidence: Evidence) -> Number:
        there = [row for row in evidence.select(F3, {"panel": panel}) if row["y"]]
        if not there:
            raise evidence.absent(F3, f"lacks {panel}")
        return max((evidence.number(F3, row, "points") for row in there), key=lambda number: number.value)

    return found


def panels(evidence: Evidence, langs: Sequence[str], only: str = "") -> list[str]:
    """Those of figure 3 on some languages (and one task); seen languages have NER alone."""
    study = evidence.config[PAPER]
    known = study["transliterated"] | {lang: ["ner"] for lang in study["transliterated_seen"]}
    there = [lang for lang in langs if lang in study["languages"] or lang in study["transliterated_seen"]]
    found = [f"{language(lang)}, {TASKS[task]}" for lang in there for task in known.get(lang, ()) if only in ("", task)]
    if not found:
        raise Outside(f"{', '.join(map(language, langs))}: not transliterated in this run")
    if study["scope"] != "full":
        needs_all(evidence, F3)
    return found


def script_claim(langs: Sequence[str], tasks: Sequence[str], sign: Builder, models: Sequence[str]) -> Claim:
    """What Latin script does to some languages. The slides give no numbers: the hypothesis gives the direction."""

    def gains(evidence: Evidence) -> Group:
        return Group(
            {
                f"{panel}, {named(evidence)[system]}": latin_gain(system, panel)(evidence)
                for panel in panels(evidence, langs)
                for system in models
            }
        )

    def learnt(task: str) -> Quantity:
        return lambda evidence: Group({name: best_in(name)(evidence) for name in panels(evidence, langs, task)})

    return Claim(
        F3,
        "Latin script changes scores by {gains:+} points",
        {"gains": gains},
        test=every("gains", sign),
        learnt=tuple((task, learnt(task)) for task in tasks),
    )


UNSEEN: dict[str, Claim] = {
    "hard-count": Claim(
        F2,
        "{hard:count} hard languages: {hard:names}",
        {"hard": hard, "margins": margins},
        number=count("margins", negative, doubtful=True),
        learnt=(("parsing", best_scores("parsing")), ("ner", best_scores("ner"))),
    ),
    "gsw-category": category_claim("gsw", greater("mbert", "bilstm")),
    "wo-category": category_claim("wo", all_of(greater("bilstm", "mbert"), greater("mlm", "bilstm"))),
    "ug-category": category_claim("ug", all_of(greater("bilstm", "mbert"), greater("bilstm", "mlm"))),
    "translit-langs": stated(F3, "{ours} unseen languages", transliterated("transliterated"), equals("ours")),
    "translit-seen": stated(F3, "{ours} seen languages", transliterated("transliterated_seen"), equals("ours")),
    # "Highly impactful": more than a moderate change.
    "translit-effect": Claim(
        F3,
        "Latin script changes LAS of Uyghur by {mbert:+} points in {base} and {mlm:+} after MLM",
        {"base": base_model, "mbert": latin_gain("mbert"), "mlm": latin_gain("mlm")},
        test=all_of(at_least("mbert", "moderate"), at_least("mlm", "moderate")),
        learnt=(("parsing", best_in("Uyghur, Parsing")),),
    ),
    "translit-sorani": script_claim(("ckb",), ("ner",), positive, ("mbert", "mlm")),
    "translit-relatives": script_claim(OWN_SCRIPT, ("parsing", "pos", "ner"), negative, ("mbert", "mlm")),
    "translit-seen-effect": script_claim(("ar", "ru", "ja"), ("ner",), negative, ("mbert",)),
    "related-script": Claim(
        F2,
        "{base}, adapted or not, beats the BiLSTM by: {margins:+} points",
        {"base": base_model, "margins": over_related(margin)},
        test=every("margins", positive),
        learnt=(("parsing", over_related(lambda lang: best(scores(lang)))),),
    ),
}
