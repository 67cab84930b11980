"""Named-entity reader: prefixes, tag schemes, empty tokens, and its refusals."""

import io
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.lines import read_rows, write_rows
from crossalign.data.ner import FORMATS, is_invisible, read_ner, tag_set, to_iob2
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError


def read(text, form="wikiann", lang="en"):
    report = Report()
    rows = list(read_ner(io.StringIO(text, newline="\n"), "f", FORMATS[form], lang, "dev", report))
    assert report.as_dict()["kept"] == len(rows)
    return rows, report


def test_wikiann_prefix_and_colons_in_tokens():
    rows, report = read("en:R.E.M.\tB-ORG\nen::\tO\nen:12:30\tO\n\nen:x\tO\n")
    assert rows == [
        {"id": "en-dev-1", "tokens": ["R.E.M.", ":", "12:30"], "tags": ["B-ORG", "O", "O"]},
        {"id": "en-dev-2", "tokens": ["x"], "tags": ["O"]},
    ]
    assert (report.counts["tokens"], report.counts["entities"]) == (4, 1)
    assert read("en:a\tO\r\n\r\nen:b\tB-LOC")[0] == read("en:a\tO\n\nen:b\tB-LOC\n\n")[0]


def test_tokens_without_anything_visible_are_removed_and_the_entity_still_begins_with_b():
    rows, report = read("en:\tB-PER\nen:Ann\tI-PER\nen:\u200f\tO\n\nen:\u200b\tO\n\n")
    assert rows == [{"id": "en-dev-1", "tokens": ["Ann"], "tags": ["B-PER"]}]
    assert report.dropped == {"no token left": 1}
    assert report.repaired == {"token without visible characters removed": 3, "I- without B- made B-": 1}


def test_conll2003_iob1_documents_and_misc():
    text = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nGerman JJ I-NP I-MISC\nFrench JJ I-NP B-MISC\n. . O O\n\n"
    rows, report = read(text, "conll2003")
    assert rows == [
        {"id": "en-dev-1", "tokens": ["EU", "German", "French", "."], "tags": ["B-ORG", "B-MISC", "B-MISC", "O"]}
    ]
    assert report.counts["document_starts"] == 1
    assert report.counts["tags_made_iob2"] == 2
    assert read(text.replace("O\n\nEU", "O\nEU"), "conll2003")[0] == rows
    assert not report.repaired


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("en:a\tO\nen:b\n", "wikiann", "f, line 2: 1 columns instead of 2, separated by tabs"),
        ("de:a\tO\n", "wikiann", "f, line 1: token 'de:a' does not start with 'en:'"),
        ("en:a\tB-MISC\n", "wikiann", "f, line 1: tag 'B-MISC' is none of O, B-LOC, I-LOC, B-ORG, I-ORG, B-PER, I-PER"),
        ("en:a\tPER\n", "wikiann", "f, line 1: tag 'PER'"),
        ("a  b Q\n", "conll2003", "f, line 1: tag 'Q'"),
        ("a b O\n", "conll2003", "f, line 1: 3 columns instead of 4, separated by single spaces"),
    ],
)
def test_malformed_lines_are_named(text, form, message):
    with pytest.raises(UserError) as error:
        read(text, form)
    assert message in str(error.value)


TAGS = st.lists(st.sampled_from(tag_set(("LOC", "PER"))), max_size=12)


@settings(deadline=None)
@given(TAGS)
def test_iob2_is_stable_and_changes_only_what_it_must(tags):
    once, changed = to_iob2(tags)
    assert to_iob2(once) == (once, 0)
    assert sum(a != b for a, b in zip(tags, once, strict=True)) == changed
    assert [tag[1:] for tag in tags] == [tag[1:] for tag in once]


TOKENS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=6)
WORDS = st.tuples(TOKENS, st.sampled_from(tag_set(("LOC", "PER"))))
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=6), max_size=4)


@settings(deadline=None)
@given(SENTENCES)
def test_raw_columns_come_back_and_json_lines_are_inverse(sentences):
    raw = "".join("".join(f"en:{token}\t{tag}\n" for token, tag in sentence) + "\n" for sentence in sentences)
    rows, _ = read(raw)
    assert [row["tokens"] for row in rows] == [[token for token, _ in sentence] for sentence in sentences]
    assert [row["tags"] for row in rows] == [to_iob2([tag for _, tag in sentence])[0] for sentence in sentences]
    stream = io.StringIO(newline="\n")
    assert write_rows(rows, stream) == len(rows)
    assert [row for _, row in read_rows(io.StringIO(stream.getvalue(), newline="\n"), "g")] == rows


def test_json_lines_errors_name_the_line():
    with pytest.raises(UserError, match=r"g, line 2: not JSON \(.*\): '\{oops'"):
        list(read_rows(['{"a":1}\n', "{oops\n"], "g"))
    with pytest.raises(UserError, match="g, line 1: not a JSON object: '3'"):
        list(read_rows(["3\n"], "g"))


def test_half_a_surrogate_pair_is_refused(tmp_path):
    with (tmp_path / "x").open("w", encoding="utf-8") as stream, pytest.raises(UserError, match="item '7': half"):
        write_rows([{"id": "7", "text": "\ud800"}], stream)


@settings(deadline=None)
@given(st.text(st.sampled_from("a. \u00a0\u200b\t\u0301"), max_size=3))
def test_invisible_means_no_category_but_control_and_space(token):
    assert is_invisible(token) == all(unicodedata.category(char)[0] in "CZ" for char in token)
