"""Checkpoints: atomic, bound to their training, written in time; a killed training ends like one never killed."""

import json
import logging
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from tests.engine_toys import ToyTask, all_values, die_at, same, toy_encoder, toy_records

from crossalign.engine.batches import Store, Stream
from crossalign.engine.checkpoints import Checkpoints, InterruptedTraining, Progress, Saving
from crossalign.engine.finetune import Auxiliary, FineTuning
from crossalign.engine.folders import save_encoder
from crossalign.engine.loop import History
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.settings import Settings
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import load_tuned_model, predict_all, read_info
from crossalign.engine.tokenizer import load_tokenizer, wordpiece_tokenizer
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor([3]), "empty": torch.zeros(0)}


@pytest.fixture(autouse=True)
def heard(caplog):
    caplog.set_level(logging.INFO)


def test_round_trip(tmp_path):
    (tmp_path / ".checkpoint.safetensors.abc.part").write_bytes(b"left by a kill")
    (tmp_path / "other").write_bytes(b"kept")
    checkpoints = Checkpoints(tmp_path, "r1", None, Progress(step=2, rehearsal={"score": 1.5}))
    assert checkpoints.resume() is None and checkpoints.progress.resumed == 0
    checkpoints.save(TENSORS)
    again = Checkpoints(tmp_path, "r1")
    tensors, read = again.resume(), again.progress
    assert (read.step, read.rehearsal, read.resumed) == (2, {"score": 1.5}, 1)
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.safetensors", "other"]
    checkpoints.remove()
    assert checkpoints.resume() is None
    nowhere = Checkpoints(None, "r")
    nowhere.save(TENSORS)
    assert nowhere.resume() is None


# ---- when they are written, and what SIGTERM does ------------------------------------------------------------------


def made(folder=None, saving=None):
    return Checkpoints(folder, "r", saving, History())


@pytest.mark.parametrize(
    ("saving", "expected"),
    [(Saving(steps=2), [False, True, False, True]), (Saving(seconds=0), [True] * 4), (None, [False] * 4)],
)
def test_when_a_checkpoint_is_due(saving, expected):
    one = made(saving=saving)
    due = []
    with one.running():
        for one.progress.step in (1, 2, 3, 4):
            due.append(one.due())
    assert due == expected


def test_sigterm_ends_the_training_after_its_checkpoint_only(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    one = made(tmp_path)
    with pytest.raises(InterruptedTraining, match=rf"at step 3; saved to {tmp_path}"), one.running():
        one.after_step(lambda: pytest.fail("nothing is due"))
        os.kill(os.getpid(), signal.SIGTERM)
        assert one.due()
        one.progress.loss.append(0.5)
        one.progress.step, one.progress.seconds = 3, 100.0
        one.after_step(lambda: {"x": torch.ones(2)})
    assert signal.getsignal(signal.SIGTERM) == before
    again = made(tmp_path)
    account = again.progress
    with again.running():
        assert again.resume()["x"].tolist() == [1, 1]
    # The account that the training holds is filled, not replaced, and the seconds add up.
    assert (account.step, account.loss, account.resumed) == (3, [0.5], 1)
    assert 100 < account.seconds < 130


# ---- a training that is killed --------------------------------------------------------------------------------------


class Dying(ToyTask):
    """Dies at a given loss computation, as a process does at a kill."""

    def __init__(self, at=None):
        self.left = at

    def loss(self, head, hidden_states, batch):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return super().loss(head, hidden_states, batch)


def tuning(folder, task, steps, auxiliary=False, **more):
    encoder = toy_encoder(hidden_dropout=0.1, attention_dropout=0.1)
    second = None
    if auxiliary:
        store = Store([{"input_ids": r["ids"]} for r in toy_records(11, seed=3)], {})
        second = Auxiliary(Stream(store, 4, 1, "auxiliary"), lambda encode, _: encode().square().mean(), 0.1)
    return FineTuning(
        encoder, None, task, toy_records(), toy_records(5, seed=2),
        Settings(learning_rate=1e-3, batch=8, epochs=3, **more),
        checkpoints=folder, code_hash="r", saving=Saving(steps=steps), auxiliary=second,
    )  # fmt: skip


@pytest.mark.parametrize("auxiliary", [False, True])
def test_any_interruption_ends_with_the_same_bits(tmp_path, auxiliary):
    whole = tuning(None, ToyTask(), None, auxiliary)
    whole.run()
    # 7 steps an epoch: within an epoch, at its last step, at the first of the next, at the very end.
    for at in (1, 6, 7, 8, 20):
        folder = tmp_path / str(at)
        with pytest.raises(KeyboardInterrupt):
            tuning(folder, Dying(at), 2, auxiliary).run()
        again = tuning(folder, ToyTask(), 2, auxiliary)
        again.run()
        assert again.progress.resumed == (at > 1)
        assert again.progress.loss == whole.progress.loss
        assert again.progress.dev == whole.progress.dev
        assert same(all_values(again.model), all_values(whole.model)), at


def test_a_batch_that_was_split_for_memory_stays_split(tmp_path, monkeypatch):
    """Else a training that is resumed would add its gradients up in another order."""
    monkeypatch.setattr("crossalign.engine.steps.restart_if_crowded", lambda: None)

    def hungry(folder):
        run = tuning(folder, ToyTask(), 1)
        plain = run.engine._run

        def once(members):
            if int(run.engine.step_number) == 3 and run.engine.micro == 1:
                raise torch.OutOfMemoryError("no memory")
            plain(members)

        run.engine._run = once
        return run

    whole = hungry(None)
    whole.run()
    die_at(hungry(tmp_path), 6)
    again = tuning(tmp_path, ToyTask(), 1)
    again.run()
    assert again.progress.resumed == 1 and again.engine.micro == whole.engine.micro == 2
    assert same(all_values(again.model), all_values(whole.model))


def test_a_corrected_dev_set_does_not_continue(tmp_path):
    """Its words are the same, its labels are not: scores of before would choose the epoch."""
    with pytest.raises(KeyboardInterrupt):
        tuning(tmp_path, Dying(10), 1).run()

    class Corrected(ToyTask):
        def examples(self, records, tokenizer, max_length, training=False):
            examples = super().examples(records, tokenizer, max_length, training)
            return examples if training else [{**one, "labels": [0] * len(one["labels"])} for one in examples]

    other = tuning(tmp_path, Corrected(), 1)
    other.run()
    assert other.progress.resumed == 0


def test_other_settings_do_not_continue(tmp_path, caplog):
    with pytest.raises(KeyboardInterrupt):
        tuning(tmp_path, Dying(10), 1).run()
    other = tuning(tmp_path, ToyTask(), 1, clip=0.3)
    other.run()
    assert other.progress.resumed == 0
    assert "not used, training starts over" in caplog.text


# ---- the program ---------------------------------------------------------------------------------------------------

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "runs", "big", "cats", "see", "##s", "a"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A tiny model folder and a tiny treebank."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    tokenizer = wordpiece_tokenizer(folder / "vocab.txt")
    config = EncoderConfig(vocab_size=13, hidden=16, layers=2, heads=2, intermediate=32, positions=32)
    save_encoder(folder / "model", fresh_encoder(config, 1), tokenizer)
    tags = {"the": "DET", "a": "DET", "dog": "NOUN", "cats": "NOUN", "big": "ADJ", "runs": "VERB", "see": "VERB"}
    sentences = [["the", "dog", "runs"], ["a", "big", "dog", "runs"], ["the", "big", "cats", "see", "a", "dog"]]
    for split, count in (("train", 60), ("dev", 6)):
        lines = []
        for number in range(count):
            lines.append(f"# sent_id = {number}")
            for i, word in enumerate(sentences[number % 3], start=1):
                lines.append(f"{i}\t{word}\t_\t{tags[word]}\t_\t_\t{i - 1}\t{'root' if i == 1 else 'dep'}\t_\t_")
            lines.append("")
        (folder / f"{split}.conllu").write_text("\n".join(lines) + "\n")
    return folder


def command(world, out, *more, **settings):
    settings = {"batch": 4, "epochs": 12, "learning_rate": 1e-3} | settings
    program = Path(__file__).resolve().parents[2] / "scripts" / "finetune.py"
    return [
        sys.executable, program, "--model", world / "model", "--task", "pos", "--train", world / "train.conllu",
        "--dev", world / "dev.conllu", "--out", out, "--checkpoints", out / "checkpoints", "--code-hash", "abc",
        "--device", "cpu", "--settings", json.dumps(settings), "--init", "random-1", *more,
    ]  # fmt: skip


def test_what_is_written_gives_the_dev_score_again_and_refuses_another_base(world, tmp_path, monkeypatch):
    out = tmp_path / "out"
    report, _ = finetuned(world, out, monkeypatch)
    info = read_info(out / "model", world / "model")
    task = get_task(info["task"], info["labels"])
    model = load_tuned_model(out / "model", world / "model", task)
    records = task.read(world / "dev.conllu")
    examples = task.examples(records, load_tokenizer(world / "model", 13), 32)
    score = task.score(records, task.decode(examples, records, predict_all(model, task, examples, "cpu")))
    assert score["accuracy"] == pytest.approx(report["dev"][report["best_epoch"] - 1]["accuracy"], abs=1e-4)
    assert info["init"] == "random-1"
    other = tmp_path / "other"
    config = EncoderConfig(vocab_size=13, hidden=16, layers=2, heads=2, intermediate=32, positions=32)
    save_encoder(other, fresh_encoder(config, 2), None)
    with pytest.raises(UserError, match=r"was tuned from 'model'; .*other holds other weights"):
        read_info(out / "model", other)
    with pytest.raises(UserError, match="is not a tuned model"):
        read_info(world, world / "model")


@pytest.mark.parametrize("flag", ["--save-steps", "--rehearse"])
def test_steps_are_counted_from_one(world, tmp_path, flag, monkeypatch, capsys):
    import finetune

    monkeypatch.setattr(sys, "argv", [str(part) for part in command(world, tmp_path, flag, 0)[1:]])
    with pytest.raises(SystemExit) as caught:
        finetune.main()
    assert caught.value.code == 2 and f"argument {flag}: 0 is less than 1" in capsys.readouterr().err


# ---- trainings that fail -------------------------------------------------------------------------------------------


def finetuned(world, out, monkeypatch, *more, **settings):
    """The account of a fine-tuning, by default of fifteen steps, and how many of them this process did."""
    import finetune
    from crossalign.engine.steps import Engine

    done, step = [], Engine.step
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "step", lambda self, *members: done.append(step(self, *members)))
        patch.setattr(sys, "argv", [str(part) for part in command(world, out, *more, **{"epochs": 1} | settings)[1:]])
        finetune.main()
    return json.loads((out / "training.json").read_text()), len(done)


def test_a_training_that_learns_nothing_starts_again_with_half_the_rate(world, tmp_path, monkeypatch):
    often, once, plain = (tmp_path / name for name in ("often", "once", "plain"))
    report, steps = finetuned(world, often, monkeypatch, restart_below=101)
    assert steps == 45 and [one["learning_rate"] for one in report["restarts"]] == [1e-3, 5e-4]
    assert report["settings"]["learning_rate"] == 2.5e-4 and report["steps"] == 15
    assert not list((often / "checkpoints").iterdir())
    # What comes out is what that rate gives, with nothing left of the attempts before.
    finetuned(world, once, monkeypatch, learning_rate=2.5e-4)
    assert (often / "model/model.safetensors").read_bytes() == (once / "model/model.safetensors").read_bytes()
    report, steps = finetuned(world, plain, monkeypatch, restart_below=1)
    assert steps == 15 and "restarts" not in report


def test_a_training_that_collapses_after_its_best_epoch_starts_again(world, tmp_path, monkeypatch):
    from crossalign.engine.finetune import FineTuning

    scores = iter([80.0, 1.0, 60.0, 70.0])
    monkeypatch.setattr(FineTuning, "score", lambda self: {self.task.metric: next(scores)})
    report, steps = finetuned(world, tmp_path, monkeypatch, restart_below=16, epochs=2)
    assert steps == 60 and [one["dev"] for one in report["restarts"]] == [1.0]
    assert [one["accuracy"] for one in report["dev"]] == [60.0, 70.0]


def test_killed_in_a_later_attempt_it_does_not_train_the_earlier_ones_again(world, tmp_path, monkeypatch):
    from crossalign.engine.steps import Engine

    number, step = iter(range(1, 100)), Engine.step

    def killing(self, *members):
        step(self, *members)
        if next(number) == 20:
            os.kill(os.getpid(), signal.SIGTERM)

    out, whole = tmp_path / "out", tmp_path / "whole"
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(Engine, "step", killing)
        finetuned(world, out, patch, restart_below=101)
    assert end.value.code == 75 and not (out / "training.json").exists()
    report, steps = finetuned(world, out, monkeypatch, restart_below=101)
    # Five steps of the second attempt were done.
    assert steps == 25
    full, _ = finetuned(world, whole, monkeypatch, restart_below=101)
    assert [one["dev"] for one in report["restarts"]] == [one["dev"] for one in full["restarts"]]
    assert (out / "model/model.safetensors").read_bytes() == (whole / "model/model.safetensors").read_bytes()


def test_a_rehearsal_does_not_start_again(world, tmp_path, monkeypatch):
    report, steps = finetuned(world, tmp_path, monkeypatch, "--rehearse", 3, restart_below=101)
    assert steps == 6 and "restarts" not in report
    # The steps of the training that were done; those that only measure do not count.
    assert report["steps"] == 3 and report["rehearsal"]["planned_steps"] == 15
