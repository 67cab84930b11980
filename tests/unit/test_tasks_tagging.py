"""POS and NER: examples, windows, decoding, scores, bad files."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_for_tests import bert_tokenizer, xlmr_tokenizer

from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError
from crossalign.tasks import file_of, get_task
from crossalign.tasks.declared import TASKS
from crossalign.tasks.tagging import windows

NER = [
    {"id": "1", "tokens": ["John", "lives", "in", "Paris"], "tags": ["B-PER", "O", "O", "B-LOC"]},
    {"id": "2", "tokens": ["the", "cat"], "tags": ["O", "O"]},
]


def test_what_lists_the_tasks_agrees_with_them_and_loads_none_of_their_libraries(root):
    code = "import sys, crossalign.catalog.sheets, crossalign.results.names; print({'numpy', 'torch'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], cwd=root / "scripts", stdout=subprocess.PIPE, check=True)
    assert found.stdout == b"set()\n"
    for name, declared in TASKS.items():
        task = get_task(name)
        assert (task.name, task.metric) == (name, declared.metric)
        assert task.metric in task.counts and (root / "scripts" / file_of(name)).is_file()


def perfect(examples):
    """The outputs of a model that knows the answers, padded as in a batch."""
    return [{"labels": np.array([*example["labels"], 0, 0])} for example in examples]


@pytest.mark.parametrize("make", [bert_tokenizer, xlmr_tokenizer])
def test_example(make):
    tokenizer = make()
    special = Specials.of(tokenizer)
    task = get_task("ner").with_labels_of(NER)
    assert task.labels == ("O", "B-LOC", "B-PER")
    record = {"id": "3", "tokens": ["John", "Xyz", "lives"], "tags": ["B-PER", "I-PER", "O"]}
    (example,) = task.examples([record], tokenizer, 32)
    ids = example["input_ids"]
    assert (ids[0], ids[-1]) == (special.cls, special.sep)
    tokens = [tokenizer.id_to_token(ids[place]).lstrip("▁") for place in example["word_starts"]]
    assert tokens[0] == "John" and tokens[2] == "lives" and len(ids) > 6
    # I-PER does not occur in training: no loss can count it.
    assert example["labels"] == [2, -100, 0]
    assert "token_type_ids" not in example


def test_a_word_of_which_nothing_remains_is_unknown():
    tokenizer = bert_tokenizer()
    task = get_task("ner", ["O", "B-PER"])
    record = {"id": "1", "tokens": ["the", "\u200b", "", "cat"], "tags": ["O", "O", "B-PER", "O"]}
    (example,) = task.examples([record], tokenizer, 32)
    unknown = tokenizer.token_to_id("[UNK]")
    assert [example["input_ids"][place] for place in example["word_starts"]][1:3] == [unknown, unknown]
    assert task.decode([example], [record], perfect([example])) == [[0, 0, 1, 0]]


@given(st.lists(st.integers(1, 9), max_size=60), st.integers(9, 30))
def test_windows_label_every_word_once(lengths, room):
    found = windows(lengths, room, training=False)
    assert [word for _, begin, stop, _ in found for word in range(begin, stop)] == list(range(len(lengths)))
    for first, begin, stop, end in found:
        assert first <= begin < stop <= end
        assert sum(lengths[first:end]) <= room
    cut = windows(lengths, room, training=True)
    if lengths:
        ((first, begin, stop, end),) = cut
        assert (first, begin) == (0, 0) and stop == end
        assert end == len(lengths) or sum(lengths[: end + 1]) > room


def test_windows_give_context_on_both_sides():
    found = windows([1] * 100, 20, training=False)
    for first, begin, stop, end in found:
        assert begin == 0 or begin - first >= 4
        assert stop == 100 or end - stop >= 4


def test_long_sentences_are_cut_in_training_and_windowed_in_evaluation():
    tokenizer = bert_tokenizer()
    task = get_task("pos")
    record = {"id": "1", "words": ["the", "cat"] * 20, "upos": ["DET", "NOUN"] * 20}
    (cut,) = task.examples([record], tokenizer, 12, training=True)
    assert len(cut["input_ids"]) == 12 and len(cut["word_starts"]) == 10 and cut["cut"] == 30
    examples = task.examples([record, record], tokenizer, 12)
    assert all(len(example["input_ids"]) <= 12 and example["cut"] == 0 for example in examples)
    predictions = task.decode(examples, [record, record], perfect(examples))
    assert task.score([record, record], predictions) == {"accuracy": 100, "n": 2, "words": 80, "unseen_labels": 0}


def test_a_word_longer_than_the_model():
    tokenizer = bert_tokenizer()
    task = get_task("pos")
    record = {"id": "1", "words": ["the", "x" * 40, "cat"], "upos": ["DET", "X", "NOUN"]}
    examples = task.examples([record], tokenizer, 12)
    assert all(len(example["input_ids"]) <= 12 for example in examples)
    assert task.decode(examples, [record], perfect(examples)) == [[task.labels.index(t) for t in record["upos"]]]


@pytest.mark.parametrize("name", ["pos", "parsing"])
def test_the_length_must_leave_room(name):
    task = get_task(name, ["X", "root"])
    record = {"id": "1", "words": ["the", "Xyz"], "upos": ["X", "X"], "heads": [0, 1], "relations": ["root", "root"]}
    with pytest.raises(UserError, match="a maximum length of 2 tokens leaves no room for words"):
        task.examples([record], bert_tokenizer(), 2)
    assert [len(example["input_ids"]) for example in task.examples([record], bert_tokenizer(), 3)][0] == 3


def test_pos_score_by_hand():
    task = get_task("pos")
    records = [{"id": "1", "words": ["a", "b", "c"], "upos": ["DET", "NOUN", "_"]}]
    guess = [[task.labels.index("DET"), task.labels.index("VERB"), 0]]
    assert task.score(records, guess) == pytest.approx({"accuracy": 100 / 3, "n": 1, "words": 3, "unseen_labels": 1})
    assert task.details(records, guess) == [{"tags": guess[0], "right": 1}]


def test_ner_score_with_an_unseen_label():
    task = get_task("ner").with_labels_of(NER)
    records = [{"id": "1", "tokens": ["a", "b", "c"], "tags": ["B-MISC", "O", "B-PER"]}]
    scores = task.score(records, [[1, 0, 2]])
    assert scores["unseen_labels"] == 1
    assert scores["F1"] == 50.0 and scores["F1_PER"] == 100.0 and scores["F1_MISC"] == 0.0
    assert scores["token_F1"] == 50.0 and scores["n"] == 1 and scores["words"] == 3
    assert task.details(records, [[1, 0, 2]]) == [{"tags": [1, 0, 2], "entities": [1, 2, 2], "tokens": [1, 2, 2]}]


def test_a_sentence_without_words_makes_no_example():
    task = get_task("ner", ["O"])
    records = [{"id": "1", "tokens": [], "tags": []}, {"id": "2", "tokens": ["cat"], "tags": ["O"]}]
    examples = task.examples(records, bert_tokenizer(), 16)
    assert [example["record"] for example in examples] == [1]
    assert task.decode(examples, records, perfect(examples)) == [[], [0]]


def test_labels_are_needed():
    with pytest.raises(UserError, match="task 'ner' has no label set yet"):
        get_task("ner").make_head(8, 0.1)
    with pytest.raises(UserError, match="doubles"):
        get_task("ner", ["O", "O"])
    for name in ("srl", "base"):
        with pytest.raises(UserError, match=f"unknown task '{name}'"):
            get_task(name)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "1", "tokens": [], "tags": []}, "line 2: a sentence without words"),
        ({"id": "1", "tokens": ["a"], "tags": []}, "line 2: 1 tokens but 0 tags"),
        ({"id": "1", "tokens": ["a"], "tags": ["PER"]}, "line 2: 'PER' is no IOB2 tag"),
        (
            {"id": "1", "premise": "a"},
            "line 2: no 'tokens' that is a list; every line of NER data has id, tokens, tags",
        ),
    ],
)
def test_ner_lines(tmp_path, row, message):
    assert get_task("ner").read(write(tmp_path / "a.jsonl", NER)) == NER
    with pytest.raises(UserError, match=message):
        get_task("ner").read(write(tmp_path / "a.jsonl", [NER[0], row]))


@pytest.mark.parametrize("name", ["pos", "ner", "parsing", "nli", "qa"])
def test_files_that_are_missing_empty_or_of_the_wrong_kind(tmp_path, name):
    task = get_task(name)
    with pytest.raises(UserError, match=r"none\.x: no such file"):
        task.read(tmp_path / "none.x")
    (tmp_path / "empty.x").touch()
    with pytest.raises(UserError, match=r"empty\.x: the file is empty"):
        task.read(tmp_path / "empty.x")
    (tmp_path / "blank.x").write_text("\n\n")
    with pytest.raises(UserError, match=r"blank\.x"):
        task.read(tmp_path / "blank.x")
    (tmp_path / "text.x").write_text("A line of plain text.\n")
    with pytest.raises(UserError, match=r"text\.x, line 1"):
        task.read(tmp_path / "text.x")


def test_read_pos(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("# sent_id = s\n1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    assert get_task("pos").read(path) == [{"id": "s", "words": ["the"], "upos": ["DET"]}]
    path.write_text("# sent_id = s\n\n1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 1: a sentence without words"):
        get_task("pos").read(path)
    path.write_text("1\tthe\t_\t_\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    with pytest.raises(UserError, match="no word has a UPOS tag"):
        get_task("pos").read(path)
