"""Embeddings and comparison of real parallel text: a model of mBERT's size with drawn weights, and the demo's own."""

import csv
import gzip
import json
import runpy
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from crossalign.analysis.similarity import CCA, INDEXES, Options, compare
from crossalign.data.parallel import read_extension, read_pud
from crossalign.engine.encoder import empty_encoder
from crossalign.engine.folders import library_names
from crossalign.engine.shape import EncoderConfig

ROOT = Path(__file__).resolve().parents[2]
DEMO_MODELS = sorted(path.parent for path in (ROOT / "resources" / "demo" / "models").glob("*/config.json"))
LANGUAGES = {"pud": {"en": "English", "ru": "Russian", "zh": "Chinese"}, "xnliext": ("en", "fr", "et")}
MBERT = {
    "model_type": "bert", "vocab_size": 119547, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "max_position_embeddings": 512, "pad_token_id": 0, "hidden_act": "gelu",
}  # fmt: skip


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


@pytest.fixture(scope="module")
def random_mbert(shared, tmp_path_factory):
    """mBERT's shape and vocabulary, drawn weights."""
    from safetensors.torch import save_file

    from crossalign.engine.tokenizer import wordpiece_tokenizer

    packed = shared / "data" / "mbert_vocab" / "vocab.txt.gz"
    if not packed.is_file():
        pytest.skip(f"no {packed}")
    folder = tmp_path_factory.mktemp("mbert")
    (folder / "vocab.txt").write_bytes(gzip.decompress(packed.read_bytes()))
    wordpiece_tokenizer(folder / "vocab.txt").save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(MBERT))
    model = empty_encoder(EncoderConfig.from_huggingface(MBERT))
    torch.manual_seed(1)
    tensors = {}
    for name, sources in library_names(model).items():
        shape = model.get_parameter(name).shape
        # bf16 on disk: half the bytes, and drawn weights are as good.
        value = torch.empty(shape, dtype=torch.bfloat16)
        value = value.normal_(0.0, 0.02) if len(shape) == 2 else value.fill_(float(name.endswith("weight")))
        tensors |= dict(zip(sources, (part.contiguous() for part in value.chunk(len(sources))), strict=True))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


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
        *("--svcca-directions", 5, "--out", out / "all.csv", "--neurons", out / "neurons.csv"),
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
        if pair == "en-en":
            # 60 sentences and 64 neurons: the weights of ecco count directions that no sentence takes.
            assert value == pytest.approx(1.0, abs=0.05 if index.endswith("-ecco") else 1e-6), index


@pytest.mark.parametrize("corpus", LANGUAGES)
def test_a_model_of_the_size_of_mbert(corpus, texts, random_mbert, program, tmp_path):
    files = texts(corpus, 10)
    # The CCA family decomposes matrices of 768 neurons, which takes a while: the last layer shows it.
    indexes = [index for index in INDEXES if index not in CCA]
    values = whole_stage(program, random_mbert, files, tmp_path / "out", indexes, "--max-length", 48)
    check(values, files, 13)
    assert {key[2] for key in values} == set(indexes)
    for lang in files:
        array = np.load(tmp_path / "out" / f"{lang}.npy", mmap_mode="r")
        assert array.shape == (13, 10, 768) and np.isfinite(array).all()
    last = [np.load(tmp_path / "out" / f"{lang}.npy")[-1] for lang in files]
    # With fewer sentences than neurons two spaces are always the same.
    assert compare(last[0], last[1:2], Options(("cca", "pwcca")))[0].values == pytest.approx({"cca": 1, "pwcca": 1})
    assert 0 < compare(last[0], last[1:2], Options(("svcca",), svcca_directions=3))[0].values["svcca"] < 1


@pytest.mark.parametrize("corpus", LANGUAGES)
@pytest.mark.parametrize("model", DEMO_MODELS, ids=lambda path: path.name)
def test_the_models_of_the_demo(model, corpus, texts, program, tmp_path):
    files = texts(corpus, 60)
    options = ["--special-tokens", "include"] if corpus == "xnliext" else []
    values = whole_stage(program, model, files, tmp_path / "out", ["all"], "--max-length", 64, *options)
    layers = json.loads((model / "config.json").read_text(encoding="utf-8"))
    check(values, files, 1 + (layers.get("num_hidden_layers") or layers["num_layers"]))
