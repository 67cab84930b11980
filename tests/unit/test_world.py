"""The demo world: who resembles whom, what it says about itself is true, and wrong settings are told by name."""

import gzip
import hashlib
import io
import lzma
import subprocess
import sys
import tarfile
import unicodedata
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tools.measure_world import lexicon, measure_inference, measure_tagging, similarity, uyghur_to_latin
from world_for_tests import SETTINGS, full_world, small_settings

from crossalign.runtime.errors import UserError
from demo_world.corpora import Mining, links
from demo_world.dice import Bag, between, chance, dice, pick, shuffle
from demo_world.formats import gzip_stored, tar_gz_stored, xz_stored, zip_stored
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


@cache
def likeness(first: str, second: str) -> float:
    return similarity(lexicon(full_world(), first), lexicon(full_world(), second))[1]


@pytest.mark.parametrize(
    ("language", "near", "far"),
    [
        ("en", "de", "ru"),
        ("en", "sv", "fi"),
        ("en", "de", "es"),
        ("en", "pcm", "gsw"),
        ("en", "lt", "vi"),
        ("gsw", "de", "fr"),
        ("fo", "sv", "it"),
        ("olo", "fi", "de"),
        ("myv", "ru", "tr"),
        ("mt", "it", "de"),
        ("ja", "zh", "vi"),
    ],
)
def test_languages_resemble_their_relatives(language: str, near: str, far: str) -> None:
    assert likeness(language, near) > likeness(language, far) + 0.05


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
                    assert unicodedata.name(letter).startswith(tuple(script.split())), f"{code}: {word}"
    # Japanese mixes its scripts.
    letters = "".join(lexicon(world, SCRIPTS[script].split()[0]).values())
    assert all(any(unicodedata.name(letter).startswith(name) for letter in letters) for name in script.split())


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


def test_inference_needs_both_sentences() -> None:
    found = measure_inference(full_world(), count=1500, test=600)
    assert found["hypothesis only"] < 42
    assert found["both"] > 65


def test_tagging_is_learnable_but_not_by_words_alone() -> None:
    found = measure_tagging(full_world(), "en_ewt")
    assert found["context"] > 95
    assert found["unigram"] < 94
    assert found["context, ambiguous"] > found["unigram, ambiguous"] + 15


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
    ({"pud": {"sentense": 3}}, "pud: unknown key 'sentense'; known: domain, languages, sentences"),
    ({"treebanks": {"en_ewt": {"train": -5}}}, "treebanks: en_ewt: train: -5 is not right; a whole number, 0 or more"),
    ({"nli": {"train": True}}, "nli: train: True is not right"),
    ({"nli": {"negated": 1.2}}, "nli: negated: 1.2 is not right; a number from 0 to 1"),
    ({"bitext": {"languages": ["es", "xx"]}}, "bitext: languages: unknown language 'xx'; known: ar"),
    ({"bitext": {"languages": "es"}}, "bitext: languages: 'es' is not right; a list of languages"),
    ({"pud": {"domain": "poetry"}}, "pud: unknown domain 'poetry'; known: web"),
    ({"treebanks": {"kk_ktb": {"domain": "web", "test": 1}}}, "treebanks: kk_ktb: the language 'kk' is not among"),
    ({"qa": {"sentences": [5, 3]}}, r"qa: sentences: \[5, 3\] is not right; \[least, most\]"),
    ({"domains": {"web": {"names": "many"}}}, "domains: web: names: 'many' is not right"),
    ({"treebanks": {"en_ewt": {"domain": "poem"}}}, "treebanks: en_ewt: unknown domain 'poem'"),
    ({"concepts": {"nouns": {"animal": 2}}}, "nouns: animal is 2; a class needs its general term and two kinds"),
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


MEMBERS = [("a/b.txt", b"one\n"), ("c.txt", b"")]


@pytest.mark.parametrize("size", [0, 65535, 65536, 65537, 200000])
def test_round_trip_at_block_borders(size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    assert gzip.decompress(gzip_stored(data)) == data
    assert lzma.decompress(xz_stored(data)) == data


def test_archives() -> None:
    with zipfile.ZipFile(io.BytesIO(zip_stored(MEMBERS))) as archive:
        assert [(name, archive.read(name)) for name in archive.namelist()] == MEMBERS
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with tarfile.open(fileobj=io.BytesIO(tar_gz_stored(MEMBERS))) as archive:
        assert [(member.name, archive.extractfile(member).read()) for member in archive] == MEMBERS
        assert all(m.mtime == 0 and m.uid == m.gid == 0 and not m.uname for m in archive.getmembers())


def test_bytes_are_fixed_for_all_platforms() -> None:
    def digest(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()[:16]

    assert digest(gzip_stored(b"world" * 20000)) == "109c0ed13988c78b"
    assert digest(xz_stored(b"world" * 20000)) == "50d8f3fa646f65ac"
    assert digest(tar_gz_stored(MEMBERS)) == "40b9539fd45f9fe0"


def test_dice_are_fixed_for_all_platforms() -> None:
    rng = dice(1, "a")
    assert [between(rng, 1, 6) for _ in range(8)] == [6, 6, 6, 1, 4, 5, 1, 6]
    assert round(chance("x", 2), 6) == 0.445473
    assert shuffle(dice("s"), list("abcde")) == ["d", "c", "b", "e", "a"]
    assert pick(dice("p"), "abc") == "c"
    bag, rng = Bag(["a", "b", "c"], [1, 0, 3]), dice("bag")
    drawn = [bag.draw(rng) for _ in range(2000)]
    assert drawn.count("b") == 0 and 0.2 < drawn.count("a") / 2000 < 0.3
