"""Two processes that train together against one with the same batch; SIGTERM, resumption, and what they refuse."""

import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.pretrain_toys import SHAPE, make_texts, make_tokenizer, start, values

from crossalign.engine.corpus import Corpus, MaskedBlocks
from crossalign.engine.device import Team
from crossalign.runtime.errors import UserError

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("team")
    texts = make_texts(folder)
    # Blocks of separators have nothing to predict: the processes then have different numbers of targets.
    with (folder / "bb.txt").open("a") as stream:
        stream.write("\u200b\n" * 400)
    make_tokenizer(folder / "bert.json", texts)
    return folder


def arguments(root, place, out, *more):
    program = [str(root / "scripts/pretrain.py"), "--tokenizer", str(place / "bert.json")]
    program += ["--texts", f"aa={place / 'aa.txt'}", f"bb={place / 'bb.txt'}", "--out", str(out), "--device", "cpu"]
    for name, value in SHAPE.items():
        program += [f"--{name.replace('_', '-')}", str(value)]
    return [*program, "--block", "16", "--dev", f"aa={place / 'aa.txt'}", *more]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def run(*args, processes=1):
    """Status and messages of processes started as torchrun starts them, without its own start of several seconds."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(processes)}
    team = []
    for rank in range(processes):
        number = {**address, "RANK": str(rank), "LOCAL_RANK": str(rank)} if processes > 1 else {}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        team.append(subprocess.Popen([sys.executable, *arguments(*args)], env={**ENVIRONMENT, **number}, **pipes))
    messages = [process.communicate()[1] for process in team]
    return [process.returncode for process in team], messages


def test_two_processes_equal_one(root, place, tmp_path):
    reports = {}
    for count in (1, 2):
        settings = ["--steps", "20", "--batch", "6", "--dropout", "0", "--learning-rate", "3e-3"]
        codes, messages = run(root, place, tmp_path / str(count), *settings, processes=count)
        assert codes == [0] * count, messages
        assert [message.count("step 20 of 20: loss") for message in messages] == [1, 0][:count]
        reports[count] = json.loads((tmp_path / str(count) / "training.json").read_text())
    assert [reports[count]["processes"] for count in (1, 2)] == [1, 2]
    for (_, one), (_, two) in zip(reports[1]["loss"], reports[2]["loss"], strict=True):
        assert one == pytest.approx(two, abs=2e-5)
    assert reports[1]["dev"][-1]["loss"] == pytest.approx(reports[2]["dev"][-1]["loss"], abs=2e-5)
    one, two = values(tmp_path / "1"), values(tmp_path / "2")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")
    before = start(place).encoder.named_parameters()
    assert max(float((one[name] - fresh).detach().abs().max()) for name, fresh in before) > 0.02


def test_sigterm_and_resumption(root, place, tmp_path):
    """Stopped under torchrun; with dropout, whose stream is each process's own: both must be restored."""
    steps = ["--steps", "100", "--batch", "4", "--dropout", "0.1"]
    codes, messages = run(root, place, tmp_path / "whole", *steps, processes=2)
    assert codes == [0, 0], messages
    more = [*steps, "--checkpoints", str(tmp_path / "c")]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port()]
    process = subprocess.Popen(
        [sys.executable, *launch, *arguments(root, place, tmp_path / "parts", *more)],
        env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stderr:
        if "step 5 of 100: loss" in line:
            process.send_signal(signal.SIGTERM)
            break
    rest = process.stderr.read()
    assert process.wait() != 0 and rest.count("stopped by SIGTERM at step") == 1, rest
    assert not (tmp_path / "parts").exists()
    codes, messages = run(root, place, tmp_path / "parts", *more, processes=2)
    assert codes == [0, 0] and "going on at step" in messages[0], messages
    whole, parts = values(tmp_path / "whole"), values(tmp_path / "parts")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    reports = [json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "parts")]
    assert reports[1]["resumed"] == 1 and reports[0]["loss"] == reports[1]["loss"]


def test_a_batch_that_does_not_divide():
    with pytest.raises(UserError, match="--batch 5 does not divide over 2 processes"):
        Team(0, 2).part(5)


def test_the_parts_of_a_batch_are_the_batch(tmp_path):
    np.random.default_rng(1).integers(5, 50, 2000).astype("<u2").tofile(tmp_path / "x.uint16")
    corpus = Corpus({"x": tmp_path / "x.uint16"}, 15, 1.0, 1)
    make = lambda **team: MaskedBlocks(corpus, 6, 1, 3, 4, {0, 1, 2, 3, 4}, 50, **team)  # noqa: E731
    whole = make()
    parts = [make(rank=rank, world=3) for rank in range(3)]
    rows = [part.rows(part.members(5)) for part in parts]
    for number, wanted in enumerate(whole.rows(whole.members(5))):
        assert np.array_equal(np.concatenate([row[number] for row in rows]), wanted)
