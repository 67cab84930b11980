"""Causal language modelling: what a token may see, what it learns, and folders that the library reads."""

import numpy as np
import pytest
import torch
from tests.pretrain_toys import make_texts, settings, start

from crossalign.engine.corpus import CausalBlocks, Corpus
from crossalign.engine.folders import load_encoder, load_head, load_weights
from crossalign.engine.lm_heads import masked_loss
from crossalign.engine.pretrain_job import Job, pretrain, starting_point
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("causal")


@pytest.fixture(scope="module")
def texts(folder):
    return {"aa": make_texts(folder)["aa"]}


@pytest.fixture(scope="module")
def trained(folder, texts):
    fast = settings(steps=200, batch=8, learning_rate=1e-2, warmup=0.1, dropout=0.0)
    begun = start(folder, style="xglm", objective="clm")
    return folder / "model", pretrain(begun, Job(texts, fast, folder / "model"), CPU)


def test_the_library_computes_the_same(trained):
    import transformers

    theirs, info = transformers.XGLMForCausalLM.from_pretrained(trained[0], output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    encoder, _ = load_encoder(trained[0])
    head, words = load_head(trained[0], encoder.config), encoder.embeddings.word.weight
    ids = torch.randint(4, encoder.config.vocab_size, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        states = encoder.eval()(ids, all_layers=True)
        expected = theirs.eval()(ids, labels=ids, output_hidden_states=True)
        for state, wanted in zip(states, expected.hidden_states, strict=True):
            torch.testing.assert_close(state, wanted, atol=1e-5, rtol=1e-5)
        scores = head.inner(states[-1].reshape(27, -1)) @ words.t()
        loss = masked_loss(head, states[-1], words, torch.arange(8).expand(3, 8), ids[:, 1:])
    torch.testing.assert_close(scores, expected.logits.reshape(27, -1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(loss, expected.loss, atol=1e-5, rtol=1e-5)
    assert theirs.config.eos_token_id == 2 and theirs.config.pad_token_id == 1


def test_blocks_predict_the_next_token(tmp_path):
    np.arange(5, 305).astype("<u2").tofile(tmp_path / "x.uint16")
    store = CausalBlocks(Corpus({"x": tmp_path / "x.uint16"}, 7, 1.0, 1), 4, 1, 2, 2)
    ids, places, truth = store.rows(store.members(3))
    assert ids.shape == (4, 8) and (ids[:, 0] == 2).all()
    assert (places == np.arange(7)).all() and np.array_equal(truth, ids[:, 1:])
    assert np.array_equal(store.assemble(store.members(3)).tensors["positions"].reshape(4, 8)[1], np.arange(2, 10))
    assert store.targets[store.members(3)].tolist() == [7] * 4


def test_going_on_from_a_causal_model(trained, texts, tmp_path):
    begun = starting_point(trained[0], None, "post", None, {}, 1)
    report = pretrain(begun, Job(texts, settings(steps=3), tmp_path / "m"), CPU)
    assert report["objective"] == "clm" and report["loss"][0][1] < 2 * trained[1]["loss"][-1][1]
    assert load_weights(tmp_path / "m").config == load_weights(trained[0]).config


def test_bad_starts(trained, folder, tmp_path):
    for wrong, message in (
        (lambda: starting_point(trained[0], None, "post", None, {}, 1, "mlm"), "'xglm' is trained with clm"),
        (lambda: start(folder, "normformer", "normformer", objective="clm"), "'normformer' is trained with mlm"),
        (lambda: start(folder, objective="next"), "objective next: .* is trained with mlm"),
        (lambda: start(folder, "pre", "xglm"), r"a tokenizer with <s> <pad> </s> <unk>.*--style xglm"),
        (lambda: start(folder, style="xlm-roberta", objective="clm"), r"puts </s> before a text.*--style xglm"),
    ):
        with pytest.raises(UserError, match=message):
            wrong()


def test_a_masked_model_needs_a_mask_token(folder, texts, tmp_path):
    begun = start(folder, family="xlm-roberta", style="xglm")
    with pytest.raises(UserError, match="neither \\[MASK\\] nor <mask>"):
        pretrain(begun, Job(texts, settings(steps=2), tmp_path / "m"), CPU)


def test_words_may_be_drawn_with_a_spread_of_their_own(folder, texts):
    plain, wide = (start(folder, style="xglm", objective="clm", **more) for more in ({}, {"word_range": 0.25}))
    torch.testing.assert_close(wide.encoder.word.weight, 2.5 * plain.encoder.word.weight)  # 0.1 otherwise
    torch.testing.assert_close(wide.encoder.layers[0].state_dict(), plain.encoder.layers[0].state_dict())
    # A checkpoint of the one is not gone on with by the other.
    assert wide.identity != plain.identity
