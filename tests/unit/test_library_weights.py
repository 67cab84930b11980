"""The audit of weights holds for models of the library too: one sentence for each fault, before anything runs."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.family_models import FAMILIES, write_family

from crossalign.engine.folders import choose_backend, load_config, load_weights
from crossalign.runtime.errors import UserError

# Where the families keep the number of their layers.
DEPTH = {"n_layers", "n_layer", "num_layers", "num_hidden_layers"}


def change(folder, tensors=None, **config):
    """Other weights, and other values in config.json; None deletes a key."""
    if tensors is not None:
        save_file(tensors(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})
    path = folder / "config.json"
    raw = json.loads(path.read_text()) | config
    path.write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))


def refused(folder, message, backend="library"):
    with pytest.raises(UserError, match=message) as caught:
        load_weights(folder, backend=backend)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("family", ["deberta-v2", "t5", "gpt2"])
def test_other_numbers_of_layers_and_spoilt_tensors(family, tmp_path):
    folder = write_family(family, tmp_path / family)
    whole = load_file(folder / "model.safetensors")
    name = next(name for name in sorted(whole) if ".2." in name and whole[name].dim() == 2 and "decoder." not in name)
    for spoilt, message in (
        (None, rf"missing are \S*{name.partition('.2.')[2]}$"),
        (whole[name][:, :-1].contiguous(), r"has shape \(\d+, \d+\), config\.json wants \(\d+, \d+\)"),
        (torch.full_like(whole[name], float("nan")), "has numbers that are not finite"),
        (whole[name].to(torch.int8), "is of type I8; quantised weights are not read"),
    ):
        kept = {key: value for key, value in whole.items() if key != name}
        change(folder, lambda _, kept=kept, spoilt=spoilt: kept if spoilt is None else kept | {name: spoilt})
        refused(folder, message)
    change(folder, lambda _: whole)
    raw = json.loads((folder / "config.json").read_text())
    (key,) = [key for key in DEPTH if key in raw]
    kinds = raw.get("layer_types") or []
    for count, wrong in ((2, r"nothing uses \S*2\."), (4, r"missing are \S*3\.")):
        change(folder, **{key: count}, **{"layer_types": [*kinds, *kinds][:count]} if kinds else {})
        refused(folder, rf"do not fit config\.json: {wrong}")


@pytest.mark.parametrize("family", ["gpt2"])
def test_a_tensor_under_two_prefixes(family, tmp_path):
    folder = write_family(family, tmp_path)
    name = next(name for name in sorted(load_file(folder / "model.safetensors")) if ".2." in name)
    change(folder, lambda tensors: tensors | {name.partition(".")[2]: tensors[name] + 1})
    refused(folder, "is there twice")


@pytest.mark.parametrize(
    ("family", "values", "tensor"),
    [
        ("llama", {"num_attention_heads": 2}, "q_proj"),
        ("t5", {"num_heads": 2, "d_kv": 16}, "relative_attention_bias"),
        ("deberta-v2", {"position_buckets": 8}, "rel_embeddings"),
    ],
)
def test_another_number_of_heads_where_shapes_tell(tmp_path, family, values, tensor):
    change(write_family(family, tmp_path), **values)
    refused(tmp_path, rf"{tensor}\S* has shape \([\d, ]+\), config\.json wants")


def test_two_tables_that_should_be_one(tmp_path):
    file = write_family("t5", tmp_path) / "model.safetensors"
    tensors, name = load_file(file), "encoder.embed_tokens.weight"
    save_file(tensors | {name: tensors["shared.weight"].clone()}, file, {"format": "pt"})
    load_weights(tmp_path, backend="library")
    save_file(tensors | {name: tensors["shared.weight"] + 1}, file, {"format": "pt"})
    refused(tmp_path, rf"{name} and shared\.weight differ, but are one table in this model; delete one")


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


def test_sizes_of_which_no_model_can_be_made(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "albert", "hidden_size": 8}')
    with pytest.raises(UserError, match=r"config\.json: no model of type 'albert' can be made of these sizes"):
        load_config(tmp_path)


def test_backends_by_name(tmp_path):
    folders = {family: write_family(family, tmp_path / family) for family in FAMILIES}
    refused(folders["electra"], "does not compute model_type 'electra'", "own")
    own = {family for family, folder in folders.items() if choose_backend(folder) == "own"}
    assert own == {"bert", "roberta", "xlm-roberta", "xglm"}
