"""The demo world: who resembles whom, what it says about itself is true, and wrong settings are told by name."""

import re
import unicodedata
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from world_for_tests import full_world, small_settings

from crossalign.runtime.errors import UserError
from demo_world.corpora import Mining
from demo_world.dice import Bag, dice
from demo_world.reasoning import judge
from demo_world.render import text
from demo_world.sentences import Event
from demo_world.settings import check_settings, load_settings, merge
from demo_world.world import World

SCRIPTS = {
    "CYRILLIC": "ru bg myv mhr bxr",
    "ARABIC": "ar ug sd ckb",
    "DEVANAGARI": "hi",
    "GEORGIAN": "xmf",
    "CJK": "zh",
    "CJK HIRAGANA KATAKANA": "ja",
    "LATIN": "en de sv fr es it pt cs pl sl lt lv fi et tr vi id gsw fo pcm mt qaf wo bm olo",
}


@cache
def lexicon(code: str) -> dict[str, str]:
    """Written stem of every content word."""
    language, concepts = full_world().renderer(code).language, full_world().concepts.all
    return {name: language.spell(stem) for name, stem in language.stems.items() if not concepts[name].function}


def same(first: dict[str, str], second: dict[str, str]) -> float:
    """Share of meanings with the same word."""
    return sum(word == second[name] for name, word in first.items()) / len(first)


def likeness(first: dict[str, str], second: dict[str, str]) -> float:
    """Mean likeness of the words for the same meaning."""
    pairs = ((word, second[name]) for name, word in first.items())
    return sum(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in pairs) / len(first)


KIN = ["en:de>ru", "en:pcm>gsw", "gsw:de>fr", "olo:fi>de", "mt:it>de", "ja:zh>vi"]


@pytest.mark.parametrize("kin", KIN)
def test_languages_resemble_their_relatives(kin: str) -> None:
    language, near, far = map(lexicon, re.split("[:>]", kin))
    assert likeness(language, near) > likeness(language, far) + 0.05


@pytest.mark.parametrize("script", SCRIPTS)
def test_words_are_written_in_their_script(script: str) -> None:
    for code in SCRIPTS[script].split():
        for word in lexicon(code).values():
            for letter in word:
                if letter.isalpha():
                    assert unicodedata.name(letter).startswith(tuple(script.split())), f"{code}: {word}"
    # Japanese mixes its scripts.
    letters = "".join(lexicon(SCRIPTS[script].split()[0]).values())
    assert all(any(unicodedata.name(letter).startswith(name) for letter in letters) for name in script.split())


@pytest.mark.parametrize(
    ("code", "order"), [("en", "SVO"), ("tr", "SOV"), ("ja", "SOV"), ("hi", "SOV"), ("ar", "VSO"), ("zh", "SVO")]
)
def test_word_order(code: str, order: str) -> None:
    world = full_world()
    for number in range(30):
        sentence = world.inference.pair("order", number).sentences[0]
        words = world.renderer(code).render(sentence)
        assert (" " in text(words)) == (code not in ("ja", "zh"))
        place = {word.rel: index for index, word in enumerate(words) if word.rel in ("nsubj", "obj", "root")}
        assert sorted("SOV", key=lambda role: place[{"S": "nsubj", "O": "obj", "V": "root"}[role]]) == list(order)


def test_low_scores_are_noisier() -> None:
    world = full_world()
    mining = Mining(world.grammar("wiki"), world.renderer("en"), world.renderer("ru"), world.settings["bitext"])
    pairs = mining.draw(dice("noise"), 600)
    density = [len(pair.links) / max(map(len, pair.tokens)) for pair in pairs]
    best, worst = density[:150], density[-150:]
    assert sum(best) / 150 > 1.5 * sum(worst) / 150
    assert sum(not pair.links for pair in pairs[:300]) == 0 < sum(not pair.links for pair in pairs[-100:])
    assert any(max(map(len, pair.tokens)) > 64 for pair in pairs)
    assert len({pair.raw for pair in pairs}) < len(pairs)


def test_judge_by_hand() -> None:
    world = full_world()
    frame = world.concepts.by_frame["transitive"][0]
    verb, opposite = frame.members[0].id, frame.members[1].id

    def event(
        subject: str = "animal-3", what: str = verb, target: str = "food-2", no: bool = False, **details: str
    ) -> Event:
        return Event(subject, what, target, frame, no, details)

    def label(premise: Event, hypothesis: Event) -> str:
        return judge(world.concepts, premise, hypothesis)

    plain, detailed = event(), event(manner="mannerly-1", year="1990")
    assert label(detailed, plain) == "entailment"
    assert label(plain, detailed) == "neutral"
    assert label(plain, event("animal-0")) == "entailment"
    assert label(event("animal-0"), plain) == "neutral"
    assert label(plain, event("animal-4")) == "contradiction"
    assert label(plain, event(what=opposite)) == "contradiction"
    assert label(plain, event(target="food-3")) == "contradiction"
    assert label(plain, event(no=True)) == "contradiction"
    assert label(event(no=True), plain) == "contradiction"
    # Not to have done something at all implies not to have done it slowly, but not the reverse.
    assert label(event(no=True), event(no=True, manner="mannerly-1")) == "entailment"
    assert label(event(no=True, manner="mannerly-1"), event(no=True)) == "neutral"
    assert label(plain, event(no=True, manner="mannerly-1")) == "neutral"
    assert label(event(year="1990"), event(year="1991")) == "contradiction"
    assert label(event(year="1990"), event(no=True, year="1991")) == "entailment"
    assert label(event(manner="mannerly-1"), event(manner="mannerly-2")) == "neutral"


def right(guesses: list[str], gold: list[str], where: list[bool] | None = None) -> float:
    """In per cent."""
    chosen = [g == t for g, t, w in zip(guesses, gold, where or [True] * len(gold), strict=True) if w]
    return 100 * sum(chosen) / len(chosen)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"sede": 1}, "unknown key 'sede'; known: seed"),
    ({"treebanks": {"en_ewt": {"train": -5}}}, "treebanks: en_ewt: train: -5 is not right; a whole number, 0 or more"),
    ({"nli": {"negated": 1.2}}, "nli: negated: 1.2 is not right; a number from 0 to 1"),
    ({"bitext": {"languages": ["es", "xx"]}}, "bitext: languages: unknown language 'xx'; known: ar"),
    ({"treebanks": {"kk_ktb": {"domain": "web", "test": 1}}}, "treebanks: kk_ktb: the language 'kk' is not among"),
    ({"qa": {"sentences": [5, 3]}}, r"qa: sentences: \[5, 3\] is not right; \[least, most\]"),
    ({"concepts": {"nouns": {"animal": 2}}}, "nouns: animal is 2; "),
    ({"concepts": {"adjectives": [{"of": ["person"], "size": 3}]}}, "size must be even"),
    ({"seen": []}, "seen: at least one language"),
]
BAD_LANGUAGES: list[tuple[dict[str, Any], str]] = [
    ({"en": {"parent": "klingon"}}, "en has the parent 'klingon', which is neither a group nor a language"),
    ({"en": {"changes": ["pf"]}}, "en: changes: 'pf' is not of the form old>new"),
    ({"en": {"grammar": {"ordr": "SVO"}}}, "en: grammar: unknown key 'ordr'"),
    ({"en": {"grammar": {"order": "OSV"}}}, "en: grammar: order is 'OSV'; one of SOV, SVO, VSO is right"),
    ({"en": {"spelling": "elvish"}}, "unknown spelling 'elvish'; known: arabic"),
    ({"en": {"loans": {"xx": 0.1}}}, "en: loans: 'xx' is not a language"),
    ({"fr": {"loans": {"en": 0.1}}}, "words go round in a circle: .*fr"),
]


@pytest.mark.parametrize(("override", "message"), BAD)
def test_bad_settings(override: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_settings(merge(small_settings(), override))


@pytest.mark.parametrize(("languages", "message"), BAD_LANGUAGES)
def test_bad_languages(languages: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        World(merge(small_settings(), {"languages": languages})).renderer("en")


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no settings at"), ("a: [1,", "not YAML"), ("- 1", "a mapping is expected"), ("seed: 1", "is missing")],
)
def test_unreadable_settings(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "world.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=message):
        load_settings(path)


def test_bags_are_drawn_from_by_weight() -> None:
    bag, rng = Bag(["a", "b", "c"], [1, 0, 3]), dice("bag")
    drawn = [bag.draw(rng) for _ in range(2000)]
    assert drawn.count("b") == 0 and 0.2 < drawn.count("a") / 2000 < 0.3
