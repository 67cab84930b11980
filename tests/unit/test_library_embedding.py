"""Sentence and word vectors equal a plain loop over the library with `output_hidden_states`."""

from functools import cache

import numpy as np
import pytest
import torch
from family_models import CAUSAL, FAMILIES, write_family

from crossalign.embedding import model as loading
from crossalign.embedding.model import load_model, too_large
from crossalign.embedding.sentences import Options, embed_files
from crossalign.embedding.words import WordPair, embed_pairs
from crossalign.engine.folders import load_empty, load_weights
from crossalign.engine.library import find_layers, spread_library_encoder
from crossalign.engine.tokens import Frame, word_pieces
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
TEXT = ["the cat sat on the mat .", "John", "Where does John live ?", "the mat and the cat " * 3, "Paris Berlin", "who"]
# Our own encoder knows some; here the library computes all.
LIBRARY = "library"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a family's model, made once."""
    return cache(lambda family: write_family(family, tmp_path_factory.mktemp(family)))


def plain_model(family, folder):
    import transformers

    kind = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"}.get(family, "AutoModel")
    # The library's fused attention forgets that Gemma 2 caps its scores.
    return getattr(transformers, kind).from_pretrained(folder, attn_implementation="eager").eval()


def plain_states(model, ids):
    """Layers x tokens x neurons of one sequence, one sentence at a time."""
    with torch.no_grad():
        output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    return torch.stack([state[0] for state in output.hidden_states]).numpy()


# A token before and behind a sentence, behind it only, before it only, none.
FRAMED = ["bert", "t5", "llama", "gpt2"]
SENTENCES = [*((family, "include") for family in FAMILIES), *((family, "exclude") for family in FRAMED)]


@pytest.mark.parametrize(("family", "special"), SENTENCES)
def test_sentences(folder, family, special, tmp_path):
    plain = plain_model(family, folder(family))
    text = tmp_path / "en.txt"
    text.write_text("\n".join(TEXT) + "\n")
    model = load_model(folder(family), CPU, budget=64, backend=LIBRARY)
    assert model.encoder.backend == LIBRARY and model.config.causal == (family in CAUSAL)
    counts = embed_files(model, {"en": text}, tmp_path, Options(14, special))["en"]
    assert counts.sentences == len(TEXT) and counts.cut >= 1
    got = np.load(tmp_path / "en.npy")
    frame = Frame.of(model.tokenizer)
    for row, line in enumerate(TEXT):
        inside = model.tokenizer.encode(line, add_special_tokens=False).ids[: 14 - frame.size]
        wanted = plain_states(plain, [*frame.before, *inside, *frame.after])
        if special == "exclude":
            wanted = wanted[:, len(frame.before) : len(frame.before) + len(inside)]
        np.testing.assert_allclose(got[:, row], wanted.mean(1), atol=1e-5, rtol=1e-5, err_msg=f"{family}: {line}")


@pytest.mark.parametrize("family", FRAMED)
@pytest.mark.parametrize("layer", [None, 1])
def test_words(folder, family, layer):
    plain = plain_model(family, folder(family))
    model = load_model(folder(family), CPU, backend=LIBRARY)
    sentences = [line.split() for line in TEXT]
    # Sentences and places of the linked words.
    chosen = [(0, 2, 0, 0), (0, 3, 3, 1), (2, 4, 1, 1), (3, 1, 2, 0)]
    pairs = [WordPair(n, (sentences[a], sentences[b]), (i, j)) for n, (a, b, i, j) in enumerate(chosen, 1)]
    related, _ = embed_pairs(model, pairs, 1, layer)
    frame = Frame.of(model.tokenizer)
    split = word_pieces(model.tokenizer, sentences, 99)
    for row, pair in enumerate(pairs):
        for side, (words, place) in enumerate(zip(pair.sentences, pair.places, strict=True)):
            pieces = split(words)
            start = len(frame.before) + sum(map(len, pieces[:place]))
            ids = [*frame.before, *(n for piece in pieces for n in piece), *frame.after]
            wanted = plain_states(plain, ids)[-1 if layer is None else layer, start : start + len(pieces[place])]
            np.testing.assert_allclose(related[row, side], wanted.mean(0), atol=1e-5, rtol=1e-5)


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
        places.update({path + name: "cpu" for name, _ in module.named_parameters(recurse=False)})
        places.update({path + name: "cpu" for name, _ in module.named_buffers(recurse=False)})

    visit(model, "")
    return places


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_in_several_places_gives_the_same(folder, family, tmp_path):
    whole = load_weights(folder(family), backend=LIBRARY).eval()
    places = {"device_map": all_over(whole.model), "offload_folder": tmp_path}
    spread = spread_library_encoder(folder(family), torch.float32, **places).eval()
    # ALBERT's layers are one.
    assert any(each.is_meta for each in spread.layers.parameters()) == (family != "albert")
    grid = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    with torch.no_grad():
        assert all(map(torch.equal, whole(*grid, all_layers=True), spread(*grid, all_layers=True)))


def test_what_is_larger_than_the_gpu_is_the_librarys(folder, monkeypatch):
    """Also where our own encoder knows the shape. A GPU is asked for its memory before a weight is read."""
    empty = load_empty(folder("bert"))
    # A number has two bytes in bf16, four in fp32; more tokens take more.
    sizes = {"bf16": 260_000, "fp32": 420_000}
    for precision, size in sizes.items():
        assert too_large(empty, precision, 50, size // 2) and not too_large(empty, precision, 50, 2 * size)
        assert too_large(empty, precision, 1000, 2 * size)
    spread = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 10_000))
    monkeypatch.setattr(loading, "choose_precision", lambda *_: "bf16")
    monkeypatch.setattr(loading, "rooms", lambda *_: {"cpu": 10**9})
    monkeypatch.setattr(loading, "spread_library_encoder", lambda *told, **more: spread.append((*told, more)) or empty)
    assert load_model(folder("bert"), torch.device("cuda")).encoder is empty
    assert spread == [(folder("bert"), torch.bfloat16, {"max_memory": {"cpu": 10**9}})]


def test_a_decoder_has_no_token_for_the_sentence(folder, tmp_path):
    text = tmp_path / "en.txt"
    text.write_text("the cat\n")
    for family in ("llama", "t5"):
        model = load_model(folder(family), CPU)
        with pytest.raises(UserError, match=f"--last-layer cls: models of type '{family}' have no token"):
            embed_files(model, {"en": text}, tmp_path, Options(14, last_layer="cls"))
