"""The findings of `talk` hold on frames drawn from its sentences, and on nothing that was turned round."""

import pytest
from tests.planted import judged, spread, verdict

from crossalign.papers.all_findings import findings
from crossalign.results.comparable import papers_config
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE
from crossalign.results.findings.views import from_records

PAPER = "talk"
NAMES = [one.id for one in findings() if one.paper == PAPER]
# LAS of the BiLSTM, mBERT and mBERT after MLM, as the sentences have them.
SCORES = {
    "gsw": (50, 60, 65),
    "wo": (60, 55, 66),
    "ug": (60, 50, 52),
    "ug+latn": (90, 60, 62),
    "fo": (60, 70, 66),
    "pcm": (60, 57, 72),
}
ROLES = {"bilstm": "bilstm", "mbert": "mbert", "mlm": "mbert"}


def rows(scores):
    """Them, among others of the same languages that no finding is about."""
    found = []
    for text, values in scores.items():
        lang, _, latin = text.partition("+")
        place = {"source": lang, "target": lang, "init": "ref", "task": "parsing", "preset": "unseen-parsing"}
        place |= {"set": f"trees/{lang}_x+fold1{'+latn' * bool(latin)}/test", "metric": "LAS"}
        for (system, base), value in zip(ROLES.items(), values, strict=True):
            told = place | {"base": base, "model": base, "value": value}
            if system == "mlm":
                told |= {"model": f"mbert+mlm-{text}", "adapted": "mlm", "language": text}
                found.append(told | {"model": "mbert+mlm-ja", "language": "ja", "value": 99 - value})
            others = {"metric": "UAS"}, {"preset": "parsing"}, {"target": "ja"}, {"preset": "unseen-pos", "task": "pos"}
            found += [told, *(told | one | {"value": 99 - value} for one in others)]
        found.append(place | {"base": f"mono-{lang}", "model": f"mono-{lang}", "value": 99})
    return from_records(found)


def planted(**changed):
    return spread(rows(SCORES | {name.replace("_", "+"): values for name, values in changed.items()}))


MUTANTS = [
    ("gsw-category", {"gsw": (60, 50, 65)}),
    ("wo-category", {"wo": (55, 60, 66)}),
    ("wo-category", {"wo": (66, 55, 60)}),
    ("ug-category", {"ug": (45, 40, 60)}),
    ("ug-category", {"ug": (40, 60, 35)}),
    ("translit-effect", {"ug": (60, 50, 55), "ug_latn": (90, 40, 45)}),
    ("translit-effect", {"ug_latn": (90, 42, 55)}),
    ("translit-effect", {"ug_latn": (90, 50, 47)}),
    ("related-script", {"fo": (72, 70, 66)}),
    ("related-script", {"pcm": (74, 57, 72)}),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_finding_holds_as_its_sentence_says(name):
    assert verdict(name, planted()) == HOLDS


@pytest.mark.parametrize(("name", "scores"), MUTANTS)
def test_nothing_is_found_where_the_effect_is_turned_round(name, scores):
    assert verdict(name, planted(**scores)) == FAILS


@pytest.mark.parametrize("name", NAMES)
def test_noise_leaves_a_finding_open(name):
    assert verdict(name, spread(rows(SCORES), seeds=2, times=30)) == UNSURE


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_seed_is_missed_by_all_that_is_compared_with_it(name):
    frames = planted()
    own = frames["scores"]
    frames["scores"] = own[~((own["seed"] == 5) & (own["base"] == "mbert"))]
    found = judged(name, frames)
    assert found.verdict == HOLDS and {one.n for one in found.estimates if one.rule} == {4}


@pytest.mark.parametrize("name", NAMES)
def test_scores_near_guessing_tell_no_kind(name):
    frames = planted()
    frames["scores"]["value"] *= 0.15
    assert verdict(name, frames) == UNLEARNT


def test_a_language_is_learnt_that_is_learnt_in_one_script():
    assert verdict("translit-effect", planted(ug=(10, 9, 8))) == HOLDS


def study(read=(), **changed):
    return papers_config() | {PAPER: papers_config()[PAPER] | changed | {"read_languages": read}}


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("gsw-category", {"read": ["gsw"]}, "the model has read Swiss German"),
        ("wo-category", {"profile_languages": ["ug"]}, "Wolof: not among talk.profile_languages"),
        ("ug-category", {"read": ["ug", "wo"]}, "the model has read Uyghur"),
        ("translit-effect", {"read": ["ug"]}, "the model has read Uyghur"),
        ("translit-effect", {"transliterated": {"ug": ["pos"]}}, "talk.transliterated has no parsing of Uyghur"),
        ("related-script", {"read": ["fo", "pcm"]}, "the model has read Faroese and Naija"),
        ("related-script", {"profile_languages": ["wo"]}, "Faroese, Naija: not among talk.profile_languages"),
    ],
)
def test_why_a_finding_is_not_run(name, changed, reason):
    found = judged(name, planted(), study(**changed))
    assert (found.verdict, found.reason) == (NOT_RUN, reason)


def test_a_relative_that_was_read_is_left_out():
    found = judged("related-script", planted(fo=(90, 10, 10)), study(read=["fo"]))
    assert (found.verdict, {one.group for one in found.estimates}) == (HOLDS, {"pcm"})


def test_a_language_without_a_treebank_is_told_by_its_ner():
    frames = planted(fo=(10, 19, 19))
    own = frames["scores"]["preset"].eq("unseen-parsing") & frames["scores"]["metric"].eq("LAS")
    frames["scores"].loc[own, ["preset", "task", "metric"]] = ["unseen-ner", "ner", "F1"]
    trees = {lang: name for lang, name in study()[PAPER]["treebanks"].items() if lang not in ("fo", "pcm")}
    found = judged("related-script", frames, study(treebanks=trees))
    # The floor of NER lies at 20.
    assert found.verdict == UNLEARNT and "ner reaches 19" in found.reason


@pytest.mark.parametrize("name", NAMES)
def test_no_scores_yet(name):
    assert judged(name, from_records()).verdict == NOT_RUN
