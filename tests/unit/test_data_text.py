"""Raw text: splitting, cleaning, holding out."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.report import Report
from crossalign.data.text import (
    Cleaning,
    SeenTexts,
    clean_sentences,
    is_held_out,
    read_articles,
    read_lines,
    split_sentences,
)
from crossalign.runtime.errors import UserError


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said: "Go." Then he left...', ['He said: "Go."', "Then he left..."]),
        ("Version 3.5 is out. See example.com for more.", ["Version 3.5 is out.", "See example.com for more."]),
        ("J. R. R. Tolkien met Dr. Smith. They spoke.", ["J. R. R. Tolkien met Dr. Smith.", "They spoke."]),
        (
            "Am 3. Oktober war es kalt. Im Jahr 1990. Danach.",
            ["Am 3. Oktober war es kalt.", "Im Jahr 1990.", "Danach."],
        ),
        ("He stopped. but went on", ["He stopped. but went on"]),
        ("今日は雨です。明日は？「晴れ。」そう。", ["今日は雨です。", "明日は？", "「晴れ。」", "そう。"]),
        ("यह एक है। वह दो है॥ अंत", ["यह एक है।", "वह दो है॥", "अंत"]),
        ("ما هذا؟ هذا كتاب. نعم", ["ما هذا؟", "هذا كتاب.", "نعم"]),
        ("یہ ایک ہے۔ وہ دو ہے۔", ["یہ ایک ہے۔", "وہ دو ہے۔"]),
        ("Սա մեկն է։ Սա երկուսն է։", ["Սա մեկն է։", "Սա երկուսն է։"]),
        ("", []),
        (" . ", ["."]),
    ],
)
def test_sentences(paragraph, sentences):
    assert split_sentences(paragraph) == sentences


@settings(deadline=None)
@given(st.text("aB1.!?…。।؟ \"'») ", max_size=40))
def test_splitting_loses_nothing(paragraph):
    assert "".join("".join(split_sentences(paragraph)).split()) == "".join(paragraph.split())


def clean(sentences, **rules):
    report = Report()
    kept = list(clean_sentences(sentences, Cleaning(**rules), report))
    assert report.as_dict()["kept"] == len(kept)
    return kept, report


def test_cleaning_rules_and_counts():
    good = ["  A  good\u00a0sentence. ", "आपका स्वागत", "so\u00adft hy\u200ephen", "می\u200cخواهم بروم"]
    bad = ["A good sentence.", "ab", "x" * 21, "12 34 56 78 a"]
    kept, report = clean([*good, *bad], max_characters=20)
    assert kept == ["A good sentence.", "आपका स्वागत", "soft hyphen", "می\u200cخواهم بروم"]
    assert report.dropped == {"duplicate": 1, "too short": 1, "too long": 1, "mostly not letters": 1}


def test_reading_stops_at_the_bound():
    kept, report = clean((f"sentence number {'x' * number}" for number in count(1)), max_sentences=3)
    assert len(kept) == 3
    assert report.facts == {"stopped_at_max_sentences": True}


def test_blank_lines_are_counted():
    assert list(read_lines([(1, "a"), (2, ""), (3, " "), (4, "b")], report := Report())) == ["a", "b"]
    assert report.counts["blank_lines"] == 2


def test_holding_out_depends_on_text_and_seed_alone():
    sentences = [f"sentence {number}" for number in range(2000)]
    first = {sentence for sentence in sentences if is_held_out(sentence, 0.1, 1)}
    assert 150 < len(first) < 250
    assert {sentence for sentence in reversed(sentences) if is_held_out(sentence, 0.1, 1)} == first
    assert {sentence for sentence in sentences if is_held_out(sentence, 0.1, 2)} != first


@settings(deadline=None)
@given(st.lists(st.text(max_size=3), max_size=60))
def test_seen_texts_is_a_set(texts):
    seen, known = SeenTexts(), set()
    for text in texts:
        assert seen.add(text) == (text not in known)
        known.add(text)


def test_seen_texts_grows():
    seen = SeenTexts()
    assert all(seen.add(str(number)) for number in range(10_000))
    assert not any(seen.add(str(number)) for number in range(10_000))


def test_articles_in_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "xx.parquet"
    parquet.write_table(arrow.table({"id": ["1", "2"], "text": ["Title\n\nOne. Two.", None]}), path)
    assert list(read_articles(path, report := Report())) == ["Title", "One.", "Two."]
    assert report.counts["articles"] == 2
    parquet.write_table(arrow.table({"id": ["1"]}), path)
    with pytest.raises(UserError, match="no column 'text'; it has id"):
        list(read_articles(path, Report()))
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(UserError, match="not a readable Parquet file"):
        list(read_articles(path, Report()))
