"""Scores that the process of a training makes ahead: taken if they fit, made anew if anything is different."""

import gc
import os
import runpy
import signal
import subprocess
import sys
import time

import pytest
from test_evaluate import FILES, TREES, make_model

from crossalign.catalog.code_hash import closure
from crossalign.tasks import ahead

OPTIONS = ("code", None, "auto", "auto")


@pytest.fixture
def made(tmp_path):
    """A model, its sets, and scores of it that lie ready. Untrue ones, so that taking them shows."""
    make_model(tmp_path, "pos")
    sets = {name: tmp_path / f"{name}.conllu" for name in ("aa", "zz")}
    for file, text in zip(sets.values(), FILES["pos"], strict=True):
        file.write_text(text)
    leave(tmp_path, sets)
    return tmp_path, sets


def leave(folder, sets, *options):
    (folder / "ahead").mkdir(exist_ok=True)
    (folder / "ahead" / ahead.SCORES).write_text("{}")
    (folder / "ahead" / ahead.PREDICTIONS).write_bytes(b"untrue")
    ahead.leave(folder / "ahead", ahead.identity(folder / "tuned", folder / "base", sets, *(options or OPTIONS)))


def evaluate(root, monkeypatch, folder, sets, *more, out=True):
    argv = [root / "scripts/evaluate.py", "--tuned", folder / "tuned", "--base", folder / "base"]
    argv += ["--out", folder / "scores.json", "--predictions", folder / "p.gz"] if out else []
    argv += [*more, "--sets", *(f"{name}={file}" for name, file in sets.items())]
    monkeypatch.setattr(sys, "argv", list(map(str, argv)))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        gc.enable()
    files = [folder / name for name in ("scores.json", "p.gz")]
    return [file.read_bytes() for file in files if file.exists()]


def with_ahead(folder, code="code"):
    return ("--ahead", folder / "ahead", "--code-hash", code)


def test_scores_that_fit_are_taken_once(root, monkeypatch, made):
    folder, sets = made
    assert evaluate(root, monkeypatch, folder, sets, *with_ahead(folder)) == [b"{}", b"untrue"]
    assert not (folder / "ahead").exists()
    assert evaluate(root, monkeypatch, folder, sets, *with_ahead(folder))[0] != b"{}"


def change_bit(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def rename_set(folder, sets):
    sets["bb"] = sets.pop("aa")


CHANGES = {
    "a weight": lambda folder, sets: change_bit(folder / "tuned/model.safetensors"),
    "the labels": lambda folder, sets: (folder / "tuned/config.json").open("a").write(" "),
    "the base": lambda folder, sets: change_bit(folder / "base/model.safetensors"),
    "the vocabulary": lambda folder, sets: (folder / "base/tokenizer.json").open("a").write(" "),
    "a sentence": lambda folder, sets: sets["aa"].write_text(TREES.replace("cat", "dog")),
    "one set less": lambda folder, sets: sets.pop("aa"),
    "a set's name": rename_set,
    "the code": lambda folder, sets: leave(folder, sets, "other", *OPTIONS[1:]),
    "an option": lambda folder, sets: leave(folder, sets, "code", 12, *OPTIONS[2:]),
    "a file cut short": lambda folder, sets: (folder / "ahead" / ahead.PREDICTIONS).write_bytes(b"untru"),
    "no scores": lambda folder, sets: (folder / "ahead" / ahead.SCORES).unlink(),
    "no note": lambda folder, sets: (folder / "ahead" / ahead.NOTE).unlink(),
    "half a note": lambda folder, sets: (folder / "ahead" / ahead.NOTE).write_text('{"identity"'),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_scores_that_do_not_fit_are_never_taken(made, changed):
    folder, sets = made
    before = ahead.identity(folder / "tuned", folder / "base", sets, *OPTIONS)
    assert ahead.take(folder / "ahead", before, folder / "s", None)
    (folder / "s").unlink()
    CHANGES[changed](folder, sets)
    now = ahead.identity(folder / "tuned", folder / "base", sets, *OPTIONS)
    assert not ahead.take(folder / "ahead", now, folder / "s", folder / "p")
    assert not (folder / "s").exists() and not (folder / "p").exists()


def test_a_set_that_is_not_there_yet(root, monkeypatch, made, caplog):
    folder, sets = made
    sets["aa"].unlink()
    with caplog.at_level("INFO"):
        assert evaluate(root, monkeypatch, folder, sets, *with_ahead(folder), out=False) == []
    assert "aa.conllu is not there yet" in caplog.text and not (folder / "ahead").exists()


@pytest.mark.parametrize(
    ("more", "message"), [((), "give --out FILE or --ahead"), (("--ahead", "x"), "--ahead needs --code-hash")]
)
def test_what_is_missing_is_named(root, monkeypatch, made, capsys, more, message):
    with pytest.raises(SystemExit):
        evaluate(root, monkeypatch, *made, *more, out=False)
    assert message in capsys.readouterr().err


def test_a_training_that_goes_on_as_its_evaluation(root, monkeypatch, made):
    """The scores are those of an evaluation of its own, to the byte."""
    folder, sets = made
    tuned = folder / "out/model"
    command = [sys.executable, root / "scripts/finetune.py", "--model", folder / "base", "--task", "pos"]
    command += ["--train", sets["aa"], "--epochs", 3, "--batch", 2, "--max-length", 24, "--selection", "last"]
    command += ["--out", folder / "out", "--then", root / "scripts/evaluate.py", "--tuned", tuned]
    command += ["--base", folder / "base", *with_ahead(folder), "--sets", *(f"{n}={file}" for n, file in sets.items())]
    subprocess.run(list(map(str, command)), env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
    (folder / "tuned").rename(folder / "untrained")
    tuned.rename(folder / "tuned")
    assert (folder / "ahead" / ahead.NOTE).exists() and (folder / "out/training.json").exists()
    taken = evaluate(root, monkeypatch, folder, sets, *with_ahead(folder))
    assert not (folder / "ahead").exists()
    assert taken == evaluate(root, monkeypatch, folder, sets)


STATUS = {"exit": "import sys; sys.exit(1)", "error": "1 / 0", "fine": "import sys; print(sys.argv)"}


@pytest.mark.parametrize("kind", STATUS)
def test_what_follows_a_training_cannot_make_it_fail(root, tmp_path, kind):
    (tmp_path / "next.py").write_text(STATUS[kind])
    done = subprocess.run(starts(tmp_path), env=paths(root), capture_output=True, text=True)
    assert done.returncode == 0
    assert ("its own job will tell" in done.stderr) == (kind != "fine")
    assert kind != "fine" or done.stdout == f"{[str(tmp_path / 'next.py'), '--sets', 'a']}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_after_a_training_leaves_it_done(root, tmp_path, number):
    lines = ("import pathlib, time", f"pathlib.Path({str(tmp_path / 'on')!r}).touch()", "time.sleep(60)")
    (tmp_path / "next.py").write_text("\n".join(lines))
    process = subprocess.Popen(starts(tmp_path), env=paths(root))
    while not (tmp_path / "on").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=30) == 0


def starts(folder):
    program = "import sys; from crossalign.engine.programs import run_then; run_then(sys.argv[1:])"
    return [sys.executable, "-c", program, str(folder / "next.py"), "--sets", "a"]


def paths(root):
    return os.environ | {"PYTHONPATH": str(root / "scripts")}


def test_code_of_the_evaluation_is_none_of_the_training(root):
    """Else another way to count would train all models again."""
    files = {file.name for file in closure(root / "scripts/finetune.py")}
    assert "task_model.py" in files and files.isdisjoint({"evaluate.py", "evaluation.py", "ahead.py"})
