"""Full disks and damaged files, program by program: told in a sentence, nothing half, never silently wrong."""

import itertools
import json
import logging
import re
import resource
import sys
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from crossalign.embedding.states import write_array
from crossalign.engine.checkpoints import Checkpoints
from crossalign.engine.loop import History
from crossalign.runtime.errors import UserError, run_main
from crossalign.tasks.predictions import write_predictions

WORDS = ("the dog runs", "a big dog runs", "the big cats see a dog")
TAGS = {"the": "DET", "a": "DET", "dog": "NOUN", "cats": "NOUN", "big": "ADJ", "runs": "VERB", "see": "VERB"}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A treebank of few words."""
    folder = tmp_path_factory.mktemp("trees")
    for split, count in (("train", 24), ("dev", 6)):
        lines = []
        for number in range(count):
            lines.append(f"# sent_id = {number}")
            for place, word in enumerate(WORDS[number % len(WORDS)].split(), start=1):
                relation = "root" if place == 1 else "dep"
                lines.append(f"{place}\t{word}\t_\t{TAGS[word]}\t_\t_\t{place - 1}\t{relation}\t_\t_")
            lines.append("")
        (folder / f"{split}.conllu").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def program(monkeypatch, capsys):
    """Run a program of the repository in this process; its exit status and what it said."""

    # A test before may have left a handler whose stream is gone, and writing there would be told as an error.
    root = logging.getLogger()
    alive = [handler for handler in root.handlers if not getattr(getattr(handler, "stream", None), "closed", False)]
    monkeypatch.setattr(root, "handlers", alive)

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        status = 0
        try:
            run_main(__import__(name).main)
        except SystemExit as end:
            status = end.code
        return status, capsys.readouterr().err

    return run


@pytest.fixture
def finetune(root, trees, program):
    """Fine-tune for a few steps, with a checkpoint after each."""

    def run(out, checkpoints, *more):
        return program(
            *("finetune", "--model", root / "resources/demo/models/mbert", "--task", "pos"),
            *("--train", trees / "train.conllu", "--dev", trees / "dev.conllu", "--device", "cpu"),
            *("--settings", '{"epochs": 2, "batch": 8, "learning_rate": 1e-3}'),
            *("--code-hash", "abc", "--save-steps", 1),
            *("--out", out, "--checkpoints", checkpoints, *more),
        )

    return run


@pytest.fixture
def undisturbed(finetune, tmp_path, made=[]):  # noqa: B006 (made once)
    """The weights that a training ends with."""
    if not made:
        out = tmp_path / "undisturbed"
        assert finetune(out, out / "checkpoints") == (0, "")
        made.append((out / "model/model.safetensors").read_bytes())
    return made[0]


@pytest.fixture
def half_way(finetune, tmp_path, monkeypatch):
    """A training that ended after half of its steps, and the size of its checkpoint."""
    save = Checkpoints.save

    def third(self, tensors):
        save(self, tensors)
        if len(self.progress.loss) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Checkpoints, "save", third)
        finetune(tmp_path / "out", tmp_path / "out/checkpoints")
    return tmp_path / "out" / "checkpoints" / "checkpoint.safetensors"


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ---- no memory -----------------------------------------------------------------------------------------------------


@contextmanager
def no_more_memory():
    """This process gets 64 MB more than it has, and no more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("allocate", [lambda: torch.empty(1 << 30), lambda: bytes(1 << 32)], ids=["torch", "Python"])
def test_a_machine_with_less_memory_than_a_training_needs(finetune, undisturbed, tmp_path, monkeypatch, allocate):
    save, out = Checkpoints.save, tmp_path / "out"

    def saved_then_short(self, tensors):
        save(self, tensors)
        with no_more_memory():
            allocate()

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", saved_then_short)
        status, said = finetune(out, tmp_path / "checkpoints")
    assert status == 1
    assert said.startswith("error: no memory left on this machine; run fewer jobs at a time")
    assert "Traceback" not in said and not out.exists()
    assert finetune(out, tmp_path / "checkpoints")[0] == 0
    assert json.loads((out / "training.json").read_text())["resumed"] == 1
    assert (out / "model/model.safetensors").read_bytes() == undisturbed


def test_other_errors_keep_their_traceback():
    def broken():
        raise RuntimeError("the sizes do not match")

    with pytest.raises(RuntimeError, match="the sizes do not match"):
        run_main(broken)


# ---- no room -------------------------------------------------------------------------------------------------------


def test_room_for_one_checkpoint_but_not_for_two(finetune, half_way, undisturbed, tmp_path):
    """The older one stays until the newer one is whole."""
    from tests.faults.conftest import small_disk

    disk = tmp_path / "disk"
    first = half_way.read_bytes()
    with small_disk(disk, len(first) * 3 // 2):
        kept = disk / half_way.name
        kept.write_bytes(first)
        status, said = finetune(tmp_path / "out", disk)
        assert status == 1
        assert "cannot write: No space left on device" in said
        assert (everything_in(disk), kept.read_bytes()) == ([half_way.name], first)
    assert finetune(tmp_path / "out", half_way.parent)[0] == 0
    assert json.loads((tmp_path / "out/training.json").read_text())["resumed"] == 1
    assert (tmp_path / "out/model/model.safetensors").read_bytes() == undisturbed


def test_no_room_for_predictions_and_embeddings(tmp_path, no_room):
    random = Random(1)
    rows = {"nli/xnli_en/test": [{"id": str(random.random()), "label": 1, "right": 1} for _ in range(9000)]}

    for name, write in (
        ("predictions.jsonl.gz", lambda path: write_predictions(path, "nli", ["a", "b"], rows)),
        ("en.npy", lambda path: write_array(path, np.zeros((3, 4000, 16)))),
    ):
        path = tmp_path / name / name
        with no_room(path.parent, 20_000) as words:
            with pytest.raises(UserError, match=f"{re.escape(str(path))}: cannot write: {words}"):
                write(path)
            assert everything_in(path.parent) == []
        write(path)
        assert path.stat().st_size > 40_000


# ---- damaged files -------------------------------------------------------------------------------------------------


def test_no_damage_to_a_checkpoint_goes_unnoticed(tmp_path, caplog):
    """A bit of every byte turned, every length cut: what is loaded is what was saved, or nothing."""
    checkpoints = Checkpoints(tmp_path, "abc", None, History(step=31, loss=[0.5, 0.25]))
    tensors = {"a": torch.arange(6.0).view(2, 3), "step": torch.tensor(7)}
    checkpoints.save(tensors)
    whole = checkpoints.path.read_bytes()

    def found():
        """What a checkpoint gives, None for nothing."""
        checkpoints.progress = read = History()
        again = checkpoints.resume()
        return again and ((read.step, read.loss, read.resumed), {name: one.tolist() for name, one in again.items()})

    expected = (31, [0.5, 0.25], 1), {name: one.tolist() for name, one in tensors.items()}
    assert found() == expected
    wrong = []
    for place, bit in itertools.product(range(len(whole)), (0, 5)):  # another digit, another case
        data = bytearray(whole)
        data[place] ^= 1 << bit
        checkpoints.path.write_bytes(data)
        if found() not in (None, expected):
            wrong.append((place, bit))
    assert not wrong
    for length in range(len(whole)):
        checkpoints.path.write_bytes(whole[:length])
        assert found() is None, length
    assert "training starts over" in caplog.text
