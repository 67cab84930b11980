"""Treebanks: what the reader skips, mends and refuses; writing and reading are inverse; folds."""

import io
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.conllu import (
    NO_HEAD,
    Sentence,
    assign_folds,
    find_cycle,
    part_of,
    read_sentences,
    write_sentences,
)
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError


def word(index, form="a", tag="NOUN", head="0", deprel="root"):
    return f"{index}\t{form}\t_\t{tag}\t_\t_\t{head}\t{deprel}\t_\t_"


def read(text, **options):
    report = Report()
    sentences = list(read_sentences(io.StringIO(text, newline="\n"), "x.conllu", report, **options))
    return sentences, report


GOOD = "\n".join(
    [
        "# newdoc id = d",
        "# sent_id = s1",
        "# text = Vámonos ya",
        "1-2\tVámonos" + "\t_" * 8,
        word(1, "Vamos", "VERB"),
        word(2, "nos", "PRON", "1", "expl:pv"),
        "2.1\tx" + "\t_" * 8,
        word(3, "ya", "ADV", "1", "advmod"),
    ]
)


def test_skips_ranges_empty_nodes_and_subtypes():
    (sentence,), report = read(GOOD + "\n\n")
    assert sentence == Sentence(
        "s1", "Vámonos ya", ["Vamos", "nos", "ya"], ["VERB", "PRON", "ADV"], [0, 1, 1], ["root", "expl", "advmod"]
    )
    report.kept = 1
    counts = {"comments": 1, "empty_nodes": 1, "multiword_tokens": 1, "subtypes_cut": 1, "words": 3}
    assert report.as_dict() == {"read": 1, "kept": 1, "dropped": {}, "repaired": {}, **counts}


@pytest.mark.parametrize(
    "text", [GOOD, GOOD + "\n", GOOD + "\n\n\n\n", "\ufeff" + GOOD.replace("\n", "\r\n") + "\r\n\r\n"]
)
def test_ends_of_lines_and_files_may_vary(text):
    assert read(text)[0] == read(GOOD + "\n\n")[0]


def test_identifiers_are_made_and_made_unique():
    text = "\n\n".join(["# sent_id s\n" + word(1), "# sent_id = s\n" + word(1), word(1)])
    sentences, report = read(text)
    assert [sentence.sent_id for sentence in sentences] == ["s", "s#2", "3"]
    assert report.repaired == {"repeated identifier made unique": 1, "sentence without identifier numbered": 1}


def test_old_conjunction_tag_is_renamed_and_odd_words_are_counted():
    lines = [word(1, "100\u00a0000", tag="CONJ"), word(2, "thái độ", tag="_", head="1"), word(3, "b", head="1")]
    (sentence,), report = read("\n".join(lines))
    assert sentence.forms == ["100\u00a0000", "thái độ", "b"]
    assert report.counts["forms_with_spaces"] == 2
    assert sentence.upos == ["CCONJ", "_", "NOUN"]
    assert report.repaired["tag CONJ renamed CCONJ"] == 1
    assert report.counts["words_without_tag"] == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\ta\tb"], "line 1: 3 columns instead of 10, separated by tabs: '1\\ta\\tb'"),
        ([word(1), "   "], "line 2: 1 columns instead of 10"),
        ([word(1), word(3, head="1")], "line 2: word number '3' where 2 should stand"),
        ([word("a")], "line 1: word number 'a' where 1 should stand"),
        ([word("1-b")], "line 1: word number '1-b'"),
        ([word(1, form="")], "line 1: a word without a form"),
        ([word(1, form="\u00a0")], "line 1: a word without a form"),
        ([word(1, tag="N")], "line 1: 'N' is none of the 17 universal tags"),
        ([word(1, head="x")], "line 1: head 'x' is not a number"),
        ([word(1, head="_")], "line 1: head '_' is not a number (for a file without trees ask for tags only)"),
        ([word(1), word(2, head="3")], "line 2: head 3 in a sentence of 2 words"),
        ([word(1), word(2, head="-2")], "line 2: head -2 in a sentence of 2 words"),
        ([word(1, deprel="_")], "line 1: a head without a relation"),
        ([word(1), word(2), word(3)], "line 2: a second root"),
        ([word(1), word(2, head="2")], "line 2: word 2 is its own ancestor"),
        ([word(1, head="2"), word(2, head="1")], "word 1 is its own ancestor"),
        (["# text = a"], "line 1: a sentence without words"),
    ],
)
def test_malformed_lines_are_named(lines, message):
    with pytest.raises(UserError) as error:
        read("\n".join(lines))
    assert str(error.value).startswith("x.conllu, ")
    assert message in str(error.value)


def test_line_numbers_count_the_whole_file():
    with pytest.raises(UserError, match="x.conllu, line 11: head 9"):
        read(GOOD + "\n\n# sent_id = s2\n" + word(1, head="9"))


def test_several_roots_only_on_request():
    lines = "\n".join([word(1), word(2)])
    sentences, report = read(lines, several_roots=True)
    assert sentences[0].heads == [0, 0]
    assert report.counts["sentences_with_several_roots"] == 1
    with pytest.raises(UserError, match="its own ancestor"):
        read("\n".join([word(1), word(2), word(3, head="3")]), several_roots=True)


def test_files_with_tags_only():
    text = "\n".join([word(1, head="_", deprel="_"), word(2, head="_", deprel="_")])
    (sentence,), report = read(text, tags_only=True)
    assert sentence.heads == [NO_HEAD, NO_HEAD]
    assert report.counts["sentences_without_tree"] == 1
    with pytest.raises(UserError, match="line 2: a word without a head in a sentence that has heads"):
        read("\n".join([word(1), word(2, head="_", deprel="_")]), tags_only=True)


def test_text_that_is_not_utf8():
    stream = io.TextIOWrapper(io.BytesIO(word(1).encode() + b"\n\n\xff\n"), encoding="utf-8", newline="\n")
    with pytest.raises(UserError, match="x.conllu: not UTF-8"):
        list(read_sentences(stream, "x.conllu"))


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=8))
def test_find_cycle_agrees_with_following_every_path(heads):
    heads = [min(head, len(heads)) for head in heads]

    def reaches_itself(start):
        node, steps = heads[start - 1], 0
        while node and node != start and steps <= len(heads):
            node, steps = heads[node - 1], steps + 1
        return node == start

    looping = {start for start in range(1, len(heads) + 1) if reaches_itself(start)}
    found = find_cycle(heads)
    assert (found in looping) if looping else found == 0


FORMS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=6)
TAGS = st.sampled_from(["NOUN", "VERB", "X", "_"])


@st.composite
def trees(draw):
    size = draw(st.integers(1, 6))
    order = draw(st.permutations(range(1, size + 1)))
    heads = [0] * size
    for place in range(1, size):
        heads[order[place] - 1] = order[draw(st.integers(0, place - 1))]
    return Sentence(
        draw(FORMS),
        draw(st.none() | FORMS),
        draw(st.lists(FORMS, min_size=size, max_size=size)),
        draw(st.lists(TAGS, min_size=size, max_size=size)),
        heads,
        draw(st.lists(st.sampled_from(["root", "obj", "case"]), min_size=size, max_size=size)),
    )


@settings(deadline=None)
@given(st.lists(trees(), max_size=4, unique_by=lambda sentence: sentence.sent_id))
def test_writing_then_reading_gives_the_same(sentences):
    stream = io.StringIO(newline="\n")
    assert write_sentences(sentences, stream) == len(sentences)
    again, report = read(stream.getvalue())
    assert again == sentences
    assert report.read == len(sentences)


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(3, 7), st.integers(0, 99))
def test_equal_items_share_a_fold_and_folds_are_even(keys, folds, seed):
    assigned = assign_folds(keys, folds, seed)
    assert len({(key, fold) for key, fold in zip(keys, assigned, strict=True)}) == len(set(keys))
    sizes = Counter(dict(zip(keys, assigned, strict=True)).values())
    assert max(sizes.values()) - min(sizes[fold] for fold in range(folds)) <= 1


def test_rotations_test_each_fold_once_and_hold_out_the_next():
    rotations = [[part_of(fold, rotation, 5) for fold in range(5)] for rotation in range(1, 6)]
    assert rotations[0] == ["test", "dev", "train", "train", "train"]
    assert rotations[4] == ["dev", "train", "train", "train", "test"]
    for fold in range(5):
        assert Counter(rotation[fold] for rotation in rotations) == {"test": 1, "dev": 1, "train": 3}


def test_the_draw_is_fixed_for_ever():
    assert assign_folds(range(10), 5, 1) == [2, 4, 0, 1, 1, 4, 3, 0, 2, 3]
    assert assign_folds(range(10), 5, 2) != assign_folds(range(10), 5, 1)
