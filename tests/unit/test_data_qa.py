"""Questions: wrong offsets, missing answers, joined languages, and files that are not in the format."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.qa import cross_questions, nearest, prepare_questions, read_questions
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError

CONTEXT = "one two one three"


def squad(*qas, context=CONTEXT):
    return io.StringIO(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": list(qas)}]}]}))


def qa(identity, *answers, **more):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": f"q{identity}", "answers": answers, **more}


def prepare(*qas, **options):
    report = Report()
    rows = list(prepare_questions(read_questions(squad(*qas, **options), "f.json"), report))
    assert report.as_dict()["kept"] == len(rows)
    return rows, report


def test_right_offsets_stay():
    rows, report = prepare(qa("a", ("one", 8), ("two", 4)))
    answers = [{"text": "one", "start": 8}, {"text": "two", "start": 4}]
    assert rows == [{"id": "a", "question": "qa", "context": CONTEXT, "answers": answers}]
    assert not report.repaired
    # Offsets count characters, also beyond the basic plane.
    rows, report = prepare(qa("a", ("b", 2)), context="😀 b")
    assert rows[0]["answers"][0]["start"] == 2
    assert not report.repaired


@pytest.mark.parametrize(("start", "place"), [(1, 0), (3, 0), (4, 0), (5, 8), (7, 8), (9, 8), (99, 8), (-5, 0)])
def test_wrong_offsets_move_to_the_nearest_place(start, place):
    rows, report = prepare(qa("a", ("one", start)))
    assert rows[0]["answers"] == [{"text": "one", "start": place}]
    assert report.repaired == {"answer offset": 1}


def test_what_has_no_answer_is_dropped_and_counted():
    rows, report = prepare(
        qa("a", ("four", 0)),
        qa("b", ("four", 0), ("two", 4)),
        qa("c"),
        qa("d", ("", 0)),
        qa("e", ("one", 0), is_impossible=True),
        {"id": "f", "question": "?", "is_impossible": True},
    )
    assert [row["id"] for row in rows] == ["b"]
    assert report.dropped == {"answer not in context": 1, "no answer": 2, "impossible": 2}
    assert report.counts["answers_not_in_context"] == 2


def test_repeated_identifiers_are_made_unique():
    rows, report = prepare(qa("a", ("one", 0)), qa("a", ("two", 4)), qa(7, ("one", 0)))
    assert [row["id"] for row in rows] == ["a", "a#2", "7"]
    assert report.repaired == {"repeated identifier made unique": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "f.json: not JSON: "),
        ("[]", "f.json: the file has no 'data' of the SQuAD format; found '[]'"),
        ('{"data": [{}]}', "f.json: data[0] has no 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "f.json: data[0].paragraphs[0] has no 'context'"),
        (squad(qa(None)).getvalue(), "f.json: data[0].paragraphs[0].qas[0] has no 'id'"),
        (squad(qa("a", ("x", "0"))).getvalue(), "qas[0] has no 'answer_start'"),
        (squad({"id": "a", "answers": []}).getvalue(), "qas[0] has no 'question'"),
    ],
)
def test_other_formats_are_named(text, message):
    with pytest.raises(UserError) as error:
        list(read_questions(io.StringIO(text), "f.json"))
    assert message in str(error.value)


def test_cross_lingual_sets_join_by_identifier_and_must_be_parallel():
    spanish = read_questions(squad(qa("b"), qa("a")), "es")
    english = read_questions(squad(qa("a", ("one", 0)), qa("b", ("two", 4))), "en")
    joined = list(cross_questions(({**q, "question": "¿" + q["id"]} for q in spanish), english, "es", "en"))
    assert [(q["id"], q["question"], q["answers"][0][0]) for q in joined] == [("a", "¿a", "one"), ("b", "¿b", "two")]

    def questions(*names):
        return read_questions(squad(*(qa(name) for name in names)), "x")

    with pytest.raises(UserError, match="es: no question 'b', which en has"):
        list(cross_questions(questions("a"), questions("a", "b"), "es", "en"))
    with pytest.raises(UserError, match="en: no question 'c', which es has"):
        list(cross_questions(questions("a", "c"), questions("a"), "es", "en"))


@settings(deadline=None)
@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers(-3, 15))
def test_nearest_agrees_with_trying_every_place(context, text, start):
    bounded = min(max(start, 0), len(context))
    places = [place for place in range(len(context)) if context.startswith(text, place)]
    expected = min(places, key=lambda place: (abs(place - bounded), place), default=None)
    assert nearest(context, text, start) == expected
