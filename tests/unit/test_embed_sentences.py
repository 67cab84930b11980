"""Sentence embeddings of every family against the library's model, fed one sentence at a time."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from library_models import SHAPE, library_model
from tokenizers import processors
from tokenizers_for_tests import bert_tokenizer, xlmr_tokenizer

from crossalign.embedding import sentences
from crossalign.embedding.model import load_model
from crossalign.embedding.sentences import Options, embed_files
from crossalign.engine import weights
from crossalign.engine.folders import load_weights, save_encoder
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
TEXT = [
    "the cat sat on the mat .",
    "John lives in Paris and Berlin",
    "cat",
    "who ?",
    "Where does John live ? " * 3,
    "a long sentence that is spelt letter by letter, (so many pieces)",
    "the the the",
    "the cat " * 40,
]
FAMILIES = ["bert", "xlm-roberta", "xlm-roberta-xl", "xglm"]


def tokenizer_of(family):
    tokenizer = bert_tokenizer() if family == "bert" else xlmr_tokenizer()
    single = {"bert": "[CLS] $A [SEP]", "xglm": "</s> $A"}.get(family, "<s> $A </s>")
    names = [name for name in single.split() if name != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names]
    )
    return tokenizer


def model_folder(folder, family):
    model = library_model(family)
    # Several files, as large models have.
    model.save_pretrained(folder, max_shard_size="8KB")
    assert (folder / "model.safetensors.index.json").exists()
    tokenizer_of(family).save(str(folder / "tokenizer.json"))
    return model


@pytest.fixture(scope="module", params=FAMILIES)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, folder, model_folder(folder, request.param)


@pytest.fixture
def folder(tmp_path):
    model_folder(tmp_path / "model", "bert")
    return tmp_path / "model"


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")
    return path


def reference(model, tokenizer, text, max_length, special_tokens, last_layer="mean"):
    """One sentence at a time through the library's model."""
    tokenizer.enable_truncation(max_length)
    rows = []
    for line in text:
        encoding = tokenizer.encode(line)
        with torch.no_grad():
            hidden = model(torch.tensor([encoding.ids]), output_hidden_states=True).hidden_states
        keep = torch.tensor([special_tokens == "include" or not special for special in encoding.special_tokens_mask])
        rows.append([state[0][keep].mean(0) for state in hidden])
        if last_layer == "cls":
            rows[-1][-1] = hidden[-1][0, 0]
    return torch.stack([torch.stack(row) for row in rows], 1).numpy()


@pytest.mark.parametrize(
    ("special_tokens", "last_layer"), [("include", "mean"), ("exclude", "mean"), ("include", "cls"), ("exclude", "cls")]
)
def test_embeddings_equal_one_sentence_at_a_time(made, special_tokens, last_layer, tmp_path, monkeypatch):
    """Vectors, the lengths beside them (tokens of the mean), and what is counted."""
    family, folder, library = made
    # Windows of three sentences: the last one is shorter.
    monkeypatch.setattr(sentences, "_WINDOW_SENTENCES", 3)
    texts = {"en": write(tmp_path / "en.txt", TEXT), "fr": write(tmp_path / "fr.txt", TEXT[::-1])}
    model, options = load_model(folder, CPU, budget=60), Options(40, special_tokens, last_layer)
    if family == "xglm" and last_layer == "cls":
        with pytest.raises(UserError, match="models of type 'xglm' have no token for the sentence"):
            embed_files(model, texts, tmp_path / "out", options)
        return
    counts = embed_files(model, texts, tmp_path / "out", options)["en"]
    got = np.load(tmp_path / "out" / "en.npy", mmap_mode="r")
    want = reference(library, tokenizer_of(family), TEXT, 40, special_tokens, last_layer)
    assert got.dtype == np.float32 and got.shape == (4, len(TEXT), 16)
    np.testing.assert_allclose(got, want, atol=1e-5, rtol=1e-5)
    special = 1 if family == "xglm" else 2
    words = [len(tokenizer_of(family).encode(line, add_special_tokens=False).ids) for line in TEXT]
    assert (counts.sentences, counts.cut) == (len(TEXT), sum(count > 40 - special for count in words)) > (1, 1)
    want = [min(count, 40 - special) + special * (special_tokens == "include") for count in words]
    for lang, expected in (("en", want), ("fr", want[::-1])):
        lengths = np.load(tmp_path / "out" / f"{lang}.lengths.npy")
        assert lengths.dtype == np.int32 and lengths.tolist() == expected


def test_large_tensors_are_read_in_pieces(made, monkeypatch):
    _, folder, _ = made
    shards = weights.Shards(folder)
    whole = {name: shards.read(name, CPU, torch.bfloat16) for name in shards.places}
    assert any(tensor.dim() == 2 and len(tensor) > 20 for tensor in whole.values())
    monkeypatch.setattr(weights, "_PIECE", 4 * 16 * 7)
    shards = weights.Shards(folder)
    for name, tensor in whole.items():
        assert torch.equal(shards.read(name, CPU, torch.bfloat16), tensor)
        assert torch.equal(shards.read(name, CPU, torch.float32).bfloat16(), tensor)


@pytest.mark.parametrize("norm", ["roberta-prelayernorm", "normformer"])
def test_trained_families(norm, tmp_path):
    config = EncoderConfig.from_huggingface({**SHAPE, "model_type": norm, "type_vocab_size": 1, "pad_token_id": 1})
    encoder, tokenizer = fresh_encoder(config, 1).eval(), tokenizer_of("xlm-roberta")
    save_encoder(tmp_path / "model", encoder, tokenizer)
    text = write(tmp_path / "en.txt", TEXT[:5])
    embed_files(load_model(tmp_path / "model", CPU), {"en": text}, tmp_path, Options(40, "include"))
    for row, line in enumerate(TEXT[:5]):
        with torch.no_grad():
            want = encoder(torch.tensor([tokenizer.encode(line).ids]), all_layers=True)
        got = np.load(tmp_path / "en.npy")[:, row]
        np.testing.assert_allclose(got, torch.stack(want)[:, 0].mean(1), atol=1e-5, rtol=1e-5)


def test_tuned_model_is_laid_over_its_base(folder, tmp_path):
    from crossalign.engine.task_model import TaskModel, save_tuned
    from crossalign.tasks import get_task

    encoder = load_weights(folder)
    with torch.no_grad():
        encoder.layers[1].up.weight += 0.1
    task = get_task("pos", ["NOUN", "VERB"])
    head = task.make_head(16, 0.0)
    save_tuned(tmp_path / "tuned", folder, TaskModel(encoder, head), task, {})
    text = write(tmp_path / "en.txt", TEXT[:3])
    embed_files(load_model(folder, CPU), {"en": text}, tmp_path / "base", Options(40))
    embed_files(load_model(folder, CPU, tuned=tmp_path / "tuned"), {"en": text}, tmp_path / "over", Options(40))
    base, over = (np.load(tmp_path / name / "en.npy") for name in ("base", "over"))
    assert np.array_equal(base[:2], over[:2])
    assert np.abs(base[2:] - over[2:]).max() > 1e-3
    save_encoder(tmp_path / "other", fresh_encoder(encoder.config, 5), bert_tokenizer())
    with pytest.raises(UserError, match=r"was tuned from 'model'.*holds other weights"):
        load_model(tmp_path / "other", CPU, tuned=tmp_path / "tuned")


def test_empty_lines(folder, tmp_path, caplog):
    model = load_model(folder, CPU)
    text = write(tmp_path / "en.txt", ["the cat", "", "\u200b \x7f", "cat"])
    counts = embed_files(model, {"en": text}, tmp_path, Options(40, "include"))["en"]
    assert (counts.sentences, counts.empty) == (4, 2)
    assert "2 of 4 lines have no words" in caplog.text
    got = np.load(tmp_path / "en.npy")
    # Not the same bits: a row's place in its batch may decide how a product is added up.
    assert np.isfinite(got).all() and np.allclose(got[:, 1], got[:, 2], rtol=0, atol=1e-6)
    with pytest.raises(UserError, match=r"en\.txt, line 2: no words to average"):
        embed_files(model, {"en": text}, tmp_path / "out", Options(40, "exclude"))
    assert not list((tmp_path / "out").glob("*"))
    # A last line without an end counts, and other ends of lines than \n do not.
    text.write_text("the cat\nsat\u2028on\r\nthe mat", encoding="utf-8")
    assert embed_files(model, {"en": text}, tmp_path, Options(40))["en"].sentences == 3


@pytest.mark.parametrize(
    ("texts", "longest", "message"),
    [
        ({"en": TEXT, "fr": TEXT[:2]}, 40, r"fr\.txt: 2 sentences, but .*en\.txt has 8"),
        ({"en": []}, 40, r"en\.txt: no sentences"),
        ({"en": ["the cat", "\udcff\udcfe"]}, 40, r"en\.txt"),
        ({"en": TEXT}, 49, "--max-length 49: the model has positions for 48 tokens only"),
        ({"en": TEXT}, 2, "--max-length 2 leaves no room for words beside 2 special tokens"),
        ({"en": TEXT}, 40, r"en\.txt, line 1: layer 2 has numbers that are not finite"),
    ],
)
def test_bad_input(texts, longest, message, folder, tmp_path):
    model = load_model(folder, CPU)
    if "not finite" in message:
        model.encoder.layers[1].up.weight.data[3, 3] = float("nan")
    files = {lang: write(tmp_path / f"{lang}.txt", lines) for lang, lines in texts.items()}
    with pytest.raises(UserError, match=message):
        embed_files(model, files, tmp_path, Options(longest))
    assert not list(tmp_path.glob("*.npy")) and not list(tmp_path.glob(".*part"))


def test_bad_model_folders(folder, tmp_path):
    """What `folders` refuses for all is refused here too, before anything is placed."""
    with pytest.raises(UserError, match="is not a model folder"):
        load_model(tmp_path, CPU)
    tokenizer = bert_tokenizer()
    tokenizer.add_tokens([f"word{n}" for n in range(200)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(UserError, match="the tokenizer belongs to another model"):
        load_model(tmp_path, CPU)
    names = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    (folder / names["encoder.layer.1.output.dense.weight"]).write_bytes(b"cut")
    with pytest.raises(UserError, match="fetch it again"):
        load_model(folder, CPU)


def run(root, *args):
    command = [sys.executable, str(root / "scripts" / "embed_sentences.py"), *map(str, args)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_program(root, folder, tmp_path):
    en, fr = write(tmp_path / "en.txt", TEXT), write(tmp_path / "fr.txt", TEXT[::-1])
    done = run(
        root, "--model", folder, "--text", f"en={en}", f"fr={fr}", "--max-length", 40, "--special-tokens", "include",
        "--last-layer", "cls", "--out", tmp_path / "out", "--device", "cpu",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "en: 8 sentences" in done.stderr
    en, fr = (np.load(tmp_path / "out" / f"{lang}.npy") for lang in ("en", "fr"))
    np.testing.assert_allclose(en, fr[:, ::-1], atol=1e-6)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "en.lengths.npy", "en.npy", "fr.lengths.npy", "fr.npy"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [("en", "LANG=FILE was expected"), ("en=nowhere.txt", "no such file"), ("a/b=x", "LANG=FILE was expected")],
)
def test_program_names_bad_arguments(text, message, root, folder, tmp_path):
    done = run(root, "--model", folder, "--text", text, "--out", tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: --text") and message in done.stderr


MEMORY = """
import sys
from pathlib import Path
import torch
from crossalign.embedding import sentences
from crossalign.embedding.model import load_model

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

folder = Path(sys.argv[1])
torch.set_num_threads(1)
sentences._WINDOW_SENTENCES = 500
model = load_model(folder / "model", torch.device("cpu"))
peaks = []
for name in ("few", "many"):
    sentences.embed_files(model, {name: folder / f"{name}.txt"}, folder / "out", sentences.Options(40))
    peaks.append(peak())
print(peaks[1] - peaks[0], (folder / "out" / "many.npy").stat().st_size)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads peak memory where Linux shows it")  # noqa: PTH110
def test_memory_does_not_grow_with_the_sentences(root, tmp_path):
    config = EncoderConfig(vocab_size=160, hidden=256, layers=3, heads=4, intermediate=64, positions=48)
    save_encoder(tmp_path / "model", fresh_encoder(config, 1), tokenizer_of("bert"))
    # Few: several windows, so that what passes at a time is part of both peaks.
    for name, count in (("few", 400), ("many", 2500)):
        write(tmp_path / f"{name}.txt", TEXT[:4] * count)
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts"), "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}
    command = [sys.executable, "-c", MEMORY, str(tmp_path)]
    growths = []
    # The allocator adds up to 28 MB in one process out of five; sentences that are kept would add more in every one.
    while len(growths) < 4 and min(growths, default=12e6) >= 12e6:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        growth, written = map(int, done.stdout.split())
        assert written > 40e6
        growths.append(growth)
    assert min(growths) < 12e6, growths
