"""The benchmark of several fine-tunings on one card runs, on a CPU in its smallest form; sharing changes no result."""

import json
import os
import subprocess
import sys
import time

import pytest


def share_card(root, *arguments):
    command = [sys.executable, str(root / "benchmarks" / "share_card.py"), "--model-size", "tiny"]
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)


def alone_and_two(root, tmp_path, *arguments):
    """The output, and the rows of one run at a time and of two at once."""
    file = tmp_path / "rows.json"
    done = share_card(root, "--device", "cpu", *arguments, "--at-once", 2, "--out", file)
    assert done.returncode == 0, done.stderr
    alone, shared = json.loads(file.read_text(encoding="utf-8"))
    assert (alone["at_once"], shared["at_once"]) == (1, 2)
    return done.stdout, alone, shared


@pytest.mark.slow
def test_runs_that_share_make_what_runs_after_each_other_make(root, tmp_path):
    told, alone, shared = alone_and_two(root, tmp_path, "--runs", 2)
    assert alone["same_weights"] and shared["same_weights"]
    assert alone["steps_of_one"] == shared["steps_of_one"] > 1
    assert shared["ratio"] == round(alone["seconds"] / shared["seconds"], 2)
    assert told.count("| yes |") == 2
    assert alone["busy"] == "not measured"


@pytest.mark.slow
def test_waves_make_as_many_runs_as_share(root, tmp_path):
    _, alone, shared = alone_and_two(root, tmp_path, "--waves", 1)
    assert (alone["runs"], shared["runs"]) == (1, 2)
    assert shared["ratio"] == round(alone["seconds"] / (shared["seconds"] / 2), 2)
    assert shared["same_weights"]


@pytest.mark.parametrize(
    ("says", "peak", "busy"), [("1234, 80", 1234, 80.0), ("1234, [N/A]", 1234, None), ("no such card", 0, None)]
)
def test_the_driver_is_asked_for_memory_and_for_how_busy_the_card_is(root, tmp_path, monkeypatch, says, peak, busy):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from share_card import Card

    with Card("0", "cuda") as card:
        time.sleep(0.6)
    assert (card.peak, card.busy) == (peak, busy)


def test_without_a_card_the_reason_is_given(root):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a card")
    done = share_card(root, "--runs", 1, "--at-once", 1)
    assert done.returncode == 1
    assert "PyTorch sees no CUDA device" in done.stderr
    assert "Traceback" not in done.stderr
