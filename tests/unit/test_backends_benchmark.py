"""benchmarks/backends.py runs on a CPU in its smallest form."""

import json
import string
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SENTENCES = ["The cat sat on the mat", "A dog ran home", "We saw it there today"]


@pytest.fixture
def data(tmp_path):
    """The files that the benchmark looks for, with three sentences each."""
    blocks = []
    for number, text in enumerate(SENTENCES):
        rows = [f"{place}\t{word}\t_\tNOUN\t_\t_\t{place - 1}\tdep\t_\t_" for place, word in enumerate(text.split(), 1)]
        blocks.append("\n".join([f"# sent_id = {number}", f"# text = {text}", *rows]) + "\n")
    for name in ("aa_pud-test", "bb_pud-test", "en_ewt-train", "en_ewt-dev"):
        (tmp_path / f"{name}.conllu").write_text("\n".join(blocks * 12) + "\n", encoding="utf-8")
    letters = [*string.ascii_letters, *(f"##{letter}" for letter in string.ascii_letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]) + "\n")
    return tmp_path


def run(root, data, *options):
    command = [
        sys.executable,
        root / "benchmarks" / "backends.py",
        "--data",
        data,
        "--device",
        "cpu",
        "--quick",
        *options,
    ]
    done = subprocess.run([*map(str, command), "--out", str(data / "out.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((data / "out.json").read_text(encoding="utf-8"))["found"]


@pytest.mark.slow
def test_both_backends_are_measured_and_compared(root, data):
    told, found = run(root, data)
    assert found["own"]["loss"] == pytest.approx(found["library"]["loss"], abs=0.05)
    row = next(line for line in told.splitlines() if "POS steps" in line).split("|")
    assert float(row[4]) == pytest.approx(found["own"]["steps"] / found["library"]["steps"], abs=0.01)
    assert all(found[backend][key] > 0 for backend in ("own", "library") for key in ("load", "sentences"))
