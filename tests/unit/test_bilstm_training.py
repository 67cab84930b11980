"""Training a BiLSTM: it learns, repeats itself, survives being killed, stops early, and writes what others read."""

import json
import re
import runpy
import sys
from collections import Counter
from io import StringIO

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from world_for_tests import small_settings

from crossalign.data.conllu import read_sentences, write_sentences
from crossalign.data.lines import write_rows
from crossalign.data.ner import FORMATS, read_ner
from crossalign.data.report import Report
from crossalign.engine.bilstm import Lexicon, Sizes
from crossalign.engine.bilstm_training import WordModel, WordTraining
from crossalign.engine.checkpoints import Saving
from crossalign.engine.settings import Settings
from crossalign.tasks.predictions import read_predictions
from crossalign.tasks.words import get_word_task
from demo_world import files as makers
from demo_world.settings import merge
from demo_world.world import World

SENTENCES = {"train": 160, "dev": 30, "test": 50}
SMALL = Sizes(layers=1, hidden=8, characters=6, words=6)
FAST = {"layers": 2, "hidden": 32, "characters": 16, "words": 16, "dropout": 0.2, "batch": 8}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Prepared sets of two languages of the demo world: a treebank and named entities."""
    sizes = {"treebanks": {"wo_wtb": SENTENCES}, "wikiann": {"small": {**SENTENCES, "extra": 0}}}
    made = World(merge(small_settings(), sizes))
    folder = tmp_path_factory.mktemp("world")
    for split in SENTENCES:
        text = makers.treebank(made, "wo_wtb", split)
        with (folder / f"{split}.conllu").open("w", encoding="utf-8") as stream:
            write_sentences(read_sentences(StringIO(text), "wo_wtb"), stream)
        text = makers.wikiann(made, "ug", "small", split)
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as stream:
            write_rows(read_ner(StringIO(text), "ug", FORMATS["wikiann"], "ug", split, Report()), stream)
    return folder


def file_of(world, task, split):
    return world / f"{split}.{'jsonl' if task == 'ner' else 'conllu'}"


def training(world, task="pos", most=24, sizes=SMALL, dev=True, folder=None, saving=None, **settings):
    """A training on the first sentences of the world."""
    blank = get_word_task(task)
    records = blank.read(file_of(world, task, "train"))[:most]
    named = blank.with_labels_of(records)
    held = named.read(file_of(world, task, "dev"))[:8] if dev else []
    chosen = {"learning_rate": 2e-3, "batch": 8, "epochs": 3, "warmup": 0.0, "selection": "best" if dev else "last"}
    lexicon = Lexicon.of(named.words(records))
    return WordTraining(
        named, lexicon, sizes, records, held, Settings(**{**chosen, **settings}), checkpoints=folder, saving=saving
    )


def program(root, monkeypatch, *argv):
    monkeypatch.setattr(sys, "argv", ["train_bilstm.py", "--device", "cpu", *map(str, argv)])
    runpy.run_path(str(root / "scripts/train_bilstm.py"), run_name="__main__")


def written(folder):
    config, lists = (json.loads((folder / name).read_text()) for name in ("config.json", "vocabulary.json"))
    model = WordModel(get_word_task(config["task"], config["labels"]), Lexicon(**lists), Sizes(**config["sizes"]))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.eval()


def majority(records, key):
    counts = Counter(tag for record in records for tag in record[key])
    return 100 * max(counts.values()) / sum(counts.values())


def best_distance(records):
    """The best score of a parser that puts every head at the same distance."""
    distances = [head - place for record in records for place, head in enumerate(record["heads"], 1) if head]
    return 100 * max(Counter(distances).values()) / sum(len(record["heads"]) for record in records)


@pytest.mark.parametrize(("task", "epochs"), [("parsing", 6), ("ner", 10)])
def test_it_learns_the_demo_world(root, monkeypatch, world, tmp_path, task, epochs):
    kind = "ner/wikiann_ug" if task == "ner" else "trees/wo_wtb"
    sets = [f"{kind}/{split}={file_of(world, task, split)}" for split in ("test", "dev")]
    program(
        root, monkeypatch, "--task", task, "--train", file_of(world, task, "train"), "--dev",
        file_of(world, task, "dev"), "--sets", *sets, "--out", tmp_path,
        "--settings", json.dumps(FAST | {"epochs": epochs, "learning_rate": 5e-3}),
    )  # fmt: skip
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert list(scores) == [f"{kind}/dev", f"{kind}/test"]
    model = written(tmp_path / "model")
    records = model.task.read(file_of(world, task, "test"))
    values = scores[f"{kind}/test"]
    assert values["n"] == len(records) == SENTENCES["test"]
    if task == "parsing":
        assert values["UAS"] > best_distance(records) + 25 and values["LAS"] > majority(records, "relations") + 40
    else:
        # The most frequent tag, O, finds nothing.
        assert values["F1"] > 50
    report = json.loads((tmp_path / "training.json").read_text())
    assert report["best_epoch"] <= len(report["dev"]) == len(report["loss"]) <= epochs
    assert report["seconds"] > 0 and report["device"] == "cpu" and report["task"] == task
    best, metric = report["dev"][report["best_epoch"] - 1], model.task.metric
    assert best[metric] == pytest.approx(scores[f"{kind}/dev"][metric], abs=1e-3)
    # The predictions are those of the model that was written.
    head, rows = read_predictions(tmp_path / "predictions.jsonl.gz")
    assert head == {"task": task, "labels": list(model.task.labels)}
    examples = model.task.examples(records, model.lexicon)
    guesses = model.task.decode(examples, records, model.predict(examples, "cpu"))
    expected = [
        {"id": record["id"], **row} for record, row in zip(records, model.task.details(records, guesses), strict=True)
    ]
    assert rows[f"{kind}/test"] == json.loads(json.dumps(expected))


def weights(trained):
    return {name: value.clone() for name, value in trained.model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def test_the_seed_decides_everything(world):
    runs = {}
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        torch.manual_seed(len(runs))  # what was drawn before must not matter
        run = training(world, seed=seed)
        run.run()
        runs[name] = weights(run), run.progress.loss, run.progress.dev
    assert same(runs["first"][0], runs["again"][0]) and runs["first"][1:] == runs["again"][1:]
    assert not same(runs["first"][0], runs["other"][0])


@pytest.mark.parametrize(("task", "dies_at"), [("parsing", 5)])
def test_a_killed_training_ends_like_one_that_was_not(world, tmp_path, task, dies_at):
    whole = training(world, task)
    whole.run()
    broken = training(world, task, folder=tmp_path, saving=Saving(steps=2))
    step = broken.step

    def dying(number):
        if number == dies_at:
            raise KeyboardInterrupt
        step(number)

    broken.step = dying
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    resumed = training(world, task, folder=tmp_path, saving=Saving(steps=2))
    done, step_on = [], resumed.step
    resumed.step = lambda number: (done.append(number), step_on(number))
    resumed.run()
    assert done == list(range(dies_at // 2 * 2, 9))
    assert resumed.progress.resumed == 1
    assert same(weights(resumed), weights(whole))
    assert (resumed.progress.loss, resumed.progress.dev) == (whole.progress.loss, whole.progress.dev)
    # Another seed does not go on from it.
    other = training(world, task, folder=tmp_path, seed=9)
    assert other.checkpoints.resume() is None


def test_the_best_epoch_is_kept_and_patience_ends_the_training(world):
    run = training(world, epochs=9, patience=2)
    values = iter([50.0, 70.0, 60.0, 70.0, 99.0])
    states = []

    def scored(records, predictions):
        states.append({name: value.clone() for name, value in run.model.state_dict().items()})
        return {"accuracy": next(values)}

    run.task.score = scored
    run.run()
    assert [scores["accuracy"] for scores in run.progress.dev] == [50.0, 70.0, 60.0, 70.0]
    assert run.progress.best_epoch == 1
    assert same(weights(run), states[1]) and not same(weights(run), states[3])


def test_small_sets_are_passed_over_until_there_are_enough_steps(world):
    run = training(world, epochs=2, dev=False)
    run = WordTraining(
        run.task, run.model.lexicon, SMALL, run.task.read(file_of(world, "pos", "train"))[:20], [], run.settings,
        least_steps=7,
    )  # fmt: skip
    run.run()
    assert run.passes == 3 and run.progress.step == 2 * 9
    assert run.progress.best_epoch is None and len(run.progress.loss) == 2 and run.progress.dev == []
    seen = [run.stream.at(step) for step in range(18)]
    for pass_over in range(6):
        assert sorted(np.concatenate(seen[3 * pass_over : 3 * pass_over + 3])) == list(range(20))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--task", "nli"], "task 'nli': a BiLSTM does parsing, pos, ner only"),
        (["--task", "pos"], "early stopping needs a development set: give --dev FILE, or the setting patience: 0"),
        (["--task", "pos", "--dev", "TRAIN", "--sets", "=test"], "--sets =test: NAME=FILE was expected"),
        (["--task", "pos", "--settings", '{"hidden": 0}'], "hidden: 0 is not allowed; expected a whole number from 1"),
        (["--task", "pos", "--settings", '{"patience": 0}', "--train", "EMPTY"], "EMPTY: the file is empty"),
    ],
)
def test_bad_input_is_told_in_one_line(root, monkeypatch, world, tmp_path, capsys, argv, message):
    (tmp_path / "EMPTY").write_text("")
    places = {"EMPTY": tmp_path / "EMPTY", "TRAIN": world / "train.conllu"}
    given = [places.get(word, word) for word in argv]
    train = [] if "--train" in argv else ["--train", world / "train.conllu"]
    with pytest.raises(SystemExit) as ending:
        program(root, monkeypatch, *train, *given, "--out", tmp_path / "out")
    assert ending.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert re.search(message, error), error
    assert not (tmp_path / "out").exists()
