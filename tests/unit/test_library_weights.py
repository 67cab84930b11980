"""The audit of weights holds for models of the library too: one sentence for each fault, before anything runs."""

import json

import pytest
import torch
from family_models import FAMILIES, write_family
from safetensors.torch import load_file, save_file

from crossalign.engine.folders import choose_backend, load_config, load_weights
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


def refused(folder, message, backend="library"):
    with pytest.raises(UserError, match=message) as caught:
        load_weights(folder, backend=backend)
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
    kinds = raw.get("layer_types") or []
    for count, wrong in ((2, r"nothing uses \S*2\."), (4, r"missing are \S*3\.")):
        change(folder, **{key: count}, **{"layer_types": [*kinds, *kinds][:count]} if kinds else {})
        refused(folder, rf"do not fit config\.json: {wrong}")


def test_a_spoilt_tensor(folder):
    name = layer_tensor(folder)
    whole = load_file(folder / "model.safetensors")
    for spoilt, message in (
        (None, rf"missing are \S*{name.partition('.2.')[2]}$"),
        (whole[name][:, :-1].contiguous(), r"has shape \(\d+, \d+\), config\.json wants \(\d+, \d+\)"),
        (torch.full_like(whole[name], float("nan")), "has numbers that are not finite"),
        (torch.full_like(whole[name], float("inf")), "has numbers that are not finite"),
        (whole[name].to(torch.int8), "is of type I8; quantised weights are not read"),
    ):
        kept = {key: value for key, value in whole.items() if key != name}
        change(folder, lambda _, kept=kept, spoilt=spoilt: kept if spoilt is None else kept | {name: spoilt})
        refused(folder, message)


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


def test_sizes_of_which_no_model_can_be_made(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "albert", "hidden_size": 8}')
    with pytest.raises(UserError, match=r"config\.json: no model of type 'albert' can be made of these sizes"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "vit"}, "'vit' is no text encoder or decoder"),
        ({"model_type": "clip"}, "'clip' is more than a text model"),
        ({"model_type": "bart"}, "of 'bart' the library does not load the encoder alone"),
        ({"model_type": "brandnew", "auto_map": {"AutoModel": "code.Model"}}, "code of its own .auto_map., which is n"),
        ({"model_type": "normformer"}, "the library has no model of type 'normformer'"),
        ({"quantization_config": {"bits": 4}}, "the weights are quantised"),
        ({"is_decoder": True}, "is_decoder makes a decoder of an encoder"),
        ({"num_attention_heads": 5}, "5"),
    ],
)
def test_configs_that_are_refused(tmp_path, changes, message):
    change(write_family("electra", tmp_path), **changes)
    refused(tmp_path, message)


def test_backends_by_name(tmp_path):
    folders = {family: write_family(family, tmp_path / family) for family in FAMILIES}
    with pytest.raises(UserError, match="backend 'theirs' is not one of auto, own, library"):
        load_weights(folders["bert"], backend="theirs")
    refused(folders["electra"], "model_type 'electra' is not one of bert", "own")
    own = {family for family, folder in folders.items() if choose_backend(folder) == "own"}
    assert own == {"bert", "roberta", "xlm-roberta", "xglm"}
