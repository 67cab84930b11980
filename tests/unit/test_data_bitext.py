"""The pool of sentence pairs against a plain sort, and the rules on links."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.alignment.bitext import filter_links
from crossalign.data.bitext import Pool, read_scored
from crossalign.data.report import Report
from crossalign.data.text import detokeniser, tidy, tokeniser
from crossalign.runtime.errors import UserError


def pool_of(rows, size=100, max_words=4):
    report = Report()
    pool = Pool(size, max_words, str.split, str.split, report)
    for number, (score, english, other) in enumerate(rows, 1):
        pool.add(number, score, english, other)
    kept = list(pool.rows())
    report.kept = len(kept)
    return kept, report.as_dict()


def test_keeps_the_best_in_order_of_score_then_of_the_file():
    rows = [("1.1", "a", "x"), ("1.3", "b", "y"), ("1.1", "c", "z"), ("1.2", "d", "w"), ("1.1", "e", "v")]
    kept, report = pool_of(rows, size=3)
    assert kept == [("1.3", "b", "y"), ("1.2", "d", "w"), ("1.1", "a", "x")]
    assert report == {"read": 5, "kept": 3, "dropped": {"score below the pool": 2}, "repaired": {}}


def test_drops_empty_long_and_double_pairs():
    rows = [("2", "", "x"), ("2", "a", " \u00a0 "), ("2", "a b c d e", "x"), ("2", "a", "v w x y z")]
    rows += [("1", "a b", "x"), ("3", "a  b ", "x"), ("2", "a b", "x")]
    kept, report = pool_of(rows)
    assert kept == [("3", "a b", "x")]
    assert report["dropped"] == {"duplicate": 2, "empty side": 2, "too long": 2}


SCORES = st.sampled_from(["1.0", "1.1", "1.2", "1.3"])
ROWS = st.lists(st.tuples(SCORES, st.sampled_from("abcdefgh"), st.sampled_from("xy")), max_size=40)


@settings(deadline=None)
@given(ROWS, st.integers(1, 8))
def test_pool_equals_a_plain_sort(rows, size):
    best = {}
    for number, (score, *pair) in enumerate(rows):
        rank = (-float(score), number)
        if tuple(pair) not in best or rank < best[tuple(pair)]:
            best[tuple(pair)] = rank
    expected = sorted(best.items(), key=lambda item: item[1])[:size]
    kept, report = pool_of(rows, size)
    assert [tuple(row[1:]) for row in kept] == [pair for pair, _ in expected]
    assert [-float(row[0]) for row in kept] == [rank[0] for _, rank in expected]
    assert report["read"] == len(rows)


def test_length_counts_words_after_tokenisation():
    report = Report()
    pool = Pool(9, 3, tokeniser("en"), tokeniser("es"), report)
    pool.add(1, "1.1", "Yes, sir.", "Sí")  # four words
    pool.add(2, "1.1", "Yes, sir", "Sí")
    assert list(pool.rows()) == [("1.1", "Yes , sir", "Sí")]
    assert report.dropped == {"too long": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.1\ta\tb\n1.2\ta\n", "w, line 2: 2 fields instead of score, English, other: '1.2\\ta'"),
        ("x\ta\tb\n", "w, line 1: score 'x' is not a number"),
        ("nan\ta\tb\n", "w, line 1: score 'nan' is not a number"),
    ],
)
def test_malformed_rows_are_named(text, message):
    with pytest.raises(UserError) as error:
        list(read_scored(io.StringIO(text, newline="\n"), "w"))
    assert message in str(error.value)


def test_links_one_to_one_and_not_identical():
    source, target = ["the", "red", "house", "2020"], ["la", "casa", "roja", "2020"]
    assert filter_links([(0, 0), (1, 2), (2, 1), (3, 3)], source, target) == [(0, 0), (1, 2), (2, 1)]
    assert filter_links([(0, 0), (0, 1), (2, 1), (1, 2)], source, target) == [(1, 2)]
    assert filter_links([(1, 2), (1, 2)], source, target) == [(1, 2)]
    assert filter_links([], [], []) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))), st.text("ab", min_size=4, max_size=4))
def test_links_left_are_a_matching_of_the_given_ones(links, target):
    source = "abab"
    kept = filter_links(links, source, target)
    assert set(kept) <= set(links)
    assert len({i for i, _ in kept}) == len({j for _, j in kept}) == len(kept)
    for i, j in set(links) - set(kept):
        crowded = any((k == i) != (m == j) for k, m in links)
        assert crowded or source[i] == target[j]


def test_moses_tokens():
    assert " ".join(tokeniser("en")("Mr. O'Neil's 3.5% & <x>\u00a0ok…")) == "Mr. O 'Neil 's 3.5 % & < x > ok …"
    assert tokeniser("es")("¿Qué? ¡Sí!") == ["¿", "Qué", "?", "¡", "Sí", "!"]
    assert tokeniser("hi")("यह घर है।") == ["यह", "घर", "है", "।"]
    assert detokeniser("fr")("L' eau , c' est bon !") == "L'eau, c'est bon !"
    assert detokeniser("en")("It 's fine , isn 't it ?") == "It's fine, isn't it?"


@settings(deadline=None)
@given(
    st.text(max_size=30) | st.text("ab.&<>'\"-,… 1$%|[]@\x07", max_size=30), st.sampled_from(["en", "es", "ru", "vi"])
)
def test_tokenising_only_adds_spaces(text, lang):
    words = tokeniser(lang)(text)
    assert " ".join(words).split() == words
    assert "".join(words) == tidy(text).replace(" ", "")
    assert len(words) >= len(tidy(text).split())
