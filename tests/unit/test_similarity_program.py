"""The program that compares embeddings on disk."""

import csv
import logging
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from crossalign.analysis.matrices import CONTROLS, Lengths
from crossalign.analysis.similarity import INDEXES, Options, compare

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((3, 60, 5))
    for lang in ("en", "fr", "et"):
        np.save(tmp_path / f"{lang}.npy", (shared + rng.standard_normal((3, 60, 5))).astype(np.float32))
    return tmp_path


@pytest.fixture
def program(monkeypatch, capsys):
    """A program in this process: its status and what it said on standard error."""

    def run(name: str, *args: object) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", [name, *map(str, args)])
        status = 0
        # Logging goes to the standard error of its first use.
        logging.getLogger().handlers.clear()
        try:
            runpy.run_path(str(ROOT / "scripts" / name), run_name="__main__")
        except SystemExit as end:
            status = end.code
        return SimpleNamespace(returncode=status, stderr=capsys.readouterr().err)

    return run


@pytest.fixture
def run(program, folder):
    places = ("--embeddings", folder, "--reference", "en", "--out", folder / "out.csv", "--device", "cpu")
    return lambda *args: program("compare.py", *places, *args)


def rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_all_pairs_layers_and_indexes(folder, run):
    done = run("--languages", "fr", "et", "--indexes", "all", "--svcca-directions", "3")
    assert done.returncode == 0, done.stderr
    found = rows(folder / "out.csv")
    arrays = {lang: np.load(folder / f"{lang}.npy") for lang in ("en", "fr", "et")}
    want = []
    for lang in ("fr", "et"):
        for layer in range(3):
            values = compare(arrays["en"][layer], [arrays[lang][layer]], Options(svcca_directions=3))[0].values
            want += [(f"en-{lang}", layer, name, values[name]) for name in INDEXES]
    assert [(row["pair"], int(row["layer"]), row["index"]) for row in found] == [row[:3] for row in want]
    assert list(found[0]) == ["pair", "layer", "index", "control", "value", "sampling", "lead_sampling"]
    assert {row["control"] for row in found} == {"none"}
    assert [float(row["value"]) for row in found] == pytest.approx([row[3] for row in want], abs=1e-9)
    assert [file.name for file in folder.iterdir() if file.name.startswith(".")] == []


def with_lengths(folder):
    rng = np.random.default_rng(5)
    for lang in ("en", "fr", "et"):
        np.save(folder / f"{lang}.lengths.npy", rng.integers(5, 30, 60).astype(np.int32))


def test_control_for_length(folder, run):
    with_lengths(folder)
    done = run("--languages", "fr", "et", "--indexes", "cka", "anc", "matching", "--control", "length")
    assert done.returncode == 0, done.stderr
    found = rows(folder / "out.csv")
    languages = ("en", "fr", "et")
    arrays = [np.load(folder / f"{lang}.npy")[2] for lang in languages]
    lengths = [Lengths(np.load(folder / f"{lang}.lengths.npy")) for lang in languages]
    values = compare(arrays[0], arrays[1:], Options(("cka", "anc", "matching")), lengths=lengths)[1]
    want = [("none", *item) for item in values.values.items()]
    want += [(control, name, values.controlled[control][name]) for control in CONTROLS for name in ("cka", "anc")]
    got = [row for row in found if (row["pair"], row["layer"]) == ("en-et", "2")]
    assert [(row["control"], row["index"]) for row in got] == [row[:2] for row in want]
    assert [float(row["value"]) for row in got] == pytest.approx([row[2] for row in want], abs=1e-9)
    assert len(found) == 2 * 3 * 7


def test_standard_errors(folder, run):
    """Of the resampled indexes alone; the lead counts from the highest layer of the same curve."""
    with_lengths(folder)
    done = run("--languages", "fr", "--indexes", "cka", "cka-uncentred", "anc", "matching", "--control", "length")
    assert done.returncode == 0, done.stderr
    found = rows(folder / "out.csv")
    assert all(not row["sampling"] and not row["lead_sampling"] for row in found if row["index"] == "cka-uncentred")
    arrays = [np.load(folder / f"{lang}.npy") for lang in ("en", "fr")]
    lengths = [Lengths(np.load(folder / f"{lang}.lengths.npy")) for lang in ("en", "fr")]
    asked = Options(("cka", "anc", "matching"), resample=True)
    layers = [compare(en, [fr], asked, lengths=lengths)[0] for en, fr in zip(*arrays, strict=True)]
    for index, control in [("cka", "none"), ("anc", "strangers"), ("cka", "length"), ("matching", "none")]:
        curve = [row for row in found if (row["index"], row["control"]) == (index, control)]
        top = max(range(3), key=lambda layer: float(curve[layer]["value"]))
        draws = [layer.draws[control, index] for layer in layers]
        for layer, row in enumerate(curve):
            assert float(row["sampling"]) == pytest.approx(np.std(draws[layer], ddof=1), rel=1e-6)
            assert float(row["lead_sampling"]) == pytest.approx(np.std(draws[layer] - draws[top], ddof=1), rel=1e-6)
        assert curve[top]["lead_sampling"] == "0" and float(curve[top]["sampling"]) > 0


def test_warnings_name_what_means_nothing(folder, run):
    flat = np.load(folder / "et.npy")
    flat[1] = 0.25
    np.save(folder / "et.npy", flat)
    done = run("--languages", "fr", "et", "--indexes", "cka", "anc")
    assert done.returncode == 0 and "Warning" not in done.stderr
    assert "en-et, layer 1: not defined (all sentences have the same vector): cka, anc\n" in done.stderr
    flat = [row for row in rows(folder / "out.csv") if (row["pair"], row["layer"]) == ("en-et", "1")]
    assert {(row["value"], row["sampling"], row["lead_sampling"]) for row in flat} == {("nan", "", "")}
    for lang in ("en", "fr"):
        np.save(folder / f"{lang}.npy", np.load(folder / f"{lang}.npy")[:, :5])
    done = run("--languages", "fr", "--indexes", "cka", "pwcca", "cca")
    assert "en-fr, layer 0: too few sentences for so many neurons, always 1: cca, pwcca\n" in done.stderr


def test_a_gpu_is_claimed_and_none_for_a_small_comparison(run, monkeypatch):
    claimed = []
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: True)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("crossalign.engine.device.claim_gpu", claimed.append)
    assert run("--languages", "fr", "--device", "auto").returncode == 0
    assert claimed == []
    assert run("--languages", "fr", "--device", "cuda").returncode == 1
    assert claimed == [False]


CONTROL = ("--control", "length")


@pytest.mark.parametrize(
    ("file", "content", "args", "message"),
    [
        (None, None, ["xx"], "xx.npy: no embeddings of 'xx'; languages there: en, et, fr\n"),
        (None, None, ["--indexes", "kca"], "index 'kca' is not one of cka, "),
        (
            None,
            None,
            ["--indexes", "matching", *CONTROL],
            "--control length is for the indexes cka and anc; add one to",
        ),
        (None, None, ["--device", "abacus"], "device 'abacus' is not one of auto, cpu, cuda"),
        ("fr", np.zeros((2, 60, 5), "f"), [], "fr.npy: 2 layers, but en.npy has 3; embed both with the same model"),
        ("fr", np.zeros((3, 59, 5), "f"), [], "fr.npy: 59 sentences, but en.npy has 60"),
        ("fr", np.zeros((3, 60, 4), "f"), [], "fr.npy, layer 0: 4 neurons, but"),
        ("fr", np.full((3, 60, 5), np.nan, "f"), [], "fr.npy, layer 0: sentence 1, neuron 0 is nan; every number must"),
        ("fr", np.zeros((60, 5), "f"), [], "fr.npy: layers x sentences x neurons of floating-point numbers expected"),
        *(("fr", part, [], "fr.npy: not a complete .npy array") for part in (1000, 0, b"text")),
        ("fr.lengths", None, CONTROL, "fr.lengths.npy: no lengths of sentences; embed them again, or compare with"),
        ("fr.lengths", np.zeros(60, "i4"), CONTROL, "fr.lengths.npy: one whole number above zero for each of 60"),
    ],
)
def test_bad_input(folder, run, file, content, args, message):
    """A file that is not there, another array, the first bytes of the right one, or other bytes."""
    with_lengths(folder)
    path = folder / f"{file}.npy"
    if isinstance(content, np.ndarray):
        np.save(path, content)
    elif isinstance(content, int | bytes):
        path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    elif file:
        path.unlink()
    done = run("--languages", "fr", *args)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert not (folder / "out.csv").exists()
