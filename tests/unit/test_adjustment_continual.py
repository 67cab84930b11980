"""Equation 2: the adjustment as a second loss of a fine-tuning; and both command-line programs."""

import json
import sys

import pytest
import torch
from tests.engine_toys import ToyTask, toy_records
from tests.unit.adjustment_toys import VOCABULARY, batch_of, toy_files, toy_model, toy_tokenizer

from crossalign.engine.adjust import ContinualSettings, continual, load_reference
from crossalign.engine.finetune import FineTuning
from crossalign.engine.folders import load_encoder, save_encoder
from crossalign.engine.pairs import read_sample
from crossalign.engine.settings import Settings
from crossalign.runtime.errors import UserError, run_main

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A pool with links, an original and an adjusted model, and a treebank."""
    folder = tmp_path_factory.mktemp("continual")
    toy_files(folder, 40)
    tokenizer = toy_tokenizer(folder)
    save_encoder(folder / "original", toy_model(2, hidden_dropout=0.1), tokenizer)
    save_encoder(folder / "adjusted", toy_model(1, hidden_dropout=0.1), tokenizer)
    lines = []
    for sentence in (["ka", "kalo", "."], ["ranumi", "lolo", "pe", "."]) * 6:
        tags = ["PUNCT" if word == "." else "NOUN" if len(word) > 2 else "VERB" for word in sentence]
        words = list(zip(sentence, tags, strict=True))
        lines += [f"{i}\t{word}\t_\t{tag}\t_\t_\t{i - 1}\tdep\t_\t_" for i, (word, tag) in enumerate(words, 1)] + [""]
    (folder / "train.conllu").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def auxiliary(place, keep="auto", **more):
    sample = read_sample(place / "pool.tsv", place / "pool.pharaoh", 30000, 1)
    settings = ContinualSettings(**{"batch": 4, **more})
    return continual(settings, sample, toy_model(2), toy_tokenizer(place), 1, CPU, keep=keep)[0]


def tuning(place, folder=None, saving=None, keep="auto", epochs=2, **more):
    settings = Settings(learning_rate=1e-3, batch=8, epochs=epochs, selection="last")
    records = toy_records(30, vocabulary=len(VOCABULARY))
    return FineTuning(
        toy_model(1), None, ToyTask(), records, [], settings, checkpoints=folder,
        auxiliary=auxiliary(place, keep, **more), saving=saving,
    )  # fmt: skip


def objective(run, members):
    """The terms of a batch of pairs for the model and the slices of a fine-tuning."""
    batch, encode = batch_of(run.model.encoder, run.auxiliary.batches.store, members)
    with torch.no_grad():
        terms = run.auxiliary.loss.terms(encode, batch)
        return [float(term) for term in terms], float(run.auxiliary.loss(encode, batch))


@pytest.mark.parametrize("keep", ["table", "encoder"])
@pytest.mark.parametrize("scope", ["alignment", "both"])
def test_what_alpha_weighs(place, scope, keep):
    run = tuning(place, keep=keep, alpha=0.01, alpha_scope=scope)
    first = run.auxiliary.batches.at(0)
    (aligned, held), loss = objective(run, first)
    assert aligned > 0.1
    assert held > 0.1
    expected = 0.01 * aligned + (held if scope == "alignment" else 0.01 * held)
    assert loss == pytest.approx(expected, rel=1e-5)
    plain = FineTuning(
        toy_model(1), None, ToyTask(), toy_records(30, vocabulary=len(VOCABULARY)), [], run.settings
    )  # fmt: skip
    batch = run.stream.epoch(0)[0]
    plain.engine.step(batch)
    run.engine.step(batch, first)
    assert float(run.engine.losses[0]) == pytest.approx(float(plain.engine.losses[0]) + expected, rel=1e-4)


def test_the_reference_must_fit(place, tmp_path):
    save_encoder(tmp_path / "wide", toy_model(2, hidden=32), toy_tokenizer(tmp_path))
    with pytest.raises(UserError, match=r"wide: hidden is 32, but the fine-tuned model has 16; give its original"):
        load_reference(tmp_path / "wide", toy_model(1))


# ---- programs -------------------------------------------------------------------------------------------------------


def run_program(name, arguments, monkeypatch):
    module = __import__(name)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
    run_main(module.main)


def adjust_arguments(place, out, *more, **settings):
    settings = {"pairs": 30, "batch": 8, "learning_rate": 1e-3} | settings
    return [
        "--model", place / "original", "--bitext", place / "pool.tsv", "--links", place / "pool.pharaoh",
        "--out", out, "--checkpoints", out / "checkpoints", "--code-hash", "abc",
        "--device", "cpu", "--settings", json.dumps(settings), *more,
    ]  # fmt: skip


def test_adjust_writes_a_model_folder(place, tmp_path, monkeypatch):
    run_program("adjust", adjust_arguments(place, tmp_path / "out", tokens="words"), monkeypatch)
    out = tmp_path / "out"
    names = {path.name for path in out.iterdir() if path.is_file()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "training.json"}
    encoder, tokenizer = load_encoder(out)
    assert encoder.config == toy_model(2, hidden_dropout=0.1).config
    assert tokenizer.get_vocab_size() == len(VOCABULARY)
    assert not torch.equal(encoder.layers[0].up.weight, toy_model(2).layers[0].up.weight)
    report = json.loads((out / "training.json").read_text())
    assert report["settings"]["tokens"] == "words"
    assert report["sentence_pairs"]["sampled"] == 30
    assert report["sentence_pairs"]["used"] + report["sentence_pairs"]["without links"] == 30
    assert report["steps"] == len(report["loss"]) == 4
    assert len(report["inputs"]["links"]) == 64
    assert report["original_vectors"] == "computed once"
    run_program("adjust", adjust_arguments(place, tmp_path / "cut", "--rehearse", 1), monkeypatch)
    cut = json.loads((tmp_path / "cut/training.json").read_text())
    assert (cut["steps"], len(cut["loss"]), cut["rehearsal"]["planned_steps"]) == (1, 1, 4)


def finetune_arguments(place, out, *more):
    return [
        "--model", place / "adjusted", "--task", "pos", "--train", place / "train.conllu",
        "--settings", '{"selection": "last", "epochs": 2, "batch": 4}', "--out", out, "--device", "cpu", *more,
    ]  # fmt: skip


def test_finetune_with_continual_learning(place, tmp_path, monkeypatch):
    flags = ["--continual-bitext", place / "pool.tsv", "--continual-links", place / "pool.pharaoh"]
    flags += ["--continual-reference", place / "original", "--settings", '{"continual": {"batch": 8, "alpha": 0.02}}']
    run_program("finetune", finetune_arguments(place, tmp_path / "plain"), monkeypatch)
    run_program("finetune", finetune_arguments(place, tmp_path / "out", *flags), monkeypatch)
    plain, report = (json.loads((tmp_path / name / "training.json").read_text()) for name in ("plain", "out"))
    assert "continual" not in plain
    account = report["continual"]
    assert (account["alpha"], account["alpha_scope"]) == (0.02, "alignment")
    assert (account["batch"], account["sampled"]) == (8, 40)
    assert report["loss"][0] > plain["loss"][0] + 0.1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--settings", '{"continual": {"alpha": 1}}'],
            "needs --continual-bitext, --continual-links, --continual-reference",
        ),
        (["--continual-bitext", "pool.tsv"], "needs --continual-links, --continual-reference"),
    ],
)
def test_continual_learning_needs_all_its_files(place, tmp_path, monkeypatch, capsys, flags, message):
    with pytest.raises(SystemExit):
        run_program("finetune", finetune_arguments(place, tmp_path, *flags), monkeypatch)
    assert f"error: continual learning also {message}" in capsys.readouterr().err
