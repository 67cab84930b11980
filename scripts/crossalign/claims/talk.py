"""The claims of `talk`."""

from crossalign.claims.align_predict import correlation_claim
from crossalign.claims.claim import Claim, background, stated
from crossalign.claims.curves import curve, curves, level, part
from crossalign.claims.evidence import Evidence, Outside
from crossalign.claims.groups import every
from crossalign.claims.languages import papers_config
from crossalign.claims.predicates import all_of, at_least, climbs, equals, greater, near, positive
from crossalign.claims.quantities import Quantity, cell, different
from crossalign.claims.values import Group, Number
from crossalign.items.talk import text_set
from crossalign.render.names import language, systems
from crossalign.sets import DataSet

PAPER = "talk"
T1, T3, T5 = (f"{PAPER}/table{place}" for place in (1, 3, 5))
F1, F2, F3 = (f"{PAPER}/figure{place}" for place in (1, 2, 3))
PARSING = "Parsing, trained and tested on each language"
NER = "NER, trained and tested on each language"
WORLD = "a fact about the world that no experiment of the talk depends on"


def named(evidence: Evidence) -> dict[str, str]:
    """What this run calls the systems."""
    return systems(evidence.config[PAPER]["base"])


def base_model(evidence: Evidence) -> str:
    """The model that is looked at: mBERT in the talk."""
    return named(evidence)["mbert"]


def score(system: str, lang: str) -> Quantity:
    """The parsing score of a system on an unseen language."""

    def found(evidence: Evidence) -> Number:
        study = evidence.config[PAPER]
        if lang not in study["languages" if study["scope"] == "full" else "profile_languages"]:
            raise Outside(f"{language(lang)} is not among the languages of this run")
        return cell(F2, panel=PARSING, series=named(evidence)[system], x=language(lang))(evidence)

    return found


def category_claim(lang: str, test) -> Claim:
    """What kind of language mBERT finds a language to be, by parsing."""
    return Claim(
        F2,
        f"{language(lang)}: BiLSTM {{bilstm}}, {{base}} {{mbert}}, {{base}} after MLM {{mlm}} LAS",
        {"base": base_model, **{system: score(system, lang) for system in ("bilstm", "mbert", "mlm")}},
        test=test,
    )


def needs_all(evidence: Evidence, item: str) -> None:
    """The slides show few languages; the whole study is a setting."""
    ours, theirs = evidence.config[PAPER]["languages"], papers_config()[PAPER]["languages"]
    if left_out := [lang for lang in theirs if lang not in ours]:
        raise Outside(f"{len(left_out)} of the {len(theirs)} unseen languages are not part of this run")
    if evidence.config[PAPER]["scope"] != "full":
        raise evidence.absent(item, "shows the languages of the slides alone; set talk.scope: full in the config")


def hard_languages(evidence: Evidence) -> Group:
    """The kind of every language, by parsing or else by NER."""
    from crossalign.render.figures.talk import category
    from crossalign.render.values import Value

    needs_all(evidence, F2)
    kinds = {}
    for lang in evidence.config[PAPER]["languages"]:
        name = language(lang)
        panel = PARSING if lang in evidence.config[PAPER]["treebanks"] else NER
        found = [
            evidence.number(F2, evidence.select(F2, {"panel": panel, "series": system, "x": name})[0], "points").value
            for system in (named(evidence)[key] for key in ("bilstm", "mbert", "mlm"))
        ]
        kinds[name] = category(*map(Value, found))
    return Group({name: kind for name, kind in kinds.items() if kind == "Hard"})


def how_many(group: Quantity) -> Quantity:
    """The size of a group."""
    return lambda evidence: Number(len(group(evidence)), "count")


def transliterated(key: str) -> Quantity:
    """How many languages of a list were tried in Latin script."""

    def found(evidence: Evidence) -> Number:
        needs_all(evidence, F3)
        names = [language(lang) for lang in evidence.config[PAPER][key]]
        there = {row["panel"].partition(",")[0] for row in evidence.rows(F3) if row["y"]}
        return Number(sum(name in there for name in names), "count")

    return found


def latin_gain(system: str) -> Quantity:
    """What Latin script gains in Uyghur parsing."""

    def found(evidence: Evidence) -> Number:
        keys = {"panel": "Uyghur, Parsing", "x": named(evidence)[system]}
        after, before = (cell(F3, series=f"{script} script", **keys)(evidence) for script in ("Latin", "original"))
        return after.minus(before)

    return found


def surviving(evidence: Evidence) -> Group:
    """The similarity in layers 1-6 of each fine-tuned model, as a share of the pretrained one's."""
    base = level(curve(F1, "English-German", "pretrained"), 1, 6)(evidence).value
    tuned = level(curves(F1, series=["Parsing", "POS", "NER"]), 1, 6)(evidence)
    return Group({name: Number(number.value / base, "share", 0.0) for name, number in tuned})


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
    "hard-count": Claim(
        F2,
        "{count} hard languages: {hard:names}",
        {"hard": hard_languages, "count": how_many(hard_languages)},
        number=equals("count"),
    ),
    "gsw-category": category_claim("gsw", greater("mbert", "bilstm")),
    "wo-category": category_claim("wo", all_of(greater("bilstm", "mbert"), greater("mlm", "bilstm"))),
    "ug-category": category_claim("ug", all_of(greater("bilstm", "mbert"), greater("bilstm", "mlm"))),
    "translit-langs": stated(F3, "{ours} unseen languages", transliterated("transliterated"), equals("ours")),
    "translit-seen": stated(F3, "{ours} seen languages", transliterated("transliterated_seen"), equals("ours")),
    "translit-effect": Claim(
        F3,
        "Latin script changes LAS of Uyghur by {mbert:+} points in {base} and {mlm:+} after MLM",
        {"base": base_model, "mbert": latin_gain("mbert"), "mlm": latin_gain("mlm")},
        test=all_of(positive("mbert"), positive("mlm")),
    ),
    "zero-shot-en-en": zero_shot("en", "88.98 on the RANDOM-INIT slides and in the paper"),
    "zero-shot-en-de": zero_shot("de", "70.34 in the paper, which rounds to 70.3"),
    "cka-en-de": Claim(
        F1,
        "CKA of English and German in layers 0-6 of the pretrained model is largest at {lower}; fine-tuned models keep "
        "{kept} of it",
        {"lower": part(curve(F1, "English-German", "pretrained"), 0, 6), "kept": surviving},
        test=all_of(climbs("lower"), every("kept", lambda name: at_least(name, "survives"))),
    ),
    "spearman-pos": correlation_claim(T5, "pos"),
}
