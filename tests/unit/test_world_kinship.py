"""Families, scripts and order: who resembles whom."""

import unicodedata
from functools import cache
from pathlib import Path

import pytest
from tools.measure_world import lexicon, similarity, uyghur_to_latin
from world_for_tests import full_world

from crossalign.world.dice import dice
from crossalign.world.lexicon import Lexicons
from crossalign.world.render import text
from crossalign.world.spelling import SPELLERS, alphabet, speller

SCRIPTS = {
    "CYRILLIC": "ru bg myv mhr bxr",
    "ARABIC": "ar ug sd ckb",
    "DEVANAGARI": "hi",
    "GEORGIAN": "xmf",
    "CJK": "zh",
    "LATIN": "en de sv fr es it pt cs pl sl lt lv fi et tr vi id gsw fo pcm mt qaf wo bm olo",
}


@cache
def likeness(first: str, second: str) -> float:
    return similarity(lexicon(full_world(), first), lexicon(full_world(), second))[1]


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("de", "ru"),
        ("de", "tr"),
        ("sv", "fi"),
        ("fr", "fi"),
        ("es", "tr"),
        ("cs", "tr"),
        ("de", "es"),
        ("pcm", "gsw"),
        ("lt", "vi"),
    ],
)
def test_english_is_closer_to_its_relatives(near: str, far: str) -> None:
    assert likeness("en", near) > likeness("en", far) + 0.05


@pytest.mark.parametrize(
    ("language", "relative", "stranger"),
    [
        ("gsw", "de", "fr"),
        ("fo", "sv", "it"),
        ("olo", "fi", "de"),
        ("myv", "ru", "tr"),
        ("mt", "it", "de"),
        ("pt", "es", "pl"),
        ("ja", "zh", "vi"),
    ],
)
def test_unseen_languages_lean_on_their_relatives(language: str, relative: str, stranger: str) -> None:
    assert likeness(language, relative) > likeness(language, stranger) + 0.1


def test_every_language_shares_something_with_english_in_its_own_script() -> None:
    for code in SCRIPTS["LATIN"].split():
        assert code == "en" or similarity(lexicon(full_world(), "en"), lexicon(full_world(), code))[0] > 0.02, code


def test_uyghur_in_latin_letters_resembles_turkish() -> None:
    world = full_world()
    turkish, uyghur = lexicon(world, "tr"), lexicon(world, "ug")
    assert similarity(turkish, uyghur)[1] == 0
    assert similarity(turkish, uyghur, uyghur_to_latin)[0] > 0.4
    assert (
        similarity(turkish, uyghur, uyghur_to_latin)[1]
        > similarity(lexicon(world, "fi"), uyghur, uyghur_to_latin)[1] + 0.2
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_words_are_written_in_their_script(script: str) -> None:
    world = full_world()
    for code in SCRIPTS[script].split():
        for word in lexicon(world, code).values():
            for letter in word:
                if letter.isalpha():
                    assert unicodedata.name(letter).startswith(script), f"{code}: {word}"


def test_japanese_mixes_scripts() -> None:
    letters = "".join(lexicon(full_world(), "ja").values())
    names = {unicodedata.name(letter).split()[0] for letter in letters}
    assert names == {"CJK", "HIRAGANA", "KATAKANA"}


@pytest.mark.parametrize(
    ("code", "order"), [("en", "SVO"), ("tr", "SOV"), ("ja", "SOV"), ("hi", "SOV"), ("ar", "VSO"), ("zh", "SVO")]
)
def test_word_order(code: str, order: str) -> None:
    world = full_world()
    for number in range(30):
        sentence = world.inference.pair("order", number).sentences[0]
        words = world.renderer(code).render(sentence)
        place = {word.rel: index for index, word in enumerate(words) if word.rel in ("nsubj", "obj", "root")}
        assert sorted("SOV", key=lambda role: place[{"S": "nsubj", "O": "obj", "V": "root"}[role]]) == list(order)


def test_languages_without_spaces() -> None:
    world = full_world()
    rng = dice("spaces")
    for _ in range(20):
        sentence = world.grammar("news").sentence(rng)
        assert " " not in text(world.renderer("zh").render(sentence))
        assert " " not in text(world.renderer("ja").render(sentence))


def test_no_two_function_words_are_alike_by_accident() -> None:
    world = full_world()
    for code in world.settings["languages"]:
        language = world.renderer(code).language
        owners: dict[str, str] = {}
        for concept in world.concepts.all.values():
            if concept.function:
                owner = owners.setdefault(language.spell(language.stems[concept.id]), concept.root_of or concept.id)
                assert owner == (concept.root_of or concept.id), f"{code}: {concept.id} and {owner}"


def test_spelling_examples() -> None:
    assert speller("uyghur")("ata") == "ئاتا"
    assert speller("turkish")("čoǰuk") == "çocuk"
    assert speller("russian")("yabloko") == "яблоко"
    assert speller("german")("šule") == "schule"
    assert speller("devanagari")("kitab") == "किताब"
    assert speller("kana")("~toma") == "トマ"
    assert speller("kana")("sakura") == "さくら"
    assert speller("han")("marta") == "马尔塔"
    assert speller("vietnamese")("fo3") == "phò"
    assert speller("arabic")("kitāb") == "كتاب"
    assert speller("arabic")("~banka") == "بانكا"
    assert all(alphabet(name) for name in SPELLERS if name not in ("han", "kana"))


def test_lexicon_does_not_depend_on_which_language_is_asked_first() -> None:
    world = full_world()
    fresh = Lexicons(world.settings, world.concepts)
    for code in ("ug", "ja", "en"):
        assert fresh.words(code) == world.renderer(code).language.stems


def test_the_documentation_lists_every_language(root: Path) -> None:
    rows = {}
    for line in (root / "docs/understand/demo-world.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8:
            rows[cells[0]] = cells
    world = full_world()
    for code in world.settings["languages"]:
        language = world.renderer(code).language
        assert rows[code][1] == language.script
        assert rows[code][2].startswith(language.grammar["order"])
        assert " < ".join(world.lexicons.branches[code].lineage()[1:]) in (rows[code][5], "")
