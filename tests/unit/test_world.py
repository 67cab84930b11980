"""The demo world: who resembles whom, what it says about itself is true, and wrong settings are told by name."""

import re
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from world_for_tests import SETTINGS, full_world, small_settings

from crossalign.runtime.errors import UserError
from demo_world.corpora import Mining, links
from demo_world.dice import Bag, dice
from demo_world.files import treebank
from demo_world.lexicon import Lexicons
from demo_world.reasoning import LABELS, judge, locate
from demo_world.render import text, tokens
from demo_world.sentences import Event
from demo_world.settings import check_settings, load_settings, merge
from demo_world.spelling import SPELLERS, alphabet, speller
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


UYGHUR_LATIN = dict(zip("بپتجچخدرزژسشفقكگڭلمنھۋياەىوۇۆۈ", "bptcçhdrzjsşfkkgnlmnhvyaeiouöü", strict=True)) | {"ئ": ""}


@cache
def lexicon(code: str, latin: bool = False) -> dict[str, str]:
    """Written stem of every content word; of Uyghur letter by letter with Turkish conventions, if `latin`."""
    language, concepts = full_world().renderer(code).language, full_world().concepts.all
    words = {name: language.spell(stem) for name, stem in language.stems.items() if not concepts[name].function}
    return {name: "".join(UYGHUR_LATIN[sign] for sign in word) for name, word in words.items()} if latin else words


def same(first: dict[str, str], second: dict[str, str]) -> float:
    """Share of meanings with the same word."""
    return sum(word == second[name] for name, word in first.items()) / len(first)


def likeness(first: dict[str, str], second: dict[str, str]) -> float:
    """Mean likeness of the words for the same meaning."""
    pairs = ((word, second[name]) for name, word in first.items())
    return sum(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in pairs) / len(first)


KIN = ["en:de>ru", "en:sv>fi", "en:de>es", "en:pcm>gsw", "en:lt>vi", "gsw:de>fr", "fo:sv>it", "olo:fi>de"]


@pytest.mark.parametrize("kin", [*KIN, "myv:ru>tr", "mt:it>de", "ja:zh>vi"])
def test_languages_resemble_their_relatives(kin: str) -> None:
    language, near, far = map(lexicon, re.split("[:>]", kin))
    assert likeness(language, near) > likeness(language, far) + 0.05


def test_every_language_shares_something_with_english_in_its_own_script() -> None:
    for code in SCRIPTS["LATIN"].split():
        assert code == "en" or same(lexicon("en"), lexicon(code)) > 0.02, code


def test_uyghur_in_latin_letters_resembles_turkish() -> None:
    turkish, uyghur = lexicon("tr"), lexicon("ug", latin=True)
    assert likeness(turkish, lexicon("ug")) == 0
    assert same(turkish, uyghur) > 0.4
    assert likeness(turkish, uyghur) > likeness(lexicon("fi"), uyghur) + 0.2


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
    examples = {
        "uyghur ata": "ئاتا", "turkish čoǰuk": "çocuk", "russian yabloko": "яблоко", "german šule": "schule",
        "devanagari kitab": "किताब", "kana ~toma": "トマ", "kana sakura": "さくら", "han marta": "马尔塔",
        "vietnamese fo3": "phò", "arabic kitāb": "كتاب", "arabic ~banka": "بانكا",
    }  # fmt: skip
    for asked, written in examples.items():
        name, sounds = asked.split()
        assert speller(name)(sounds) == written
    assert all(alphabet(name) for name in SPELLERS if name not in ("han", "kana"))


def test_lexicon_does_not_depend_on_which_language_is_asked_first() -> None:
    world = full_world()
    fresh = Lexicons(world.settings, world.concepts)
    for code in ("ug", "ja", "en"):
        assert fresh.words(code) == world.renderer(code).language.stems


def test_the_documentation_lists_every_language_in_its_family(root: Path) -> None:
    rows = {}
    for line in (root / "docs/understand/demo-world.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            family, seen, unseen = (cell.strip() for cell in line.strip("|").split("|"))
            rows |= {("seen", code): family for code in seen.split(", ")}
            rows |= {("unseen", code): family for code in unseen.split(", ")}
    world = full_world()
    for kind in ("seen", "unseen"):
        for code in world.settings[kind]:
            lineage = [name.capitalize() for name in world.lexicons.branches[code].lineage()[1:]]
            assert rows[kind, code].capitalize() in (lineage or ["None"]), code


@pytest.mark.parametrize("code", ["es", "vi", "hi", "ja", "ar"])
def test_linked_words_render_the_same_meaning(code: str) -> None:
    world = full_world()
    english, other, grammar = world.renderer("en"), world.renderer(code), world.grammar("wiki")
    rng = dice("links")
    names = total = 0
    for _ in range(150):
        sentence = grammar.sentence(rng)
        left, right = english.render(sentence), other.render(sentence)
        written = (tokens(left), tokens(right))
        found = links(left, right)
        assert len(found) >= len(written[1]) // 3
        for a, b in found:
            ours = {(word.key, word.concept) for word in written[0][a].words}
            theirs = {(word.key, word.concept) for word in written[1][b].words}
            assert {key for key, _ in ours} & {key for key, _ in theirs}
            # Content words carry the same concept, names the same name.
            for key in {key for key, _ in ours} & {key for key, _ in theirs}:
                if key[1] == "":
                    assert {c for k, c in ours if k == key} == {c for k, c in theirs if k == key}
            form, same = written[0][a].form, written[1][b].form
            if written[0][a].words[0].pos == "PROPN" and code in ("es", "vi"):
                total += 1
                names += form[:4] == same[:4]
    # Names look alike in Latin scripts (translated parts such as `university` do not).
    assert code not in ("es", "vi") or names / total > 0.7


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


def test_labels_follow_from_the_events() -> None:
    world = full_world()
    seen = dict.fromkeys(LABELS, 0)
    for number in range(600):
        pair = world.inference.pair("check", number)
        assert judge(world.concepts, pair.premise, pair.hypothesis) == pair.label
        assert text(world.renderer("en").render(pair.sentences[0])) != text(
            world.renderer("en").render(pair.sentences[1])
        )
        seen[pair.label] += 1
    assert min(seen.values()) > 150


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


def learnt(train: list[tuple[set[str], str]], test: list[tuple[set[str], str]]) -> list[str]:
    """What a linear classifier of sets of features says."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = make_pipeline(CountVectorizer(analyzer=sorted), LinearSVC(C=0.1, random_state=0))
    model.fit([features for features, _ in train], [label for _, label in train])
    return list(model.predict([features for features, _ in test]))


def right(guesses: list[str], gold: list[str], where: list[bool] | None = None) -> float:
    """In per cent."""
    chosen = [g == t for g, t, w in zip(guesses, gold, where or [True] * len(gold), strict=True) if w]
    return 100 * sum(chosen) / len(chosen)


def test_inference_needs_both_sentences() -> None:
    english, hypotheses, both = full_world().renderer("en"), [], []
    for number in range(2100):
        pair = full_world().inference.pair("measure", number)
        premise, hypothesis = (set(text(english.render(s)).lower().rstrip(".").split()) for s in pair.sentences)
        hypotheses.append((hypothesis, pair.label))
        lost, new = premise - hypothesis, hypothesis - premise
        sides = {f"lost={w}" for w in lost} | {f"new={w}" for w in new} | {f"counts={len(lost)},{len(new)}"}
        both.append((sides | {f"pair={a},{b}" for a in lost for b in new}, pair.label))
    gold = [label for _, label in both[1500:]]
    assert right(learnt(hypotheses[:1500], hypotheses[1500:]), gold) < 42
    assert right(learnt(both[:1500], both[1500:]), gold) > 65


def tagged(split: str) -> list[tuple[set[str], str]]:
    """Each word of English-EWT: itself, its ends and its neighbours, and its tag."""
    found = []
    for block in treebank(full_world(), "en_ewt", split).strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        words = [(row[1].lower(), row[3]) for row in rows if "-" not in row[0]]
        forms = ["<s>", *(form for form, _ in words), "</s>"]
        for i, (form, tag) in enumerate(words, 1):
            beside = {f"-1={forms[i - 1]}", f"+1={forms[i + 1]}", f"-1end={forms[i - 1][-2:]}"}
            found.append((beside | {f"w={form}", *(f"end{n}={form[-n:]}" for n in (1, 2, 3))}, tag))
    return found


def test_tagging_is_learnable_but_not_by_words_alone() -> None:
    train, dev = tagged("train"), tagged("dev")
    word = [next(feature for feature in features if feature.startswith("w=")) for features, _ in (*train, *dev)]
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for form, (_, tag) in zip(word, train, strict=False):
        tags[form][tag] += 1
    forms, gold = word[len(train) :], [tag for _, tag in dev]
    alone = [max(sorted(tags[form]), key=tags[form].get) if form in tags else "NOUN" for form in forms]
    context = learnt(train, dev)
    # Ambiguous: a second tag on at least one occurrence in ten.
    hard = [len(tags[f]) > 1 and tags[f].most_common(2)[1][1] * 10 >= tags[f].total() for f in forms]
    assert right(context, gold) > 95 > 94 > right(alone, gold)
    assert right(context, gold, hard) > right(alone, gold, hard) + 15


@pytest.mark.parametrize("code", ["en", "vi", "hi", "ar", "zh"])
def test_answers_are_the_asked_part(code: str) -> None:
    world = full_world()
    renderer = world.renderer(code)
    for number in range(60):
        paragraph = world.reading.paragraph("check", number)
        verbs = [event.verb for event in paragraph.events]
        assert len(set(verbs)) == len(verbs)
        for question in paragraph.questions:
            words = renderer.render(paragraph.sentences[question.about])
            start, end = locate(words, paragraph.sentences[question.about], question.ask)
            answer = text(words)[start:end]
            event = paragraph.events[question.about]
            if question.ask == "year":
                # Arabic writes the preposition and a following word together, but not a number.
                assert answer == event.details["year"]
            elif question.ask == "object":
                stem = renderer.language.noun(
                    event.object, "count" in event.details, "count" not in event.details, "acc"
                )
                assert stem in answer
            asked = text(renderer.render(question.sentence))
            assert asked.rstrip("?؟？").rstrip() and asked[-1] in "?؟？"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"sede": 1}, "unknown key 'sede'; known: seed"),
    ({"treebanks": {"en_ewt": {"train": -5}}}, "treebanks: en_ewt: train: -5 is not right; a whole number, 0 or more"),
    ({"nli": {"negated": 1.2}}, "nli: negated: 1.2 is not right; a number from 0 to 1"),
    ({"bitext": {"languages": ["es", "xx"]}}, "bitext: languages: unknown language 'xx'; known: ar"),
    ({"bitext": {"languages": "es"}}, "bitext: languages: 'es' is not right; a list of languages"),
    ({"pud": {"domain": "poetry"}}, "pud: unknown domain 'poetry'; known: web"),
    ({"treebanks": {"kk_ktb": {"domain": "web", "test": 1}}}, "treebanks: kk_ktb: the language 'kk' is not among"),
    ({"qa": {"sentences": [5, 3]}}, r"qa: sentences: \[5, 3\] is not right; \[least, most\]"),
    ({"concepts": {"nouns": {"animal": 2}}}, "nouns: animal is 2; "),
    ({"concepts": {"adjectives": [{"of": ["person"], "size": 3}]}}, "size must be even"),
    ({"concepts": {"adjectives": [{"of": ["ghost"], "size": 2}]}}, "'ghost' is no noun class"),
    ({"seen": []}, "seen: at least one language"),
    ({"text": 3}, "text: a mapping is expected, not 3"),
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


def test_program(root: Path, tmp_path: Path) -> None:
    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(root / "scripts/make_world.py"), "--out", str(tmp_path / "out"), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good = run("--settings", str(SETTINGS), "--only", "ud/en_lexnorm", "ud/gsw", "--jobs", "1")
    assert good.returncode == 0, good.stderr
    assert len((tmp_path / "out/SHA256SUMS").read_text().splitlines()) == 2


def test_bags_are_drawn_from_by_weight() -> None:
    bag, rng = Bag(["a", "b", "c"], [1, 0, 3]), dice("bag")
    drawn = [bag.draw(rng) for _ in range(2000)]
    assert drawn.count("b") == 0 and 0.2 < drawn.count("a") / 2000 < 0.3
