"""Equation 1 against a loop over words, and the adjustment as a whole."""

import numpy as np
import pytest
import torch
from tests.engine_toys import die_at
from tests.unit.adjustment_toys import batch_of, toy_files, toy_model, toy_tokenizer

from crossalign.engine.adjust import Adjusting, AdjustmentSettings, Frozen, PullLoss, freeze
from crossalign.engine.checkpoints import Saving
from crossalign.engine.optimiser import AdamW
from crossalign.engine.pairs import Choice, PairStore, Row, Sample, make_pairs, read_sample
from crossalign.engine.parts import Part
from crossalign.engine.steps import Engine
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return read_sample(*toy_files(tmp_path_factory.mktemp("pool"), 40), 40, 1)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return toy_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def pairs_of(sample, tokenizer, aggregation="avg", tokens="all"):
    # For sub-words the same links count pieces: they are in range, and as good as any.
    return make_pairs(sample, tokenizer, Choice(aggregation, tokens), 40)[0]


def naive_terms(encoder, original, pairs):
    """The two terms, sentence by sentence and word by word."""

    def vectors(model, sentence):
        states = model(torch.tensor([sentence["input_ids"]]))[0]
        units = {}
        for token, unit in enumerate(sentence["unit"]):
            units.setdefault(unit, []).append(states[token])
        units.pop(-1, None)
        return {unit: sum(states) / len(states) for unit, states in units.items()}

    aligned, held, links, units = 0.0, 0.0, 0, 0
    for pair in pairs:
        english, other, before = (
            vectors(encoder, pair.english), vectors(encoder, pair.other), vectors(original, pair.english)
        )  # fmt: skip
        for unit, partner in enumerate(pair.partners):
            for neuron in range(len(english[unit])):
                held = held + (english[unit][neuron] - before[unit][neuron].detach()) ** 2
                if partner >= 0:
                    aligned = aligned + (english[unit][neuron] - other[partner][neuron]) ** 2
            units += 1
            links += partner >= 0
    size = encoder.config.hidden
    return aligned / (links * size), held / (units * size)


def gradients(encoder, loss):
    encoder.zero_grad()
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in encoder.named_parameters()}


@pytest.mark.parametrize("aggregation", ["avg", "start", "end", "subword"])
@pytest.mark.parametrize("tokens", ["cls", "clssep", "words", "all"])
def test_gradients_equal_those_of_a_loop_over_words(sample, tokenizer, aggregation, tokens):
    pairs = pairs_of(sample, tokenizer, aggregation, tokens)[:5]
    encoder, original = toy_model(1).double(), toy_model(2).double()
    batch, encode = batch_of(encoder, PairStore(pairs), np.arange(5))
    ours = PullLoss(Frozen(encoder=original), 0.7, 1.3)(encode, batch)
    aligned, held = naive_terms(encoder, original, pairs)
    naive = 0.7 * aligned + 1.3 * held
    assert ours.item() == pytest.approx(naive.item(), rel=1e-12)
    got, expected = gradients(encoder, ours), gradients(encoder, naive)
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=1e-9, atol=1e-14, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize(("static", "micro"), [(False, 3), (True, 1), (True, 8)])
def test_gradients_of_a_step_of_the_engine(sample, tokenizer, static, micro):
    """Static shapes and steps in pieces change nothing, though each term has its own divisor."""
    pairs = pairs_of(sample, tokenizer)[:8]
    encoder, original = toy_model(1), toy_model(2)
    naive = naive_terms(encoder, original, pairs)
    expected = gradients(encoder, sum(naive))
    value = sum(naive).item()
    store = PairStore(pairs)
    frozen = freeze(original, store, CPU)
    assert frozen.table is not None
    engine = Engine(
        encoder, {}, [Part(store, PullLoss(frozen), 8)], np.array([1e-3]), AdamW(clip=0.0), static=static
    )  # fmt: skip
    engine.micro = micro
    engine.step(np.array([5, 2, 7, 0, 1, 3, 4, 6]))
    assert float(engine.losses[0]) == pytest.approx(value, rel=1e-5)
    for name, gradient in expected.items():
        got = engine.arena.gradients.places[engine.arena.parameters[f"encoder.{name}"]]
        torch.testing.assert_close(got, gradient, rtol=1e-4, atol=1e-7, msg=lambda m, n=name: f"{n}: {m}")


def test_the_original_has_no_dropout(sample, tokenizer):
    store = PairStore(pairs_of(sample, tokenizer))
    dropping = toy_model(2, hidden_dropout=0.5, attention_dropout=0.5).train()
    torch.testing.assert_close(freeze(dropping, store, CPU).table, freeze(toy_model(2), store, CPU).table)


# ---- the whole adjustment -------------------------------------------------------------------------------------------


def adjusting(sample, tokenizer, folder=None, saving=None, keep="auto", code_hash="r", dropout=0.1, **more):
    settings = AdjustmentSettings(**{"batch": 8, "learning_rate": 2e-3, "epochs": 6, **more})
    encoder = toy_model(1, hidden_dropout=dropout, attention_dropout=dropout)
    return Adjusting(encoder, tokenizer, sample, settings, CPU, folder, code_hash, saving, keep=keep)


def state(encoder):
    return {name: value.detach().clone() for name, value in encoder.named_parameters()}


def test_one_epoch_by_default_in_the_authors_optimiser(sample, tokenizer):
    run = Adjusting(toy_model(), tokenizer, sample, AdjustmentSettings(), CPU)
    assert run.total == 2
    settings = run.engine.arena.settings
    assert (settings.betas, settings.eps, settings.weight_decay, settings.clip) == ((0.9, 0.98), 1e-9, 0.0, 0.0)
    longer = adjusting(sample, tokenizer, epochs=4)
    rates = longer.engine.numbers[:, 0].numpy()
    np.testing.assert_allclose(rates, [0, 1e-3, *[2e-3] * 18], rtol=1e-6)


def test_resumed_equals_never_stopped_and_the_encoder_equals_the_table(sample, tokenizer, tmp_path):
    losses = []
    for keep in ("table", "encoder"):
        whole = adjusting(sample, tokenizer, keep=keep)
        weights = state(whole.run())
        losses.append(whole.engine.losses.numpy())
        die_at(adjusting(sample, tokenizer, tmp_path / keep, Saving(steps=1), keep=keep), 7)
        second = adjusting(sample, tokenizer, tmp_path / keep, keep=keep)
        again = state(second.run())
        assert (second.progress.step, second.progress.resumed) == (30, 1)
        assert all(torch.equal(value, again[name]) for name, value in weights.items())
    np.testing.assert_allclose(*losses, rtol=1e-3)


def test_mixed_precision_follows_full_precision(sample, tokenizer):
    full, mixed = (adjusting(sample, tokenizer, dropout=0.0, precision=name) for name in ("fp32", "bf16"))
    for run in (full, mixed):
        assert run.run().layers[0].up.weight.dtype == torch.float32
    assert mixed.frozen.table.dtype == torch.bfloat16
    np.testing.assert_allclose(mixed.engine.losses, full.engine.losses, rtol=0.03)


@pytest.mark.parametrize("change", [{"code_hash": "other"}, {"tokens": "words"}])
def test_another_adjustment_does_not_continue(sample, tokenizer, tmp_path, caplog, change):
    first = adjusting(sample, tokenizer, tmp_path, Saving(steps=29))
    first.run()
    other = adjusting(sample, tokenizer, tmp_path, **change)
    other.run()
    assert other.progress.resumed == 0
    assert "not used, training starts over" in caplog.text


def test_no_usable_link_at_all(tokenizer):
    empty = Sample([Row(1, ["ka"], ["ti"], []), Row(2, ["ka"], ["ka"], [(0, 0)])], 2, "pool.pharaoh")
    with pytest.raises(UserError, match=r"pool\.pharaoh: none of 2 sampled .* can be used \(2 without links, 0 too"):
        Adjusting(toy_model(), tokenizer, empty, AdjustmentSettings(), CPU)
