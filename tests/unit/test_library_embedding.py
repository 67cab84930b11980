"""Sentence and word vectors of every family equal a plain loop over the library with `output_hidden_states`."""

import numpy as np
import pytest
import torch
from family_models import CAUSAL, FAMILIES, write_family

from crossalign.embedding import placement as places
from crossalign.embedding import states
from crossalign.embedding.model import load_model
from crossalign.embedding.placement import Placement, spread, weight_sizes, working_bytes
from crossalign.embedding.sentences import Options, embed_files
from crossalign.embedding.words import WordPair, embed_pairs
from crossalign.engine.folders import load_empty, load_weights
from crossalign.engine.tokens import Frame, word_pieces
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
TEXT = ["the cat sat on the mat .", "John", "Where does John live ?", "the mat and the cat " * 3, "Paris Berlin", "who"]
# Our own encoder knows some; here the library computes all.
LIBRARY = "library"


@pytest.fixture(scope="module", params=FAMILIES)
def made(request, tmp_path_factory):
    """The family, its folder, and the library's own base model."""
    folder = write_family(request.param, tmp_path_factory.mktemp(request.param))
    return request.param, folder, plain_model(request.param, folder)


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


@pytest.mark.parametrize("special", ["include", "exclude"])
def test_sentences(made, special, tmp_path):
    family, folder, plain = made
    text = tmp_path / "en.txt"
    text.write_text("\n".join(TEXT) + "\n")
    model = load_model(folder, CPU, budget=64, backend=LIBRARY)
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


@pytest.mark.parametrize("layer", [None, 0, 2])
def test_words(made, layer):
    _, folder, plain = made
    model = load_model(folder, CPU, backend=LIBRARY)
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


def test_weights_in_host_memory_come_for_each_layer(made, monkeypatch):
    """The same vectors; afterwards every weight is at home again."""
    family, folder, _ = made
    model = load_model(folder, CPU, backend=LIBRARY)
    store = states.make_store(model, [[3, 4, 5, 6, 7, 8, 9], [4, 5], [6, 7, 8]])
    spans = np.array([(1, 6), (0, 2), (2, 3)])
    whole = states.embed(states.States(model), store, spans)
    assert torch.isfinite(whole).all()
    home = {name: tensor.data_ptr() for name, tensor in model.encoder.named_parameters()}
    moves = []
    fetch = places._Visit.enter

    def enter(self, layer, args, kwargs):
        result = fetch(self, layer, args, kwargs)
        moves.append(all(tensor.data_ptr() not in home.values() for tensor in layer.parameters()))
        return result

    monkeypatch.setattr(places._Visit, "enter", enter)
    spread(model.encoder, Placement(CPU, (CPU,) * 3, frozenset({0, 2})))
    again = states.embed(states.States(model), store, spans)
    # ALBERT's layers are one.
    assert moves == [True] * (3 if family == "albert" else 2)
    assert torch.equal(whole, again)
    assert {name: tensor.data_ptr() for name, tensor in model.encoder.named_parameters()} == home


def test_memory_is_known_from_config_json_alone(made, monkeypatch):
    family, folder, _ = made
    empty = load_empty(folder, LIBRARY)
    sizes = weight_sizes(empty, "fp32")
    parameters = dict(load_weights(folder, backend=LIBRARY).named_parameters())
    assert sizes.total == 4 * sum(parameter.numel() for parameter in parameters.values())
    assert 2 * weight_sizes(empty, "bf16").total == sizes.total
    assert all(size > 0 for size in (sizes.layers[:1] if family == "albert" else sizes.layers))
    assert working_bytes(empty, "fp32", 2000) == 2 * working_bytes(empty, "fp32", 1000)
    monkeypatch.setattr(places, "host_memory", lambda: 1_000_000)
    with pytest.raises(UserError, match=rf"does not fit: its weights need 0\.0 GB \({sizes.total} bytes\)"):
        load_model(folder, CPU, budget=1_000_000, backend=LIBRARY)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "xglm"])
def test_both_backends_give_the_same_vectors(family, tmp_path):
    folder = write_family(family, tmp_path / "model")
    text = tmp_path / "en.txt"
    text.write_text("\n".join(TEXT) + "\n")
    for backend in ("own", LIBRARY):
        model = load_model(folder, CPU, backend=backend)
        assert model.encoder.backend == backend
        embed_files(model, {"en": text}, tmp_path / backend, Options(14))
    own, library = (np.load(tmp_path / backend / "en.npy") for backend in ("own", LIBRARY))
    np.testing.assert_allclose(own, library, atol=1e-5, rtol=1e-5)


def test_a_decoder_has_no_token_for_the_sentence(tmp_path):
    text = tmp_path / "en.txt"
    text.write_text("the cat\n")
    for family in ("llama", "t5"):
        model = load_model(write_family(family, tmp_path / family), CPU)
        with pytest.raises(UserError, match=f"--last-layer cls: models of type '{family}' have no token"):
            embed_files(model, {"en": text}, tmp_path, Options(14, last_layer="cls"))
