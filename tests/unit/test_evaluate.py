"""Evaluation as a program: scores and predictions of tiny untrained models for every task."""

import gc
import json
import os
import re
import runpy
import subprocess
import sys

import pytest
import torch
from tokenizers_for_tests import bert_tokenizer, xlmr_tokenizer

from crossalign.catalog.code_hash import closure
from crossalign.engine.folders import save_encoder
from crossalign.engine.programs import named_sets
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import TaskModel, save_tuned
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task
from crossalign.tasks.predictions import read_predictions, write_predictions

TREES = """# sent_id = a
1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsat\t_\tVERB\t_\t_\t0\troot\t_\t_

# sent_id = b
1\tJohn\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_
2\tlives\t_\tVERB\t_\t_\t0\troot\t_\t_
3\tin\t_\tADP\t_\t_\t4\tcase\t_\t_
4\tParis\t_\tPROPN\t_\t_\t2\tobl\t_\t_

"""
LONG = "# sent_id = c\n" + "".join(f"{i}\tcat\t_\tNOUN\t_\t_\t{i - 1}\tobl\t_\t_\n" for i in range(1, 31)) + "\n"
NER = [
    {"id": "a", "tokens": ["John", "lives", "in", "Paris"], "tags": ["B-PER", "O", "O", "B-LOC"]},
    {"id": "b", "tokens": ["the", "cat"] * 20, "tags": ["O", "B-MISC"] * 20},
]
NLI = [
    {"id": str(n), "premise": "the cat sat on the mat", "hypothesis": text, "label": label}
    for n, (text, label) in enumerate([("who ?", "neutral"), ("the cat sat " * 9, "entailment")])
]
QA = [
    {
        "id": "q",
        "question": "Where does John live ?",
        "context": "the cat sat on the mat . " * 3 + "John lives in Paris",
        "answers": [{"text": "Paris", "start": 89}],
    }
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES = {
    "pos": (TREES, TREES + LONG),
    "parsing": (TREES, TREES + LONG),
    "ner": (lines(NER[:1]), lines(NER)),
    "nli": (lines(NLI[:1]), lines(NLI)),
    "qa": (lines(QA), lines(QA * 2)),
}
LABELS = {"ner": ["O", "B-LOC", "B-PER"], "parsing": ["det", "nsubj", "root", "case"]}


def make_model(folder, name, family="bert", vocabulary=None):
    """A base model and a tuned model with random weights."""
    bert = family == "bert"
    tokenizer = bert_tokenizer() if bert else xlmr_tokenizer()
    config = EncoderConfig(
        vocab_size=vocabulary or tokenizer.get_vocab_size(), hidden=16, layers=2, heads=2, intermediate=24,
        positions=40 if bert else 42, types=2 if bert else 1, position_offset=0 if bert else 2, pad_id=0 if bert else 1,
        family=family,
    )  # fmt: skip
    encoder = fresh_encoder(config, 1)
    save_encoder(folder / "base", encoder, tokenizer)
    task = get_task(name, LABELS.get(name))
    torch.manual_seed(1)
    head = task.make_head(16, 0.1)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    save_tuned(folder / "tuned", folder / "base", TaskModel(encoder, head), task, {"settings": {"max_length": 24}})
    return folder


def run(root, monkeypatch, folder, files, *more):
    argv = ["evaluate.py", "--tuned", folder / "tuned", "--base", folder / "base", "--device", "cpu"]
    argv += ["--out", folder / "scores.json", "--predictions", folder / "p.jsonl.gz", *more]
    argv += ["--sets", *(f"{name}={file}" for name, file in files.items())]
    monkeypatch.setattr(sys, "argv", list(map(str, argv)))
    try:
        runpy.run_path(str(root / "scripts/evaluate.py"), run_name="__main__")
    finally:
        gc.enable()  # the program does without


@pytest.mark.parametrize(("name", "family"), [*((name, "bert") for name in FILES), ("qa", "xlm-roberta")])
def test_all_sets_of_a_task(root, monkeypatch, tmp_path, name, family):
    make_model(tmp_path, name, family)
    files = {set_name: tmp_path / f"{set_name}.x" for set_name in ("zz", "aa")}
    for path, text in zip(files.values(), FILES[name], strict=True):
        path.write_text(text, encoding="utf-8")
    run(root, monkeypatch, tmp_path, files)
    text = (tmp_path / "scores.json").read_text()
    scores = json.loads(text)
    task = get_task(name, LABELS.get(name))
    head, rows = read_predictions(tmp_path / "p.jsonl.gz")
    assert head == {"task": name, "labels": list(task.labels)}
    assert list(scores) == list(rows) == ["aa", "zz"]
    for set_name, path in files.items():
        records = task.read(path)
        assert scores[set_name]["n"] == len(records)
        assert [row["id"] for row in rows[set_name]] == [record["id"] for record in records]
        assert 0 <= scores[set_name][task.metric] <= 100
    check_details(name, rows["aa"], scores["aa"])
    # The same again is the same bytes.
    before = (tmp_path / "p.jsonl.gz").read_bytes()
    run(root, monkeypatch, tmp_path, files)
    assert (tmp_path / "p.jsonl.gz").read_bytes() == before and (tmp_path / "scores.json").read_text() == text


def check_details(name, rows, scores):
    """The rows are enough to work the scores out again."""
    if name == "pos":
        assert len(rows[2]["tags"]) == 30
        assert scores["accuracy"] == round(100 * sum(row["right"] for row in rows) / 37, 6)
    elif name == "parsing":
        assert scores["cut_words"] > 0 and rows[2]["heads"].count(-1) == scores["cut_words"]
        assert scores["LAS"] == round(100 * sum(row["right"][1] for row in rows) / 37, 6)
        assert scores["unseen_labels"] == 31 and sum(row["heads"].count(0) for row in rows) == 3
    elif name == "ner":
        right, predicted, gold = (sum(row["entities"][i] for row in rows) for i in range(3))
        assert scores["F1"] == round(200 * right / (predicted + gold), 6) and gold == 22
        assert scores["unseen_labels"] == 20
    elif name == "nli":
        assert scores["accuracy"] == 50 * sum(row["right"] for row in rows) and scores["cut_tokens"] > 0
    else:
        assert scores["F1"] == sum(row["f1"] for row in rows) / 2
        assert QA[0]["context"][slice(*rows[0]["span"])]


def call(root, folder, file):
    """The program in a process of its own."""
    command = [sys.executable, root / "scripts/evaluate.py", "--tuned", folder / "tuned", "--base", folder / "base"]
    command += ["--out", folder / "scores.json", "--sets", f"x={file}"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def test_the_program_tells_its_stages_or_ends_with_a_sentence(root, tmp_path):
    make_model(tmp_path, "parsing")
    (tmp_path / "nli.jsonl").write_text(lines(NLI))
    bad = call(root, tmp_path, tmp_path / "nli.jsonl")
    assert bad.returncode == 1 and bad.stderr.startswith("error: ") and "nli.jsonl, line 1" in bad.stderr
    assert "Traceback" not in bad.stderr and not (tmp_path / "scores.json").exists()
    (tmp_path / "a.conllu").write_text(TREES)
    done = call(root, tmp_path, tmp_path / "a.conllu")
    told = [line.removeprefix("seconds: ") for line in done.stderr.splitlines() if line.startswith("seconds: ")]
    stages = ["start", "read", "tokenise", "load", "predict", "decode", "score", "write"]
    assert done.returncode == 0 and [re.findall(r"(\w+) \d+\.\d\d", line) for line in told] == [stages]


def train(root, folder, file):
    """Fine-tune with the evaluation behind it, in one process."""
    command = [sys.executable, root / "scripts/finetune.py", "--model", folder / "base", "--task", "pos"]
    command += ["--train", folder / "a.conllu"]
    command += ["--settings", '{"epochs": 3, "batch": 2, "max_length": 24, "selection": "last"}']
    command += ["--out", folder / "out", "--checkpoints", folder / "checkpoints", "--save-steps", 2]
    command += ["--sets", f"x={file}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)


def test_a_training_tests_its_model_and_goes_on_where_its_test_failed(root, monkeypatch, tmp_path):
    make_model(tmp_path, "pos")
    (tmp_path / "a.conllu").write_text(TREES)
    (tmp_path / "nli.jsonl").write_text(lines(NLI))
    bad = train(root, tmp_path, tmp_path / "nli.jsonl")
    assert bad.returncode == 1 and "nli.jsonl, line 1" in bad.stderr and not (tmp_path / "out/scores.json").exists()
    (tmp_path / "out").rename(tmp_path / "first")
    done = train(root, tmp_path, tmp_path / "a.conllu")
    assert done.returncode == 0, done.stderr
    # As its scheduler would have it: the first result is gone, its checkpoint is not, until all is done.
    assert json.loads((tmp_path / "out/training.json").read_text())["resumed"] == 1
    assert not list((tmp_path / "checkpoints").rglob("*.safetensors"))
    weights = [(tmp_path / name / "model/model.safetensors").read_bytes() for name in ("first", "out")]
    assert weights[0] == weights[1]
    # The scores are those of an evaluation of its own, to the byte.
    (tmp_path / "tuned").rename(tmp_path / "untrained")
    (tmp_path / "out/model").rename(tmp_path / "tuned")
    run(root, monkeypatch, tmp_path, {"x": tmp_path / "a.conllu"})
    for one, other in (("scores.json", "scores.json"), ("predictions.jsonl.gz", "p.jsonl.gz")):
        assert (tmp_path / "out" / one).read_bytes() == (tmp_path / other).read_bytes()


def test_code_of_the_evaluation_is_none_of_the_training(root):
    """Else another way to count would train all models again that are kept."""
    files = {file.name for file in closure(root / "scripts/finetune.py")}
    assert "task_model.py" in files and files.isdisjoint({"evaluate.py", "evaluation.py"})


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["fr="], "NAME=FILE was expected"),
        (["fr=a", "fr=b"], "'fr' is given twice"),
    ],
)
def test_bad_sets(root, sets, message):
    with pytest.raises(UserError, match=message):
        named_sets(sets)


def test_predictions_file(tmp_path):
    rows = {"b": [{"id": "1", "tags": [1, 2]}], "a": [{"id": "ü", "tags": []}]}
    write_predictions(tmp_path / "one.gz", "pos", ["X"], rows)
    write_predictions(tmp_path / "two.gz", "pos", ["X"], dict(reversed(rows.items())))
    assert read_predictions(tmp_path / "one.gz") == ({"task": "pos", "labels": ["X"]}, rows)
    # Neither the name nor the time nor the order of sets shows in the bytes.
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    (tmp_path / "bad.gz").write_bytes((tmp_path / "one.gz").read_bytes()[:30])
    with pytest.raises(UserError, match=r"bad\.gz: no file of predictions"):
        read_predictions(tmp_path / "bad.gz")
    with pytest.raises(UserError, match="no such file"):
        read_predictions(tmp_path / "none.gz")
