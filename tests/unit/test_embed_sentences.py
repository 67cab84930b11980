"""Sentence vectors of every family against the library's model, fed one sentence at a time."""

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch
from tests.unit.family_models import write_family

from crossalign.embedding import model as loading
from crossalign.embedding import sentences
from crossalign.embedding.model import is_large, load_model, too_large
from crossalign.embedding.sentences import Options, embed_files
from crossalign.engine.folders import load_empty, load_weights, save_encoder
from crossalign.engine.library import find_layers, spread_library_encoder
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.tokens import Frame
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
TEXT = ["the cat sat on the mat .", "John", "Where does John live ?", "the mat and the cat " * 3, "Paris Berlin", "who"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a family's model, made once."""
    return cache(lambda family: write_family(family, tmp_path_factory.mktemp(family)))


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")
    return path


def plain_states(family, folder):
    """Layers x tokens x neurons of one sequence, by the library alone."""
    import transformers

    kind = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"}.get(family, "AutoModel")
    # The library's fused attention forgets that Gemma 2 caps its scores.
    model = getattr(transformers, kind).from_pretrained(folder, attn_implementation="eager").eval()

    @torch.no_grad()
    def states(ids):
        return torch.stack([each[0] for each in model(torch.tensor([ids]), output_hidden_states=True).hidden_states])

    return states


# With a token before and behind a sentence, behind it only, before it only, none; the first is our own encoder's too.
CASES = [
    *((family, "library", "include", "mean") for family in ("bert", "t5", "gpt2", "gemma2")),
    *((family, "library", "exclude", "mean") for family in ("t5", "llama")),
    ("xglm", "auto", "include", "mean"),
    *(("bert", "auto", special, last) for special, last in (("include", "mean"), ("exclude", "cls"))),
]


@pytest.mark.parametrize(("family", "backend", "special", "last"), CASES)
def test_vectors_equal_one_sentence_at_a_time(folder, family, backend, special, last, tmp_path, monkeypatch):
    """Vectors, the lengths beside them (tokens of the mean), and what is counted."""
    monkeypatch.setattr(sentences, "_TOKENISED", 4)
    model, states = load_model(folder(family), CPU, budget=64, backend=backend), plain_states(family, folder(family))
    assert model.encoder.backend == ("own" if backend == "auto" else "library")
    texts = {"en": write(tmp_path / "en.txt", TEXT), "fr": write(tmp_path / "fr.txt", TEXT[::-1])}
    counts = embed_files(model, texts, tmp_path, Options(14, special, last))["en"]
    assert (counts.sentences, counts.empty) == (len(TEXT), 0) and counts.cut >= 1
    got, lengths = np.load(tmp_path / "en.npy"), np.load(tmp_path / "en.lengths.npy")
    assert got.dtype == np.float32 and lengths.dtype == np.int32
    np.testing.assert_allclose(got, np.load(tmp_path / "fr.npy")[:, ::-1], atol=1e-5)
    frame = Frame.of(model.tokenizer)
    for row, line in enumerate(TEXT):
        inside = model.tokenizer.encode(line, add_special_tokens=False).ids[: 14 - frame.size]
        wanted = every = states([*frame.before, *inside, *frame.after])
        if special == "exclude":
            wanted = wanted[:, len(frame.before) : len(frame.before) + len(inside)]
        assert lengths[row] == wanted.shape[1]
        mean = wanted.mean(1)
        if last == "cls":
            mean[-1] = every[-1, 0]
        np.testing.assert_allclose(got[:, row], mean, atol=1e-5, rtol=1e-5, err_msg=line)


@pytest.mark.parametrize("family", ["llama", "t5", "xglm"])
def test_a_decoder_has_no_token_for_the_sentence(folder, family, tmp_path):
    with pytest.raises(UserError, match=f"--last-layer cls: models of type '{family}' have no token"):
        files = {"en": write(tmp_path / "en.txt", TEXT)}
        embed_files(load_model(folder(family), CPU), files, tmp_path, Options(14, last_layer="cls"))


def all_over(model):
    """The first layer and what is outside the layers in memory, the other layers on disk."""
    layers = set(find_layers(model))
    places = {}

    def visit(module, path):
        for name, part in module.named_children():
            if part in layers or layers.isdisjoint(part.modules()):
                places[path + name] = "disk" if part in layers - {find_layers(model)[0]} else "cpu"
            else:
                visit(part, f"{path}{name}.")
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        places.update({path + name: "cpu" for name, _ in own})

    visit(model, "")
    return places


@pytest.mark.parametrize("family", ["bert", "t5", "gpt2", "gemma3_text"])
def test_a_model_in_several_places_gives_the_same(folder, family, tmp_path):
    whole = load_weights(folder(family), backend="library").eval()
    places = {"device_map": all_over(whole.model), "offload_folder": tmp_path}
    spread = spread_library_encoder(folder(family), torch.float32, **places).eval()
    assert any(each.is_meta for each in spread.layers.parameters())
    grid = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    with torch.no_grad():
        assert all(map(torch.equal, whole(*grid, all_layers=True), spread(*grid, all_layers=True)))


def test_what_is_larger_than_the_gpu_is_the_librarys(folder, monkeypatch):
    """Also where our own encoder knows the shape. A GPU is asked for its memory before a weight is read."""
    empty = load_empty(folder("bert"))
    # A number has two bytes in bf16, four in fp32; more tokens take more.
    for precision, size in {"bf16": 260_000, "fp32": 420_000}.items():
        assert too_large(empty, precision, 50, size // 2) and not too_large(empty, precision, 50, 2 * size)
        assert too_large(empty, precision, 1000, 2 * size)
    spread = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 10_000))
    monkeypatch.setattr(loading, "choose_precision", lambda *_: "bf16")
    monkeypatch.setattr(loading, "rooms", lambda *_: {"cpu": 10**9})
    monkeypatch.setattr(loading, "spread_library_encoder", lambda *told, **more: spread.append((*told, more)) or empty)
    assert load_model(folder("bert"), torch.device("cuda")).encoder is empty
    assert spread == [(folder("bert"), torch.bfloat16, {"max_memory": {"cpu": 10**9}})]


def test_a_model_that_embeds_alone_is_known_by_the_heads_of_its_files(folder, monkeypatch):
    weights = sum(parameter.numel() for parameter in load_empty(folder("bert")).parameters())
    assert not is_large(folder("bert"))
    monkeypatch.setattr(loading, "_LARGE", weights - 1)
    assert is_large(folder("bert"))
    monkeypatch.setattr(loading, "_LARGE", 2 * weights)
    assert not is_large(folder("bert"))


def test_a_tuned_model_is_laid_over_its_base(folder, tmp_path):
    from crossalign.engine.task_model import TaskModel, save_tuned
    from crossalign.tasks import get_task

    encoder = load_weights(folder("bert"))
    with torch.no_grad():
        encoder.layers[1].up.weight += 0.1
    task = get_task("pos", ["NOUN", "VERB"])
    save_tuned(tmp_path / "tuned", folder("bert"), TaskModel(encoder, task.make_head(32, 0.0)), task, {})
    text = {"en": write(tmp_path / "en.txt", TEXT[:3])}
    for name, tuned in (("base", None), ("over", tmp_path / "tuned")):
        embed_files(load_model(folder("bert"), CPU, tuned=tuned), text, tmp_path / name, Options(14))
    base, over = (np.load(tmp_path / name / "en.npy") for name in ("base", "over"))
    assert np.array_equal(base[:2], over[:2])
    assert np.abs(base[2:] - over[2:]).max() > 1e-3
    save_encoder(tmp_path / "other", fresh_encoder(encoder.config, 5), load_model(folder("bert"), CPU).tokenizer)
    with pytest.raises(UserError, match=r"was tuned from .*holds other weights"):
        load_model(tmp_path / "other", CPU, tuned=tmp_path / "tuned")


def test_empty_lines(folder, tmp_path, caplog):
    model = load_model(folder("bert"), CPU)
    text = write(tmp_path / "en.txt", ["the cat", "", "\u200b \x7f", "cat"])
    counts = embed_files(model, {"en": text}, tmp_path, Options(40, "include"))["en"]
    assert (counts.sentences, counts.empty) == (4, 2)
    assert "2 of 4 lines have no words" in caplog.text
    with pytest.raises(UserError, match=r"en\.txt, line 2: no words to average"):
        embed_files(model, {"en": text}, tmp_path / "out", Options(40, "exclude"))
    assert not list((tmp_path / "out").glob("*"))
    # A last line without an end counts, and other ends of lines than \n do not.
    text.write_text("the cat\nsat\u2028on\r\nthe mat", encoding="utf-8")
    assert embed_files(model, {"en": text}, tmp_path, Options(40))["en"].sentences == 3


@pytest.mark.parametrize(
    ("texts", "longest", "message"),
    [
        ({"en": TEXT, "fr": TEXT[:2]}, 40, r"fr\.txt: 2 sentences, but .*en\.txt has 6"),
        ({"en": []}, 40, r"en\.txt: no sentences"),
        ({"en": ["the cat", "\udcff\udcfe"]}, 40, r"en\.txt"),
        ({"en": TEXT}, 81, "--max-length 81: the model has positions for 80 tokens only"),
        ({"en": TEXT}, 2, "--max-length 2 leaves no room for words beside 2 special tokens"),
        ({"en": TEXT}, 40, r"en\.txt, line 1: layer 2 has numbers that are not finite"),
    ],
)
def test_bad_input(texts, longest, message, folder, tmp_path):
    model = load_model(folder("bert"), CPU)
    if "not finite" in message:
        model.encoder.layers[1].up.weight.data[3, 3] = float("nan")
    files = {lang: write(tmp_path / f"{lang}.txt", lines) for lang, lines in texts.items()}
    with pytest.raises(UserError, match=message):
        embed_files(model, files, tmp_path, Options(longest))
    assert not list(tmp_path.glob("*.npy")) and not list(tmp_path.glob(".*part"))


def run(root, *args):
    command = [sys.executable, str(root / "scripts" / "embed_sentences.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_program(root, folder, tmp_path):
    text = write(tmp_path / "en.txt", TEXT)
    done = run(
        root, "--model", folder("bert"), "--text", f"en={text}", "--max-length", 40, "--special-tokens", "include",
        "--last-layer", "cls", "--out", tmp_path / "out", "--device", "cpu",
    )  # fmt: skip
    assert done.returncode == 0 and "en: 6 sentences" in done.stderr, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["en.lengths.npy", "en.npy"]
    given = ["--model", folder("bert"), "--max-length", 40, "--out", tmp_path, "--device", "cpu"]
    done = run(root, *given, "--text", "en=nowhere.txt")
    assert done.returncode == 1 and "error: nowhere.txt: cannot read" in done.stderr
