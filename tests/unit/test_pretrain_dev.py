"""The loss on dev texts, the choice of the best weights by it, epochs in place of steps, and texts that are refused."""

import json

import pytest
import torch
from tests.pretrain_toys import SHAPE, make_text, make_tokenizer

from crossalign.engine.corpus import encode_texts
from crossalign.engine.huggingface import load_weights
from crossalign.engine.lm_heads import load_head
from crossalign.engine.pretrain import Pretraining
from crossalign.engine.pretrain_job import Job, pretrain, starting_point
from crossalign.engine.pretrain_settings import PretrainSettings
from crossalign.engine.saving import InterruptedTraining, Saving
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dev")
    texts = {"aa": [make_text(folder / "aa.txt", 1, 300)], "bb": [make_text(folder / "bb.txt", 2, 200)]}
    # The same phrases in another order, and letters at random.
    dev = {"aa": [make_text(folder / "aa-dev.txt", 1, 60)], "zz": [make_text(folder / "zz.txt", 9, 40)]}
    make_tokenizer(folder / "tokenizer.json", texts)
    return folder, texts, dev


def settings(**changes):
    return PretrainSettings(**{"steps": 12, "batch": 4, "block": 16, "learning_rate": 1e-3, **changes})


def start(place):
    return starting_point(None, place[0] / "tokenizer.json", "post", None, SHAPE, 1)


def values(folder):
    encoder = load_weights(folder)
    return {**dict(encoder.named_parameters()), **dict(load_head(folder, encoder.config).named_parameters())}


def same(left, right):
    left, right = values(left), values(right)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_dev_loss_falls_where_the_text_is_alike(place, tmp_path):
    job = Job(
        {"aa": place[1]["aa"]}, settings(steps=200, batch=8, learning_rate=1e-2, dev_every=50), tmp_path / "m",
        dev=place[2],
    )  # fmt: skip
    pretrain(start(place), job, CPU)
    points = json.loads((tmp_path / "m/training.json").read_text())["dev"]
    assert [point["step"] for point in points] == [0, 50, 100, 150, 200]
    first, last = points[0]["texts"], points[-1]["texts"]
    assert last["aa"] < first["aa"] - 1 and last["zz"] > last["aa"] + 1


def test_dev_losses_are_those_of_the_written_model(place, tmp_path):
    """The last point, measured again from the folder by a run of another seed: the masks are the same."""
    report = pretrain(start(place), Job(place[1], settings(), tmp_path / "m", dev=place[2]), CPU)
    begun = starting_point(tmp_path / "m", None, "post", None, {}, 7)
    files = encode_texts({**place[1]}, begun.tokenizer, tmp_path / "t")
    dev = encode_texts(place[2], begun.tokenizer, tmp_path / "t")
    again = Pretraining(begun.encoder, begun.head, begun.tokenizer, files, settings(seed=7), dev=dev)
    loss, each = again.dev(again.engine, again.head)
    assert loss == pytest.approx(report["dev"][-1]["loss"], abs=2e-5)
    assert each == pytest.approx(report["dev"][-1]["texts"], abs=2e-5)


def test_measuring_does_not_change_the_training(place, tmp_path):
    pretrain(start(place), Job(place[1], settings(), tmp_path / "with", dev=place[2]), CPU)
    pretrain(start(place), Job(place[1], settings(), tmp_path / "without"), CPU)
    assert same(tmp_path / "with", tmp_path / "without")


def best_job(place, out, **more):
    """A rate so high that the dev loss has its lowest point before the end."""
    rough = settings(learning_rate=3e-2, warmup=0.5, dev_every=2, selection="best", dropout=0.1)
    return Job({"bb": place[1]["bb"]}, rough, out, dev={"zz": place[2]["zz"]}, **more)


def test_the_best_weights_are_kept_through_an_interruption(place, tmp_path, monkeypatch):
    report = pretrain(start(place), best_job(place, tmp_path / "whole"), CPU)
    losses = [point["loss"] for point in report["dev"]]
    assert min(losses) < losses[-1]
    begun = starting_point(tmp_path / "whole", None, "post", None, {}, 1)
    dev = encode_texts({"zz": place[2]["zz"]}, begun.tokenizer, tmp_path / "t")
    files = encode_texts({"bb": place[1]["bb"]}, begun.tokenizer, tmp_path / "t")
    again = Pretraining(begun.encoder, begun.head, begun.tokenizer, files, settings(), dev=dev)
    assert again.dev(again.engine, again.head)[0] == pytest.approx(min(losses), abs=2e-5)

    plain, saved = Pretraining._maybe_save, []

    def stop(self):
        if self.progress.step in (5, 9) and self.progress.step not in saved:
            saved.append(self.progress.step)
            self.saver.stop_requested = True
        plain(self)

    monkeypatch.setattr(Pretraining, "_maybe_save", stop)
    job = best_job(place, tmp_path / "parts", checkpoints=tmp_path / "c", saving=Saving())
    for _ in range(2):
        with pytest.raises(InterruptedTraining):
            pretrain(start(place), job, CPU)
    resumed = pretrain(start(place), job, CPU)
    assert resumed["resumed"] == 2 and resumed["dev"] == report["dev"]
    assert same(tmp_path / "whole", tmp_path / "parts")


def test_epochs_in_place_of_steps(place, tmp_path):
    job = Job(place[1], settings(steps=1), tmp_path / "m", epochs=1.5)
    report = pretrain(start(place), job, CPU)
    tokens = sum(text["tokens"] for text in report["texts"].values())
    assert report["settings"]["steps"] == -(-3 * tokens // (2 * 4 * 15))
    with pytest.raises(UserError, match="--epochs 0 is not positive"):
        pretrain(start(place), Job(place[1], settings(), tmp_path / "n", epochs=0), CPU)


def test_bad_settings_and_texts(place, tmp_path):
    with pytest.raises(UserError, match="--selection best chooses by the loss on dev texts"):
        pretrain(start(place), Job(place[1], settings(selection="best"), tmp_path / "m"), CPU)
    with pytest.raises(UserError, match="--selection first: expected one of last, best"):
        settings(selection="first")
    (tmp_path / "short.txt").write_text("abcd\n")
    job = Job(place[1], settings(), tmp_path / "m", dev={"aa": [tmp_path / "short.txt"]})
    with pytest.raises(UserError, match="--dev text 'aa' has .* tokens, less than one block of 15"):
        pretrain(start(place), job, CPU)
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(UserError, match=r"text 'aa' has no sentences: .*empty\.txt is empty"):
        pretrain(start(place), Job({"aa": [tmp_path / "empty.txt"]}, settings(), tmp_path / "m"), CPU)
    with pytest.raises(UserError, match="no text to train on"):
        pretrain(start(place), Job({}, settings(), tmp_path / "m"), CPU)
    assert not (tmp_path / "m").exists()


def test_a_tokenizer_of_another_model(place, tmp_path):
    make_tokenizer(tmp_path / "small.json", place[1], size=60)
    small = starting_point(None, tmp_path / "small.json", "post", None, SHAPE, 1)
    mixed = start(place)
    mixed.encoder, mixed.head = small.encoder, small.head
    with pytest.raises(UserError, match="the tokenizer has 90 pieces, the model 60 embeddings; they do not belong"):
        pretrain(mixed, Job(place[1], settings(), tmp_path / "m"), CPU)
    pretrain(small, Job(place[1], settings(steps=2), tmp_path / "m"), CPU)
    (tmp_path / "m/tokenizer.json").write_text((place[0] / "tokenizer.json").read_text())
    with pytest.raises(UserError, match="knows 90 pieces but the model has 60 embeddings"):
        starting_point(tmp_path / "m", None, "post", None, {}, 1)
