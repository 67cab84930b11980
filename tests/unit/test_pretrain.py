"""Pretraining: it learns, it resumes to the last bit, the library loads what it writes, and bad input is told."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.pretrain_toys import SHAPE, make_text, make_texts, make_tokenizer, same, settings, start, values

from crossalign.engine.checkpoints import Checkpoints, InterruptedTraining, Saving
from crossalign.engine.corpus import FILLER, encode_texts
from crossalign.engine.finetune import FineTuning
from crossalign.engine.folders import load_encoder, load_head, load_weights
from crossalign.engine.lm_heads import masked_loss
from crossalign.engine.parts import run_encoder
from crossalign.engine.pretrain import Pretraining
from crossalign.engine.pretrain_job import Job, new_config, pretrain, starting_point
from crossalign.engine.settings import Settings
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pretrain")


@pytest.fixture(scope="module")
def texts(folder):
    return make_texts(folder)


@pytest.fixture(scope="module")
def dev(folder):
    """The same phrases as in text aa in another order, and letters at random."""
    return {"aa": [make_text(folder / "aa-dev.txt", 1, 60)], "zz": [make_text(folder / "zz.txt", 9, 40)]}


def run(folder, texts, out, begun=None, places=None, **changes):
    """Pretrain a new model, or the one that is given; `places` are further fields of the job."""
    return pretrain(begun or start(folder), Job(texts, settings(**changes), out, **(places or {})), CPU)


@pytest.mark.parametrize("norm", ["post", "normformer"])
def test_the_loss_falls(folder, texts, tmp_path, norm):
    """The toy text repeats fixed phrases, so that neighbours tell a hidden word."""
    fast = {"steps": 300, "batch": 8, "learning_rate": 1e-2, "warmup": 0.1, "dropout": 0.0}
    report = run(folder, texts, tmp_path / "m", start(folder, norm), **fast)
    losses = [loss for _, loss in report["loss"]]
    assert np.mean(losses[-20:]) < report["unigram_entropy"] - 0.2 < losses[0]
    assert report["tokens_seen"] == 300 * 8 * 16
    written = json.loads((tmp_path / "m/training.json").read_text())
    assert written["loss"] == report["loss"]
    assert written["sha256"] == hashlib.sha256((tmp_path / "m/model.safetensors").read_bytes()).hexdigest()


def test_the_seed_decides_and_looking_at_dev_texts_does_not(folder, texts, dev, tmp_path):
    run(folder, texts, tmp_path / "a")
    run(folder, texts, tmp_path / "b", places={"dev": dev})
    run(folder, texts, tmp_path / "c", seed=2)
    assert same(tmp_path / "a", tmp_path / "b")
    assert not same(tmp_path / "a", tmp_path / "c")
    # Segments that the text lacks start like the first.
    table = load_weights(tmp_path / "a").embeddings.segment.weight
    assert len(table) == 2 and torch.equal(table[0], table[1])
    # They stay so in a second stage; a model whose segments differ keeps its second one.
    for second in (0.0, 1.0):
        begun = starting_point(tmp_path / "a", None, "post", None, {}, 1)
        begun.encoder.embeddings.segment.weight.data[1] += second
        run(folder, texts, tmp_path / "on", begun)
        after = load_weights(tmp_path / "on").embeddings.segment.weight
        assert not torch.equal(after[0], table[0]) and torch.equal(after[1], after[0]) != bool(second)
        # Weight decay alone moves it.
        assert not second or torch.allclose(after[1], table[1] + 1, atol=1e-3)


def test_a_checkpoint_of_other_code_is_not_used(folder, texts, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(Checkpoints, "remove", lambda self: None)
    places = {"checkpoints": tmp_path / "c", "saving": Saving(steps=2)}
    resumed = [run(folder, texts, tmp_path / "m", places=places | {"code_hash": code})["resumed"] for code in "112"]
    assert resumed == [0, 1, 0]
    assert "training starts over" in caplog.text


@pytest.mark.parametrize(
    ("norm", "family", "style", "library"),
    [
        ("post", "bert", "bert", "BertForMaskedLM"),
        ("post", "xlm-roberta", "xlm-roberta", "XLMRobertaForMaskedLM"),
        ("pre", None, "xlm-roberta", "RobertaPreLayerNormForMaskedLM"),
    ],
)
def test_the_library_computes_the_same_scores(folder, texts, tmp_path, norm, family, style, library):
    import transformers

    run(folder, texts, tmp_path / "m", start(folder, norm, family, style))
    theirs, info = getattr(transformers, library).from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    encoder, _ = load_encoder(tmp_path / "m")
    head = load_head(tmp_path / "m", encoder.config)
    ids = torch.randint(6, encoder.config.vocab_size, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        states = encoder.eval()(ids).reshape(27, -1)
        ours = torch.nn.functional.linear(head.inner(states), encoder.embeddings.word.weight, head.bias)
        expected = theirs.eval()(ids).logits.reshape(27, -1)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


def test_line_by_line_the_loss_is_the_librarys(folder, texts, tmp_path):
    """Its model gets the same lines padded, as its own script pads them."""
    import transformers

    run(folder, texts, tmp_path / "m")
    begun = starting_point(tmp_path / "m", None, "post", None, {}, 1)
    files = encode_texts(texts, begun.tokenizer, tmp_path)
    how = settings(line_by_line=True, batch=6, block=12, dropout=0.0)
    training = Pretraining(begun.encoder, begun.head, begun.tokenizer, files, how)
    members = training.store.members(0)
    ids, places, truth = training.store.rows(members)
    real, labels = ids != FILLER, np.full(ids.shape, -100)
    rows, columns = np.nonzero(truth >= 0)
    labels[rows, places[rows, columns]] = truth[rows, columns]
    assert not real.all() and (labels >= 0).any()
    batch, states = run_encoder(begun.encoder, training.store, members, CPU)
    ours = masked_loss(begun.head, states, begun.encoder.word.weight, batch["places"], batch["truth"])
    theirs = transformers.BertForMaskedLM.from_pretrained(tmp_path / "m").eval()
    padded, labels = torch.from_numpy(np.where(real, ids, 0)), torch.from_numpy(labels)
    expected = theirs(padded, attention_mask=torch.from_numpy(real).long(), labels=labels).loss
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_going_on_from_a_model_keeps_its_head_and_shape(folder, texts, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    run(folder, texts, first)
    begun = starting_point(first, None, "post", None, {}, 1)
    assert torch.equal(begun.head.bias, load_head(first, begun.encoder.config).bias)
    run(folder, {"bb": texts["bb"]}, second, begun, steps=3)
    assert load_weights(second).config == load_weights(first).config
    assert not same(first, second)
    with pytest.raises(UserError, match="--init keeps the shape"):
        starting_point(first, None, "post", None, {"layers": 2}, 1)


def test_bf16_folders_are_half_as_large_and_load(folder, texts, tmp_path):
    for store in ("fp32", "bf16"):
        run(folder, texts, tmp_path / store, start(folder, hidden=64), {"store": store}, steps=2)
    full, half = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("fp32", "bf16"))
    assert half < 0.6 * full
    for name, value in values(tmp_path / "bf16").items():
        torch.testing.assert_close(value, values(tmp_path / "fp32")[name], atol=1e-2, rtol=1e-2)


def test_pairs_of_texts_fit_a_model_with_one_kind_of_segment(folder, texts, tmp_path):
    """A vocabulary of BERT's kind numbers them, whatever model it is given to."""
    run(folder, texts, tmp_path / "m", start(folder, "normformer"), steps=1)
    encoder, tokenizer = load_encoder(tmp_path / "m")
    records = [{"id": "1", "premise": "abc", "hypothesis": "abd", "label": "neutral"}] * 4
    how = Settings(epochs=1, batch=2, selection="last", max_length=16)
    tuning = FineTuning(encoder, tokenizer, get_task("nli"), records, [], how)
    assert tuning.train_store.types.max() == 1
    assert torch.isfinite(tuning.engine.losses).all() and tuning.run() is not None


# ---- dev texts ------------------------------------------------------------------------------------------------------


def measured(model, texts, dev, folder):
    """Dev losses of a written model, by a run of another seed: the masks are the same."""
    begun = starting_point(model, None, "post", None, {}, 7)
    files, dev = (encode_texts(some, begun.tokenizer, folder) for some in (texts, dev))
    again = Pretraining(begun.encoder, begun.head, begun.tokenizer, files, settings(seed=7), dev=dev)
    return again.score()


def test_the_best_weights_are_kept_through_an_interruption(folder, texts, dev, tmp_path, monkeypatch):
    # A rate so high that the dev loss has its lowest point before the end.
    rough = {"steps": 12, "learning_rate": 3e-2, "warmup": 0.5, "dev_every": 2, "selection": "best", "dropout": 0.1}
    some, dev = {"bb": texts["bb"]}, {"zz": dev["zz"]}
    report = run(folder, some, tmp_path / "whole", places={"dev": dev}, **rough)
    losses = [point["loss"] for point in report["dev"]]
    assert min(losses) < losses[-1]
    assert measured(tmp_path / "whole", some, dev, tmp_path)[0] == pytest.approx(min(losses), abs=2e-5)
    plain, saved = Checkpoints.due, []

    def stop(self):
        if self.progress.step in (5, 11) and self.progress.step not in saved:
            saved.append(self.progress.step)
            self.stop_requested = True
        return plain(self)

    monkeypatch.setattr(Checkpoints, "due", stop)
    places = {"dev": dev, "checkpoints": tmp_path / "c"}
    for _ in range(2):
        with pytest.raises(InterruptedTraining):
            run(folder, some, tmp_path / "parts", places=places, **rough)
    resumed = run(folder, some, tmp_path / "parts", places=places, **rough)
    assert resumed["resumed"] == 2 and resumed["dev"] == report["dev"]
    assert same(tmp_path / "whole", tmp_path / "parts")


def test_a_dev_loss_that_is_no_number_is_not_the_best(folder, texts, dev, tmp_path, monkeypatch):
    losses = iter([3.0, float("nan"), 2.0, float("nan")])
    monkeypatch.setattr(Pretraining, "score", lambda self: (next(losses), {}))
    kept, plain = [], Pretraining._measure_dev

    def noting(self):
        before = self.best
        plain(self)
        kept.append(self.best is not before)

    monkeypatch.setattr(Pretraining, "_measure_dev", noting)
    run(folder, texts, tmp_path / "m", places={"dev": dev}, steps=3, dev_every=1, selection="best")
    assert kept == [True, False, True, False]


# ---- what is refused, and the program -------------------------------------------------------------------------------


def test_epochs_in_place_of_steps(folder, texts, tmp_path):
    report = run(folder, texts, tmp_path / "m", places={"epochs": 1.5}, steps=1)
    tokens = sum(text["tokens"] for text in report["texts"].values())
    assert report["settings"]["steps"] == -(-3 * tokens // (2 * 4 * 15))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": 64}, "positions for 32 only"),
        ({"selection": "best"}, "selection best chooses by the loss on dev texts"),
    ],
)
def test_bad_settings(folder, texts, tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        run(folder, texts, tmp_path / "m", **change)
    assert not (tmp_path / "m").exists()


def test_bad_starts(folder):
    tokenizer = start(folder).tokenizer
    for wrong, message in (
        (lambda: starting_point(None, None, "post", None, {}, 1), "needs --tokenizer"),
        (lambda: new_config(tokenizer, "pre", "bert", {}), "family 'bert' has post-norm, not pre"),
    ):
        with pytest.raises(UserError, match=message):
            wrong()


def test_a_tokenizer_of_another_model(folder, texts, tmp_path):
    make_tokenizer(tmp_path / "small.json", texts, size=60)
    small, mixed = start(tmp_path, style="small"), start(folder)
    mixed.encoder, mixed.head = small.encoder, small.head
    with pytest.raises(UserError, match="the tokenizer has 90 pieces, the model 60 embeddings; they do not belong"):
        run(folder, texts, tmp_path / "m", mixed)


def test_the_program(folder, texts, tmp_path, root):
    """The model keeps the dropout that is given for later, not what it was pretrained with."""
    command = [
        sys.executable, str(root / "scripts/pretrain.py"), "--tokenizer", str(folder / "xlm-roberta.json"),
        "--texts", *(f"{name}={paths[0]}" for name, paths in texts.items()), "--out", str(tmp_path / "m"),
        "--device", "cpu", "--settings",
    ]  # fmt: skip
    given = {"norm": "normformer", "residual_scaling": True, "steps": 3, "batch": 4, "block": 16, "epsilon": 1e-8}
    given |= SHAPE | {"dropout": 0.2, "attention_dropout": 0.0, "tuning_dropout": 0.3}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, json.dumps(given)], env=environment, check=True)
    config = load_weights(tmp_path / "m").config
    assert config.residual_scaling and (config.hidden_dropout, config.attention_dropout) == (0.3, 0.3)
    settings = json.loads((tmp_path / "m/training.json").read_text())["settings"]
    assert (settings["epsilon"], settings["attention_dropout"]) == (1e-8, 0.0)
    wrong = subprocess.run([*command, "{}"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr == "error: one of the settings steps and epochs is needed\n"


def test_static_and_split_batches_train_alike(folder, texts, tmp_path):
    """What a GPU does: static shapes, and batches in pieces when memory is short."""
    losses, pieces = {}, {}
    for mode in ("exact", "static", "split"):
        begun = start(folder)
        files = encode_texts(texts, begun.tokenizer, tmp_path)
        one = Pretraining(begun.encoder, begun.head, begun.tokenizer, files, settings(batch=5, dropout=0.0))
        one.engine.static = mode != "exact"
        one.engine.micro = 2 if mode == "split" else 1
        plain, pieces[mode] = one.store.assemble, []

        def noting(members, *more, plain=plain, seen=pieces[mode]):
            seen.append(len(members))
            return plain(members, *more)

        one.store.assemble = noting
        one.run()
        losses[mode] = one.engine.losses.clone()
    assert pieces["static"] == [5] * 6 and pieces["split"] == [3, 2] * 6
    assert losses["exact"].std() > 0.01
    torch.testing.assert_close(losses["static"], losses["exact"])
    torch.testing.assert_close(losses["split"], losses["exact"])
