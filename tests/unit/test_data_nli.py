"""Sentence pairs: label names, dropped pairs, the mixed set, and malformed rows."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.nli import LABELS, coin, mix_with_english, read_multinli, read_pairs, read_xnli
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError

XNLI_HEADER = "language\tgold_label\tsentence1\tsentence2\tpromptID\tpairID\n"


def lines(text):
    return io.StringIO(text, newline="\n")


def multinli(**fields):
    return json.dumps({"gold_label": "neutral", "sentence1": "a", "sentence2": "b", "pairID": "1n"} | fields) + "\n"


def test_multinli_drops_pairs_without_label():
    report = Report()
    rows = list(read_multinli(lines(multinli() + multinli(gold_label="-", pairID="2")), "m", report))
    assert rows == [{"id": "1n", "premise": "a", "hypothesis": "b", "label": "neutral"}]
    assert report.as_dict() == {"read": 2, "kept": 1, "dropped": {"no label": 1}, "repaired": {}, "neutral": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (multinli() + multinli(gold_label="maybe"), "m, line 2: label 'maybe' is none of entailment, neutral"),
        (multinli(sentence1=None), "m, line 1: one of pairID, sentence1, sentence2, gold_label is missing or no text"),
        (multinli() + "{\n", "m, line 2: not JSON"),
        (XNLI_HEADER + "de\tneutral\ta\n", "x, line 2: 3 fields where the header has 6: "),
        ("language\tsentence1\n", "x, line 1: no column pairID; the header has 'language sentence1'"),
        ("", "x, line 1: no column language"),
        (XNLI_HEADER + "de\tEntailment\ta\tb\t1\t2\n", "x, line 2: label 'Entailment'"),
    ],
)
def test_malformed_rows_are_named(text, message):
    with pytest.raises(UserError) as error:
        if message.startswith("m"):
            list(read_multinli(lines(text), "m", Report()))
        else:
            list(read_xnli(lines(text), "x", "de", Report()))
    assert message in str(error.value)


def test_xnli_takes_one_language_and_no_quoting():
    text = XNLI_HEADER + 'de\tneutral\t"x\ty\t1\t9\n' + "fr\tentailment\tp\tq\t1\t9\n"
    rows = list(read_xnli(lines(text), "x", "de", report := Report()))
    assert rows == [{"id": "9", "premise": '"x', "hypothesis": "y", "label": "neutral"}]
    assert report.read == 1
    with pytest.raises(UserError, match="x: no rows of language 'es'; it has de, fr"):
        list(read_xnli(lines(text), "x", "es", Report()))


def test_extension_labels_crlf_and_odd_line_separators():
    # U+0085 and U+2028 are line breaks to str.splitlines, but text here.
    text = "premise\thypo\tlabel\r\na\u0085b\tc\u2028\tcontradictory\r\n \td\tentailment\r\n"
    rows = list(read_pairs(lines(text), "e", report := Report()))
    assert rows[0] == {"id": "1", "premise": "a\u0085b", "hypothesis": "c\u2028", "label": "contradiction"}
    assert report.counts["pairs_with_empty_sentence"] == 1
    assert list(read_pairs(lines("label\thypothesis\tpremise\nneutral\th\tp\n"), "e", Report()))[0]["hypothesis"] == "h"


FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD, st.sampled_from(LABELS)), max_size=5))
def test_rows_come_back(pairs):
    text = "premise\thypo\tlabel\n" + "".join("\t".join(pair) + "\n" for pair in pairs)
    rows = list(read_pairs(lines(text), "e", Report()))
    assert [(row["premise"], row["hypothesis"], row["label"]) for row in rows] == pairs


def pair(identity, language, label="neutral"):
    return {"id": identity, "premise": f"{language} p", "hypothesis": f"{language} h", "label": label}


def test_mixed_set_has_one_english_side_the_same_for_every_language():
    names = [str(number) for number in range(1000)]
    english = [pair(name, "en") for name in names]
    sides = []
    for language in ("es", "hi"):
        report = Report()
        mixed = list(mix_with_english([pair(name, language) for name in names], english, 1, report))
        assert all({row["premise"][:2], row["hypothesis"][:2]} == {"en", language} for row in mixed)
        sides.append([row["premise"].startswith("en") for row in mixed])
        assert report.counts["english_premise"] == sum(sides[-1])
    assert sides[0] == sides[1]
    assert 440 < sum(sides[0]) < 560
    assert sides[0] != [coin(2, name) for name in names]
    # The coin is fixed for ever.
    assert "".join("HT"[coin(1, str(number))] for number in range(16)) == "HHTTTHHTHHTTHTTH"


def test_mixing_needs_the_same_pairs():
    with pytest.raises(UserError, match="pair '2' has no English original"):
        list(mix_with_english([pair("2", "es")], [pair("1", "en")], 1, Report()))
    with pytest.raises(UserError, match="pair '1' has another label in English"):
        list(mix_with_english([pair("1", "es")], [pair("1", "en", "entailment")], 1, Report()))
