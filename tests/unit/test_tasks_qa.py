"""QA: windows, places of answers, n-best spans, decoding back to characters, scores, bad files."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers_for_tests import bert_tokenizer, xlmr_tokenizer

from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task
from crossalign.tasks.qa import Answer, answer_tokens, best_spans, best_text, context_windows

CONTEXT = "John lives  in Paris. The cat (black) sat on the mat in Berlin, and who?"


def question(answer, context=CONTEXT, text="  Where does John live ?"):
    place = {"text": answer, "start": context.index(answer)}
    return {"id": answer, "question": text, "context": context, "answers": [place]}


def perfect(examples):
    """Outputs of a model that points at the labels, padded as in a batch."""
    outputs = []
    for example in examples:
        scores = np.zeros((2, len(example["input_ids"]) + 5), dtype=np.float32)
        scores[0, example["start"]] = scores[1, example["end"]] = 10.0
        scores[:, len(example["input_ids"]) :] = 99.0
        outputs.append({"start": scores[0], "end": scores[1]})
    return outputs


@pytest.mark.parametrize("make", [bert_tokenizer, xlmr_tokenizer])
@pytest.mark.parametrize("answer", ["John", "Paris", "Berlin", "lives  in Paris", "black", "the mat"])
@pytest.mark.parametrize("max_length", [384, 30])
def test_there_and_back(make, answer, max_length):
    task = get_task("qa")
    record = question(answer)
    examples = task.examples([record], make(), max_length)
    assert all(len(example["input_ids"]) <= max_length for example in examples)
    assert (len(examples) > 1) == (max_length == 30)
    # A window without the answer points at the first token, which is no token of the context.
    assert all((example["start"] == 0) == (example["end"] == 0) for example in examples)
    predictions = task.decode(examples, [record], perfect(examples))
    assert best_text(record, predictions[0]) == answer
    assert task.score([record], predictions) == {"F1": 100.0, "EM": 100.0, "n": 1}


def test_an_answer_inside_a_word_takes_the_tokens_that_hold_it():
    context = "John lives in Paris"
    spans = np.array([[0, 4], [5, 10], [11, 13], [14, 19]])
    assert answer_tokens({"text": "ari", "start": 15}, spans) == (3, 3)
    assert answer_tokens({"text": "es in", "start": 8}, spans) == (1, 2)
    assert answer_tokens({"text": " in ", "start": 10}, spans) == (2, 2)
    assert answer_tokens({"text": " ", "start": 4}, spans) == (-1, -1)
    assert context[8:13] == "es in"


@given(st.integers(0, 900), st.integers(1, 300), st.integers(0, 200))
def test_windows_cover_everything_and_overlap(count, room, stride):
    windows = context_windows(count, room, stride)
    assert windows[0][0] == 0 and windows[-1][1] == count
    for (begin, end), (later, _) in itertools.pairwise(windows):
        assert end - begin == room and begin < later
        assert end - later == min(stride, room // 2)


@pytest.mark.parametrize("make", [bert_tokenizer, xlmr_tokenizer])
def test_the_length_must_leave_room(make):
    with pytest.raises(UserError, match="a maximum length of 4 tokens leaves no room"):
        get_task("qa").examples([question("Paris")], make(), 4)
    assert get_task("qa").examples([question("Paris")], make(), 6)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14), st.integers(1, 25), st.integers(1, 6), st.integers(0, 10**6))
def test_best_spans_like_brute_force(size, count, longest, seed):
    rng = np.random.default_rng(seed)
    starts, ends = rng.normal(size=(2, size)).astype(np.float32)
    expected = sorted(
        ((float(starts[i] + ends[j]), i, j) for i in range(size) for j in range(i, min(size, i + longest))),
        reverse=True,
    )[:count]
    found = list(zip(*(part.tolist() for part in best_spans(starts, ends, count, longest)), strict=True))
    assert [score for _, _, score in found] == [score for score, _, _ in expected]
    assert all(i <= j < i + longest and score == float(starts[i] + ends[j]) for i, j, score in found)


def test_the_best_window_wins_and_double_spans_are_one():
    task = get_task("qa")
    record = question("Berlin")
    examples = task.examples([record], bert_tokenizer(), 24)
    outputs = perfect(examples)
    where = next(number for number, example in enumerate(examples) if example["start"] == 0)
    # A window without the answer is less sure of something else.
    outputs[where]["start"][examples[where]["shown"]] = outputs[where]["end"][examples[where]["shown"]] = 5.0
    (answers,) = task.decode(examples, [record], outputs)
    assert record["context"][answers[0].begin : answers[0].end] == "Berlin" and answers[0].score == 20.0
    assert len(answers) == 20 and len({answer[:2] for answer in answers}) == 20
    assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)


def test_long_questions_are_cut_and_counted():
    record = question("Paris", text="who " * 100)
    examples = get_task("qa").examples([record], bert_tokenizer(), 384)
    assert examples[0]["cut"] == 36
    examples = get_task("qa").examples([record], bert_tokenizer(), 43)
    assert examples[0]["cut"] == 80 and all(len(example["input_ids"]) <= 43 for example in examples)


def test_scores_by_hand():
    task = get_task("qa")
    records = [question("Paris"), question("Berlin")]
    records[0]["answers"].append({"text": "in Paris", "start": CONTEXT.index("in Paris")})
    place = CONTEXT.index("lives")
    predictions = [[Answer(place, place + len("lives  in Paris"), 1.0)], []]
    # lives in Paris: 2 of 3 words right, all of the gold words found; the empty prediction has nothing.
    scores = task.score(records, predictions)
    assert scores == pytest.approx({"F1": 40.0, "EM": 0.0, "n": 2})
    assert task.details(records, predictions) == [
        {"f1": 80.0, "exact": 0, "span": [place, place + 15]},
        {"f1": 0.0, "exact": 0, "span": None},
    ]


def test_a_context_without_tokens():
    task = get_task("qa")
    record = question("\u200b", context="\u200b")
    examples = task.examples([record], bert_tokenizer(), 32)
    assert task.decode(examples, [record], perfect(examples)) == [[]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": []}, "question 'Paris' has no answer"),
        ({"answers": [{"text": "Paris"}]}, "an answer needs 'text'"),
        ({"answers": ["Paris"]}, "an answer needs 'text'"),
        ({"answers": [{"text": "Paris", "start": 3}]}, "the answer 'Paris' does not stand at character 3"),
        ({"context": None}, "no 'context' that is text; every line of QA data has id, question, context, answers"),
    ],
)
def test_bad_lines(tmp_path, change, message):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(question("Paris")) + "\n" + json.dumps(question("Paris") | change) + "\n")
    with pytest.raises(UserError, match=rf"a\.jsonl, line 2: {message}"):
        get_task("qa").read(path)
