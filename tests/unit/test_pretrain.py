"""Pretraining: it learns, it resumes to the last bit, the library loads what it writes, and bad input is told."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from tests.pretrain_toys import SHAPE, make_text, make_tokenizer

from crossalign.engine.huggingface import load_encoder, load_weights
from crossalign.engine.lm_heads import MaskedHead, load_head, masked_loss
from crossalign.engine.pretrain import PretrainSettings
from crossalign.engine.pretrain_job import Job, new_config, pretrain, starting_point
from crossalign.engine.saving import InterruptedTraining, Saving
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrain")
    texts = {"aa": [make_text(folder / "aa.txt", 1, 300)], "bb": [make_text(folder / "bb.txt", 2, 200)]}
    make_tokenizer(folder / "tokenizer.json", texts)
    make_tokenizer(folder / "xlmr.json", texts, "xlm-roberta")
    return folder, texts


def start(place, norm="post", family=None, tokenizer="tokenizer.json", **shape):
    return starting_point(None, place[0] / tokenizer, norm, family, {**SHAPE, **shape}, 1)


def settings(**changes):
    return PretrainSettings(**{"steps": 6, "batch": 4, "block": 16, "learning_rate": 1e-3, **changes})


def values(folder):
    encoder = load_weights(folder)
    return {**dict(encoder.named_parameters()), **dict(load_head(folder, encoder.config).named_parameters())}


def same(left, right):
    left, right = values(left), values(right)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("norm", ["post", "pre", "normformer"])
def test_the_loss_falls(place, tmp_path, norm):
    """The toy text repeats fixed phrases, so that neighbours tell a hidden word."""
    job = Job(place[1], settings(steps=300, batch=8, learning_rate=1e-2, warmup=0.1, dropout=0.0), tmp_path / "m")
    report = pretrain(start(place, norm), job, CPU)
    losses = [loss for _, loss in report["loss"]]
    assert np.mean(losses[-20:]) < report["unigram_entropy"] - 0.2 < losses[0]
    assert report["tokens_seen"] == 300 * 8 * 16 and report["tokens_per_second"] > 0
    written = json.loads((tmp_path / "m/training.json").read_text())
    assert written["loss"] == report["loss"]
    assert written["sha256"] == hashlib.sha256((tmp_path / "m/model.safetensors").read_bytes()).hexdigest()


def test_the_same_seed_gives_the_same_model_and_another_seed_another(place, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        pretrain(start(place), Job(place[1], settings(seed=seed), tmp_path / name), CPU)
    assert same(tmp_path / "a", tmp_path / "b")
    assert not same(tmp_path / "a", tmp_path / "c")


def test_going_on_after_an_interruption_gives_the_same_bits(place, tmp_path, monkeypatch):
    """Stopped after every second step, with dropout, against a run in one go."""
    pretrain(start(place), Job(place[1], settings(), tmp_path / "whole"), CPU)
    from crossalign.engine.steps import Engine

    plain, count = Engine.step, [0]

    def step(self, *members):
        plain(self, *members)
        count[0] += 1
        if count[0] % 2 == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    monkeypatch.setattr(Engine, "step", step)
    job = Job(place[1], settings(), tmp_path / "parts", checkpoints=tmp_path / "checkpoints", recipe="r")
    stops = 0
    while True:
        try:
            report = pretrain(start(place), job, CPU)
            break
        except InterruptedTraining:
            stops += 1
    assert stops == 2 and report["resumed"] == 2
    assert same(tmp_path / "whole", tmp_path / "parts")
    assert not (tmp_path / "checkpoints/checkpoint.safetensors").exists()


def test_a_checkpoint_of_other_settings_is_not_used(place, tmp_path, caplog):
    def stopped(recipe):
        job = Job(
            place[1], settings(), tmp_path / "m", checkpoints=tmp_path / "c", recipe=recipe, saving=Saving(steps=2)
        )
        return pretrain(start(place), job, CPU)

    from crossalign.engine.checkpoints import Checkpoints

    keep, Checkpoints.remove = Checkpoints.remove, lambda self: None
    try:
        assert stopped("one")["resumed"] == 0
        assert stopped("one")["resumed"] == 1
        assert stopped("two")["resumed"] == 0
    finally:
        Checkpoints.remove = keep
    assert "training starts over" in caplog.text


@pytest.mark.parametrize(
    ("norm", "family", "tokenizer", "library"),
    [
        ("post", "bert", "tokenizer.json", "BertForMaskedLM"),
        ("post", "xlm-roberta", "xlmr.json", "XLMRobertaForMaskedLM"),
        ("pre", None, "xlmr.json", "RobertaPreLayerNormForMaskedLM"),
    ],
)
def test_the_library_computes_the_same_scores(place, tmp_path, norm, family, tokenizer, library):
    import transformers

    begun = start(place, norm, family, tokenizer)
    pretrain(begun, Job(place[1], settings(), tmp_path / "m"), CPU)
    theirs, info = getattr(transformers, library).from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    encoder, _ = load_encoder(tmp_path / "m")
    head = load_head(tmp_path / "m", encoder.config)
    ids = torch.randint(6, encoder.config.vocab_size, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        states = encoder.eval()(ids)
        ours = head(states.reshape(27, -1), encoder.embeddings.word.weight)
        expected = theirs.eval()(ids).logits.reshape(27, -1)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


def test_going_on_from_a_model_keeps_its_head_and_shape(place, tmp_path):
    pretrain(start(place), Job(place[1], settings(), tmp_path / "first"), CPU)
    begun = starting_point(tmp_path / "first", None, "post", None, {}, 1)
    assert torch.equal(begun.head.bias, load_head(tmp_path / "first", begun.encoder.config).bias)
    pretrain(begun, Job({"bb": place[1]["bb"]}, settings(steps=3), tmp_path / "second"), CPU)
    assert load_weights(tmp_path / "second").config == load_weights(tmp_path / "first").config
    assert not same(tmp_path / "first", tmp_path / "second")
    with pytest.raises(UserError, match="--init keeps the shape"):
        starting_point(tmp_path / "first", None, "post", None, {"layers": 2}, 1)


def test_bf16_folders_are_half_as_large_and_load(place, tmp_path):
    begun = start(place, hidden=64)
    pretrain(begun, Job(place[1], settings(steps=2), tmp_path / "full"), CPU)
    pretrain(start(place, hidden=64), Job(place[1], settings(steps=2), tmp_path / "half", store="bf16"), CPU)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("full", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    for name, value in values(tmp_path / "half").items():
        torch.testing.assert_close(value, values(tmp_path / "full")[name], atol=1e-2, rtol=1e-2)


def test_loss_counts_only_the_hidden_places():
    from tests.engine_toys import CONFIG

    generator = torch.Generator().manual_seed(1)
    head = MaskedHead(CONFIG)
    states = torch.randn(2, 5, 16, generator=generator)
    words = torch.randn(60, 16, generator=generator)
    places, truth = torch.tensor([[1, 3], [4, 0]]), torch.tensor([[7, 8], [9, -100]])
    scores = [head(states[row, place][None], words) for row, place in ((0, 1), (0, 3), (1, 4))]
    expected = torch.nn.functional.cross_entropy(torch.cat(scores), torch.tensor([7, 8, 9]))
    torch.testing.assert_close(masked_loss(head, states, words, places, truth), expected)
    assert masked_loss(head, states, words, places, torch.full((2, 2), -100)) == 0


def test_segments_that_the_text_lacks_start_like_the_first(place, tmp_path):
    pretrain(start(place), Job(place[1], settings(steps=2), tmp_path / "m"), CPU)
    table = load_weights(tmp_path / "m").embeddings.segment.weight
    assert len(table) == 2 and torch.equal(table[0], table[1])


def test_positions_may_begin_as_waves(place, tmp_path):
    """Only they differ from a usual start; neighbours are alike; means do not tell lengths; checkpoints differ."""
    usual, waves = start(place), start(place, position_waves=0.1)
    table = waves.encoder.embeddings.position.weight.detach()
    assert table.abs().max() <= 0.1 and table.square().mean().sqrt() == pytest.approx(0.1 / 2**0.5, rel=0.05)
    near, far = (torch.nn.functional.cosine_similarity(table[5], table[5 + n], 0) for n in (1, 20))
    assert near > 0.4 > 0.1 > far
    assert all(table[:length].mean(0).square().mean().sqrt() < 0.01 for length in (16, 20, len(table)))
    others = zip(usual.encoder.named_parameters(), waves.encoder.named_parameters(), strict=True)
    assert [name for (name, a), (_, b) in others if not torch.equal(a, b)] == ["embeddings.position.weight"]
    assert usual.identity != waves.identity
    with pytest.raises(UserError, match="--position-waves: the positions of a causal model"):
        make_tokenizer(tmp_path / "xglm.json", place[1], "xglm")
        starting_point(None, tmp_path / "xglm.json", "post", None, {**SHAPE, "position_waves": 0.1}, 1, "clm")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "--steps 0"),
        ({"learning_rate": 0.0}, "--learning-rate 0.0: expected a number above 0"),
        ({"dropout": 1.0}, "dropout 1.0"),
        ({"masking": 1.5}, "--masking 1.5: expected a number above 0 and below 1"),
        ({"block": 64}, "positions for 32 only"),
    ],
)
def test_bad_settings(place, tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        pretrain(start(place), Job(place[1], settings(**change), tmp_path / "m"), CPU)


def test_bad_starts(place, tmp_path):
    tokenizer = start(place).tokenizer
    with pytest.raises(UserError, match="needs --tokenizer"):
        starting_point(None, None, "post", None, {}, 1)
    with pytest.raises(UserError, match="norm 'mid' is not one of post, pre, normformer"):
        new_config(tokenizer, "mid", None, {})
    with pytest.raises(UserError, match="family 'bert' has post-norm, not pre"):
        new_config(tokenizer, "pre", "bert", {})
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read as a tokenizer"):
        starting_point(None, tmp_path / "t.json", "post", None, {}, 1)


def test_a_loss_that_breaks_is_told(place, tmp_path):
    begun = start(place)
    with torch.no_grad():
        begun.head.bias[3] = float("nan")
    with pytest.raises(UserError, match="the loss is nan at step 1"):
        pretrain(begun, Job(place[1], settings(), tmp_path / "m"), CPU)
    assert not (tmp_path / "m").exists()


def test_the_program(place, tmp_path, root):
    """The command line writes a folder; SIGTERM ends it with 75 and a checkpoint, and the next call goes on."""
    command = [
        sys.executable, str(root / "scripts/pretrain.py"), "--tokenizer", str(place[0] / "tokenizer.json"),
        "--texts", *(f"{name}={paths[0]}" for name, paths in place[1].items()), "--out", str(tmp_path / "m"),
        "--hidden", "16", "--layers", "2", "--heads", "2", "--intermediate", "32", "--positions", "32",
        "--steps", "400", "--batch", "4", "--block", "16", "--checkpoints", str(tmp_path / "c"), "--device", "cpu",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("step 20 "):
            process.terminate()
            break
    rest = process.stderr.read()
    assert process.wait() == 75 and "stopped by SIGTERM at step" in rest
    assert (tmp_path / "c/checkpoint.safetensors").exists() and not (tmp_path / "m").exists()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "going on at step" in done.stderr
    assert json.loads((tmp_path / "m/training.json").read_text())["resumed"] == 1
    wrong = subprocess.run([*command, "--objective", "clm"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr.startswith("error: a model of type 'xglm' wants the special tokens")
    wrong = subprocess.run([*command, "--epochs", "2"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr == "error: give either --steps or --epochs\n"


def test_static_and_split_batches_train_alike(place, tmp_path):
    """What a GPU does: static shapes, and batches in pieces when memory is short."""
    from crossalign.engine.corpus import encode_texts
    from crossalign.engine.pretrain import Pretraining

    losses, pieces = {}, {}
    for mode in ("exact", "static", "split"):
        begun = start(place)
        files = encode_texts(place[1], begun.tokenizer, tmp_path)
        run = Pretraining(begun.encoder, begun.head, begun.tokenizer, files, settings(batch=5, dropout=0.0))
        run.engine.static = mode != "exact"
        run.engine.micro = 2 if mode == "split" else 1
        seen = pieces.setdefault(mode, [])
        plain = run.store.assemble
        run.store.assemble = lambda members, *more, plain=plain, seen=seen: (
            seen.append(len(members)),
            plain(members, *more),
        )[1]
        run.run()
        losses[mode] = run.engine.losses.clone()
    assert pieces["static"] == [5] * 6 and pieces["split"] == [3, 2] * 6
    assert losses["exact"].std() > 0.01
    torch.testing.assert_close(losses["static"], losses["exact"])
    torch.testing.assert_close(losses["split"], losses["exact"])
