"""The program that compares embeddings on disk."""

import csv
import gzip
import json
import os
import runpy
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from crossalign.analysis.indexes import VARIANCE
from crossalign.analysis.matrices import CONTROLS, Lengths
from crossalign.analysis.similarity import INDEXES, Options, compare
from crossalign.data.parallel import read_extension, read_pud


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((3, 60, 5))
    for lang in ("en", "fr", "et"):
        np.save(tmp_path / f"{lang}.npy", (shared + rng.standard_normal((3, 60, 5))).astype(np.float32))
    return tmp_path


@pytest.fixture
def run(root, folder):
    def run(*args: str) -> subprocess.CompletedProcess:
        command = [sys.executable, root / "scripts" / "compare.py", "--embeddings", folder, "--reference", "en"]
        command += ["--out", folder / "out.csv", "--device", "cpu", *args]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})

    return run


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


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (None, "fr.lengths.npy: no lengths of sentences; embed them again, or compare with --control none"),
        (np.ones(59, "i4"), "fr.lengths.npy: one whole number above zero for each of 60 sentences expected, found"),
        (np.zeros(60, "i4"), "fr.lengths.npy: one whole number above zero for each of 60 sentences"),
        (np.ones(60), "found float64 60"),
    ],
)
def test_bad_lengths(folder, run, lengths, message):
    with_lengths(folder)
    (folder / "fr.lengths.npy").unlink()
    if lengths is not None:
        np.save(folder / "fr.lengths.npy", lengths)
    done = run("--languages", "fr", "--control", "length")
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "out.csv").exists()


def test_lengths_are_no_language(folder, run):
    with_lengths(folder)
    assert "languages there: en, et, fr\n" in run("--languages", "xx").stderr


def test_nothing_left_without_the_length_is_told(folder, run):
    lengths = np.random.default_rng(6).integers(5, 30, 60)
    for lang in ("en", "fr"):
        np.save(folder / f"{lang}.npy", np.log(lengths)[None, :, None] * np.ones((1, 60, 3)))
        np.save(folder / f"{lang}.lengths.npy", lengths)
    done = run("--languages", "fr", "--indexes", "cka", "--control", "length")
    assert "en-fr, layer 0: nothing is left without the length: cka\n" in done.stderr
    assert [row["value"] for row in rows(folder / "out.csv") if row["control"] == "length"] == ["nan"]


def test_a_small_comparison_loads_no_large_library(root, folder):
    """They would take longer than the work itself."""
    script = root / "scripts" / "compare.py"
    argv = ["compare.py", "--embeddings", folder, "--reference", "en", "--languages", "fr", "et", "--indexes", "all"]
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(script.parent)!r}); "
        f"sys.argv = {[*map(str, argv), '--out', str(folder / 'out.csv')]!r}; "
        f"runpy.run_path({str(script)!r}, run_name='__main__'); "
        "print(*{'torch', 'scipy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "" and rows(folder / "out.csv")


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


@pytest.mark.parametrize(
    ("spoil", "args", "message"),
    [
        (None, ["--languages", "fr", "xx"], "xx.npy: no embeddings of 'xx'; languages there: en, et, fr"),
        (None, ["--languages", "fr", "--indexes", "kca"], "index 'kca' is not one of cka, "),
        (
            None,
            ["--languages", "fr", "--indexes", "matching", "--control", "length"],
            "--control length is for the indexes cka and anc; add one to --indexes",
        ),
        (None, ["--languages", "fr", "--device", "abacus"], "device 'abacus' is not one of auto, cpu, cuda"),
        (np.zeros((2, 60, 5), "f"), [], "fr.npy: 2 layers, but en.npy has 3; embed both with the same model"),
        (np.zeros((3, 59, 5), "f"), [], "fr.npy: 59 sentences, but en.npy has 60"),
        (np.zeros((3, 60, 4), "f"), [], "fr.npy, layer 0: 4 neurons, but"),
        (
            np.full((3, 60, 5), np.nan, "f"),
            [],
            "fr.npy, layer 0: sentence 1, neuron 0 is nan; every number must be finite",
        ),
        (np.zeros((60, 5), "f"), [], "fr.npy: layers x sentences x neurons of floating-point numbers expected, found"),
        (np.zeros((3, 60, 5), "i4"), [], "found int32 3 x 60 x 5"),
    ],
)
def test_bad_input(folder, run, spoil, args, message):
    if spoil is not None:
        np.save(folder / "fr.npy", spoil)
    done = run(*(args or ["--languages", "fr"]))
    assert done.returncode == 1
    assert "error: " in done.stderr and message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out.csv").exists()


def test_half_a_file(folder, run):
    whole = (folder / "fr.npy").read_bytes()
    for part in (whole[:1000], whole[:40], b"", b"text"):
        (folder / "fr.npy").write_bytes(part)
        done = run("--languages", "fr")
        assert done.returncode == 1
        assert "fr.npy: not a complete .npy array" in done.stderr


ROOT = Path(__file__).resolve().parents[2]
DEMO_MODELS = sorted(path.parent for path in (ROOT / "resources" / "demo" / "models").glob("*/config.json"))
LANGUAGES = {"pud": {"en": "English", "ru": "Russian", "zh": "Chinese"}, "xnliext": ("en", "fr", "et")}


@pytest.fixture(scope="module")
def texts(shared, tmp_path_factory):
    """The first sentences of PUD and of the XNLI extension, one file a language."""
    folder = tmp_path_factory.mktemp("texts")

    def make(corpus: str, count: int) -> dict[str, Path]:
        files = {}
        for lang in LANGUAGES[corpus]:
            if corpus == "pud":
                source = shared / "data/ud" / f"UD_{LANGUAGES['pud'][lang]}-PUD" / f"{lang}_pud-ud-test.conllu.gz"
            else:
                source = shared / "data/xnli_extension" / f"multinli.train.{lang}.tsv.gz"
            if not source.is_file():
                pytest.skip(f"no {source}")
            with gzip.open(source, "rt", encoding="utf-8", newline="\n") as stream:
                read = read_pud(stream, str(source)) if corpus == "pud" else read_extension(stream, str(source), lang)
                files[lang] = folder / f"{corpus}-{count}-{lang}.txt"
                files[lang].write_text("".join(f"{line}\n" for line in islice(read, count)), encoding="utf-8")
        return files

    return make


@pytest.fixture
def program(monkeypatch):
    def run(name: str, *args: object) -> None:
        monkeypatch.setattr(sys, "argv", [name, *map(str, args)])
        runpy.run_path(str(ROOT / "scripts" / name), run_name="__main__")

    return run


def whole_stage(program, model, files, out, indexes, *options):
    """Embed, compare English with itself and with the others, and read the values."""
    named = [f"{lang}={file}" for lang, file in files.items()]
    program("embed_sentences.py", "--model", model, "--text", *named, "--out", out, "--device", "cpu", *options)
    program(
        *("compare.py", "--embeddings", out, "--reference", "en", "--languages", *files, "--indexes", *indexes),
        *("--svcca-directions", 5, "--out", out / "all.csv"),
    )
    with (out / "all.csv").open(encoding="utf-8", newline="") as stream:
        return {
            (row["pair"], int(row["layer"]), row["index"]): float(row["value"])
            for row in csv.DictReader(stream)
            if row["control"] == "none" and row["value"] != "nan"
        }


def check(values, files, layers):
    pairs = [f"en-{lang}" for lang in files]
    assert {key[:2] for key in values} == {(pair, layer) for pair in pairs for layer in range(layers)}
    for (pair, _, index), value in values.items():
        assert (-1 if index == "anc-signed" else 0) <= value <= 1 + 1e-9
        if pair == "en-en" and index not in VARIANCE:
            # 60 sentences and 64 neurons: the weights of ecco count directions that no sentence takes.
            assert value == pytest.approx(1.0, abs=0.05 if index.endswith("-ecco") else 1e-6), index


@pytest.mark.parametrize("corpus", LANGUAGES)
@pytest.mark.parametrize("model", DEMO_MODELS, ids=lambda path: path.name)
def test_the_models_of_the_demo(model, corpus, texts, program, tmp_path):
    files = texts(corpus, 60)
    options = ["--special-tokens", "include"] if corpus == "xnliext" else []
    values = whole_stage(program, model, files, tmp_path / "out", ["all"], "--max-length", 64, *options)
    layers = json.loads((model / "config.json").read_text(encoding="utf-8"))
    check(values, files, 1 + (layers.get("num_hidden_layers") or layers["num_layers"]))
