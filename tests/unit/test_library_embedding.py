"""Sentence and word vectors equal a plain loop over the library with `output_hidden_states`."""

from functools import cache

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


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_in_host_memory_come_for_each_layer(folder, family, monkeypatch):
    """The same vectors; afterwards every weight is at home again."""
    model = load_model(folder(family), CPU, backend=LIBRARY)
    store = states.make_store(model, [[3, 4, 5, 6, 7, 8, 9], [4, 5], [6, 7, 8]])
    spans = np.array([(1, 6), (0, 2), (2, 3)])
    whole = states.embed(states.States(model), store, spans)
    assert torch.isfinite(whole).all()
    home = {name: tensor.data_ptr() for name, tensor in model.encoder.named_parameters()}
    moves, other = [], torch.device("cpu", 0)
    fetch = places._Visit.enter

    def enter(self, layer, args, kwargs):
        result = fetch(self, layer, args, kwargs)
        moves.append(all(tensor.data_ptr() not in home.values() for tensor in layer.parameters()))
        return result

    monkeypatch.setattr(places._Visit, "enter", enter)
    # The same memory by another name: inputs and outputs of all layers move, as between GPUs.
    spread(model.encoder, Placement(CPU, (other,) * 3, frozenset({0, 2})))
    again = states.embed(states.States(model), store, spans)
    # ALBERT's layers are one.
    assert moves == ([True] * 3 if family == "albert" else [True, False, True])
    assert torch.equal(whole, again)
    assert {name: tensor.data_ptr() for name, tensor in model.encoder.named_parameters()} == home


@pytest.mark.parametrize("family", FAMILIES)
def test_memory_is_known_from_config_json_alone(folder, family, monkeypatch):
    empty = load_empty(folder(family), LIBRARY)
    sizes = weight_sizes(empty, "fp32")
    parameters = dict(load_weights(folder(family), backend=LIBRARY).named_parameters())
    assert sizes.total == 4 * sum(parameter.numel() for parameter in parameters.values())
    assert 2 * weight_sizes(empty, "bf16").total == sizes.total
    assert all(size > 0 for size in (sizes.layers[:1] if family == "albert" else sizes.layers))
    assert working_bytes(empty, "fp32", 2000) == 2 * working_bytes(empty, "fp32", 1000)
    monkeypatch.setattr(places, "host_memory", lambda: 1_000_000)
    with pytest.raises(UserError, match=rf"does not fit: its weights need 0\.0 GB \({sizes.total} bytes\)"):
        load_model(folder(family), CPU, budget=1_000_000, backend=LIBRARY)


def test_a_decoder_has_no_token_for_the_sentence(folder, tmp_path):
    text = tmp_path / "en.txt"
    text.write_text("the cat\n")
    for family in ("llama", "t5"):
        model = load_model(folder(family), CPU)
        with pytest.raises(UserError, match=f"--last-layer cls: models of type '{family}' have no token"):
            embed_files(model, {"en": text}, tmp_path, Options(14, last_layer="cls"))
