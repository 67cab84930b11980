"""The checks of prepared files find every planted fault."""

import json

import pytest
from tools.validate_data import kind_of, validate

from crossalign.runtime.errors import UserError

TREE = "# sent_id = s\n1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n"
NER = {"id": "1", "tokens": ["a", "b"], "tags": ["B-PER", "I-PER"]}
NLI = {"id": "1", "premise": "a", "hypothesis": "b", "label": "neutral"}
QA = {"id": "1", "question": "q", "context": "a b", "answers": [{"text": "b", "start": 2}]}


def rows(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


SOUND = {
    "trees": TREE,
    "ner": rows(NER, NER | {"id": "2"}),
    "nli": rows(NLI, NLI | {"id": "2"}),
    "qa": rows(QA),
    "bitext": "1.2\ta b\tc\n1.1\ta\tc d\n",
    "text": "a b\nc\n",
    "parallel": "a b\na b\n",
}


@pytest.mark.parametrize("kind", SOUND)
def test_sound_files_pass(kind, tmp_path):
    path = tmp_path / "x"
    path.write_text(SOUND[kind], encoding="utf-8")
    assert validate(kind, path) == (1 if kind in ("trees", "qa") else 2)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("trees", TREE.replace("\tdep", "\tdep:x"), "not a prepared file: subtypes_cut"),
        ("trees", TREE.replace("# sent_id = s\n", ""), "not a prepared file: sentence without identifier"),
        ("trees", TREE + TREE, "repeated identifier"),
        ("trees", TREE.replace("\t1\tdep", "\t0\tdep"), "line 3: a second root"),
        ("ner", rows(NER, NER), "line 2: id '1' is empty, no text, or used before"),
        ("ner", rows(NER | {"tags": ["O"]}), "line 1: 2 tokens, 1 tags"),
        ("ner", rows(NER | {"tags": ["O", "I-PER"]}), "an entity does not begin with B-"),
        ("ner", rows(NER | {"tags": ["O", "PER"]}), "tag 'PER' is not O"),
        ("ner", rows(NER | {"tokens": ["a", ""]}), "lists of text that is not empty"),
        ("ner", rows(NER | {"x": 1}), "keys ['id', 'tokens', 'tags', 'x'] instead of"),
        ("ner", "{\n", "line 1: not JSON"),
        ("nli", rows(NLI | {"label": "contradictory"}), "label 'contradictory' is none of"),
        ("nli", rows(NLI | {"premise": None}), "must be text"),
        ("nli", rows({"id": "1"}), "keys ['id'] instead of"),
        ("qa", rows(QA | {"answers": [{"text": "b", "start": 1}]}), "answer 'b' does not stand at 1"),
        ("qa", rows(QA | {"answers": [{"text": "b", "start": -1}]}), "does not stand at -1"),
        ("qa", rows(QA | {"answers": []}), "no answers"),
        ("qa", rows(QA | {"answers": [{"text": "b"}]}), "is not text and start"),
        ("qa", rows(QA | {"context": ""}), "not empty"),
        ("bitext", "1.1\ta\tb\n1.2\tc\td\n", "line 2: score 1.2 after 1.1"),
        ("bitext", "1.1\ta\tb\n1.1\ta\tb\n", "line 2: a pair that came before"),
        ("bitext", "1.1\ta  x\tb\n", "line 1: not score, English words"),
        ("bitext", "1.1\ta\n", "line 1: not score, English words"),
        ("bitext", "a\tb\tc\n", "line 1: score 'a' is not a number"),
        ("text", "a\n\nb\n", "line 2: empty"),
        ("text", " a\n", "line 1: empty, or spaces"),
        ("text", "", ": empty"),
        ("parallel", "a\u00a0b\n", "line 1: empty, or spaces"),
    ],
)
def test_faults_are_found(kind, text, message, tmp_path):
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        validate(kind, path)
    assert str(path) in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"read": 3, "kept": 2, "dropped": {"x": 1}, "repaired": {}}, None),
        ({"read": 2, "kept": 1, "dropped": {"x": 1}, "repaired": {}}, "says 2 read, 1 kept; the file has 2 items"),
        ({"read": 9, "kept": 2, "dropped": {"x": 1}, "repaired": {}}, "says 9 read"),
        ({"read": 2}, "not a report with read, kept, dropped and repaired"),
        ([], "not a report"),
    ],
)
def test_reports_must_fit(report, message, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "train.report.json").write_text(json.dumps(report), encoding="utf-8")
    if message is None:
        assert validate("text", path) == 2
    else:
        with pytest.raises(UserError, match="train.report.json: ") as error:
            validate("text", path)
        assert message in str(error.value)


def test_kind_by_place(tmp_path):
    assert kind_of("results/demo/data/trees/en_ewt/train.conllu") == "trees"
    with pytest.raises(UserError, match="say which kind"):
        kind_of("data/train.conllu")
    with pytest.raises(UserError, match="kind 'tree' is none of trees, ner"):
        validate("tree", tmp_path / "x")
    with pytest.raises(UserError, match="no such file"):
        validate("ner", tmp_path / "x")
