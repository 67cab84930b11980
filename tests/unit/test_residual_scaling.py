"""NormFormer's residual scaling: arithmetic, gradient, folders with and without it, and the way from a config."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine_toys import ToyTask, toy_encoder, toy_records
from tests.pretrain_toys import SHAPE, make_text, make_tokenizer
from torch.nn import functional

from crossalign.engine.finetune import FineTuning
from crossalign.engine.folders import load_weights, save_encoder
from crossalign.engine.layout import Layout
from crossalign.engine.pretrain import Pretraining, PretrainSettings
from crossalign.engine.pretrain_job import new_config, starting_point
from crossalign.engine.settings import Settings, checked
from crossalign.engine.shape import EncoderConfig
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
SCALED = {"norm": "normformer", "residual_scaling": True, "family": "normformer", "position_offset": 2, "pad_id": 1}


def scaled_encoder(**changes):
    """With scales as training might leave them: none is 1."""
    encoder = toy_encoder(**{**SCALED, **changes})
    torch.manual_seed(4)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if name.endswith("_scale"):
                parameter.copy_(torch.rand(parameter.shape) + 0.3)
    return encoder


def written_out(layer, x):
    """A NormFormer block for one sentence, by the formulas of Shleifer et al. (2021)."""
    size = layer.config.hidden // layer.config.heads
    heads = []
    parts = (part.split(size, dim=1) for part in layer.qkv(layer.attention_norm(x)).chunk(3, dim=1))
    for scale, q, k, v in zip(layer.head_scale, *parts, strict=True):
        heads.append(scale * (torch.softmax(q @ k.T / size**0.5, dim=1) @ v))
    x = x + layer.inner_attention_norm(layer.out(torch.cat(heads, dim=1)))
    inner = layer.inner_output_norm(functional.gelu(layer.up(layer.output_norm(x))))
    return layer.residual_scale * x + layer.down(inner)


def test_values_and_gradients_are_those_of_the_formulas():
    layer = scaled_encoder().layers[1].double()
    x = torch.randn(6, 16, dtype=torch.double, requires_grad=True)
    given = torch.randn(6, 16, dtype=torch.double)
    got, want = layer(x, Layout(torch.tensor([0, 6]), 6, 6)), written_out(layer, x)
    torch.testing.assert_close(got, want)
    inputs = [x, *layer.parameters()]
    for one, other in zip(*(torch.autograd.grad(result, inputs, given) for result in (got, want)), strict=True):
        torch.testing.assert_close(one, other)


def test_folders(tmp_path):
    encoder = scaled_encoder()
    save_encoder(tmp_path, encoder)
    assert json.loads((tmp_path / "config.json").read_text())["residual_scaling"] is True
    again = load_weights(tmp_path)
    assert again.config == encoder.config
    assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), again.parameters(), strict=True))
    tensors = load_file(tmp_path / "model.safetensors")
    name = "encoder.layer.1.output.residual_scale"
    save_file({key: value for key, value in tensors.items() if key != name}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=f"missing are {name}$"):
        load_weights(tmp_path)
    with pytest.raises(UserError, match="residual_scaling belongs to NormFormer"):
        EncoderConfig(vocab_size=9, norm="pre", residual_scaling=True)


def fine_tuned(folder, static):
    save_encoder(folder, scaled_encoder())
    settings = Settings(learning_rate=1e-3, batch=8, epochs=2, selection="last", seed=1)
    tuning = FineTuning(load_weights(folder), None, ToyTask(), toy_records(), [], settings)
    tuning.engine.static = static
    tuning.run()
    return tuning


def test_fine_tuning_moves_the_scales_with_exact_and_with_static_shapes(tmp_path):
    """Static shapes are what a GPU captures: their filling must not reach the gradient of the scales."""
    exact, static = (fine_tuned(tmp_path / "m", static) for static in (False, True))
    before = scaled_encoder().layers[0].residual_scale
    after = [run.model.encoder.layers[0].residual_scale for run in (exact, static)]
    assert (after[0] - before).abs().max() > 1e-3
    torch.testing.assert_close(after[0], after[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(exact.engine.losses, static.engine.losses)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaled")
    texts = {"aa": [make_text(folder / "aa.txt", 1, 200)]}
    make_tokenizer(folder / "tokenizer.json", texts, "xlm-roberta", 80)
    return folder, texts


@pytest.mark.parametrize(
    ("given", "hidden", "attention"),
    [
        ({"dropout": 0.0}, 0.0, 0.0), ({"dropout": 0.2, "attention_dropout": 0.0}, 0.2, 0.0),
    ],
)  # fmt: skip
def test_dropout_of_attention_is_apart(place, given, hidden, attention):
    from crossalign.engine.corpus import encode_texts

    start = starting_point(None, place[0] / "tokenizer.json", "post", "xlm-roberta", SHAPE, 1)
    files = encode_texts(place[1], start.tokenizer, place[0])
    settings = PretrainSettings(steps=2, batch=2, block=16, **given)
    run = Pretraining(start.encoder, start.head, start.tokenizer, files, settings)
    for config in (start.encoder.config, start.encoder.layers[1].config):
        assert (config.hidden_dropout, config.attention_dropout) == (hidden, attention)
    run.run()
    assert start.encoder.config.attention_dropout == start.encoder.config.hidden_dropout == 0.1
    config = new_config(start.tokenizer, "normformer", None, SHAPE | {"dropout": 0.2, "attention_dropout": 0.0})
    assert (config.hidden_dropout, config.attention_dropout) == (0.2, 0.0)
    with pytest.raises(
        UserError, match=r"attention_dropout: 1\.0 is not allowed; expected a number from 0 and below 1"
    ):
        checked({"attention_dropout": 1.0}, PretrainSettings)
