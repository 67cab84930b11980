"""The audit of weights holds for models of the library too: one sentence for each fault, before anything runs."""

import json

import pytest
import torch
from family_models import FAMILIES, write_family
from safetensors.torch import load_file, save_file

from crossalign.engine.folders import load_config, load_weights
from crossalign.runtime.errors import UserError

# Where the families keep the number of their layers.
DEPTH = {"n_layers", "n_layer", "num_layers", "num_hidden_layers"}


@pytest.fixture(
    params=["distilbert", "deberta-v2", "modernbert", "t5", "bloom", "gpt2", "llama", "qwen3", "gemma3_text"]
)
def folder(request, tmp_path):
    return write_family(request.param, tmp_path / request.param)


def change(folder, weights=None, **config):
    if weights is not None:
        save_file(weights(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))


def refused(folder, message):
    with pytest.raises(UserError, match=message) as caught:
        load_weights(folder, backend="library")
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


def layer_tensor(folder):
    """The name of a matrix in the last layer."""
    tensors = load_file(folder / "model.safetensors")
    return next(
        name for name in sorted(tensors) if ".2." in name and tensors[name].dim() == 2 and "decoder." not in name
    )


def test_other_numbers_of_layers(folder):
    raw = json.loads((folder / "config.json").read_text())
    (key,) = [key for key in DEPTH if key in raw]
    more = {"layer_types": raw["layer_types"][:2]} if raw.get("layer_types") else {}
    change(folder, **{key: 2}, **more)
    refused(folder, r"do not fit config\.json: nothing uses \S*2\.")
    more = {"layer_types": [*raw["layer_types"], raw["layer_types"][-1]]} if raw.get("layer_types") else {}
    change(folder, **{key: 4}, **more)
    refused(folder, r"do not fit config\.json: missing are \S*3\.")


def test_a_missing_tensor(folder):
    name = layer_tensor(folder)
    change(folder, lambda tensors: {key: value for key, value in tensors.items() if key != name})
    refused(folder, rf"missing are \S*{name.partition('.2.')[2]}$")


def test_a_tensor_of_another_shape(folder):
    name = layer_tensor(folder)
    change(folder, lambda tensors: tensors | {name: tensors[name][:, :-1].contiguous()})
    refused(folder, r"has shape \(\d+, \d+\), config\.json wants \(\d+, \d+\)")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite(folder, number):
    name = layer_tensor(folder)
    change(folder, lambda tensors: tensors | {name: torch.full_like(tensors[name], number)})
    refused(folder, r"has numbers that are not finite")


def test_quantised_weights(folder):
    name = layer_tensor(folder)
    change(folder, lambda tensors: tensors | {name: tensors[name].to(torch.int8)})
    refused(folder, "is of type I8; quantised weights are not read")
    change(folder, quantization_config={"quant_method": "bitsandbytes"})
    refused(folder, "the weights are quantised")


@pytest.mark.parametrize("family", ["distilbert", "gpt2", "llama", "xglm"])
def test_a_tensor_under_two_prefixes(family, tmp_path):
    folder = write_family(family, tmp_path / family)
    name = layer_tensor(folder)
    bare = name.partition(".")[2]
    change(folder, lambda tensors: tensors | {bare: tensors[name] + 1})
    refused(folder, "is there twice")


@pytest.mark.parametrize(("family", "other"), [("bert", "xlm-roberta"), ("xlm-roberta", "bert")])
def test_another_family(family, other, tmp_path):
    folder = write_family(family, tmp_path / family)
    change(folder, model_type=other)
    refused(folder, "architectures names .*, but model_type")
    change(folder, architectures=None, pad_token_id=1)
    refused(folder, r"do not fit config\.json: missing are .* and \d+ more; nothing uses .* and \d+ more")


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3_text"])
def test_another_number_of_heads(family, tmp_path):
    """Known where heads have a size of their own."""
    folder = write_family(family, tmp_path / family)
    change(folder, num_attention_heads=2)
    refused(folder, r"q_proj\.weight has shape \(32, 32\), config\.json wants \(16, 32\)")


@pytest.mark.parametrize("family", FAMILIES)
def test_whole_models_load_as_published(family, tmp_path):
    """With heads, tied copies and decoders that the base model has no use for."""
    encoder = load_weights(write_family(family, tmp_path / family), backend="library")
    assert all(torch.isfinite(parameter).all() for parameter in encoder.parameters())


def test_sizes_of_which_no_model_can_be_made(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "albert", "hidden_size": 8}')
    with pytest.raises(UserError, match=r"config\.json: no model of type 'albert' can be made of these sizes"):
        load_config(tmp_path)
