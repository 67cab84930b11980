"""Weights that do not belong to their config.json are refused in one sentence; published layouts load."""

import json
import re

import pytest
import torch
from library_models import SHAPE, library_model
from safetensors.torch import load_file, save_file

from crossalign.engine.folders import load_weights, save_encoder
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.weights import Shards, audit, read_config
from crossalign.runtime.errors import UserError


@pytest.fixture
def folder(tmp_path):
    """A BERT of the library with its head, as it is published: prefix `bert.`, head `cls.`."""
    return published("bert", tmp_path)


def published(family, folder):
    model = library_model(family)
    model.save_pretrained(folder)
    head = {"bert": "cls.predictions.bias", "xglm": "lm_head.weight"}.get(family, "lm_head.bias")
    prefix = {"bert": "bert.", "xglm": "model.", "roberta-prelayernorm": "roberta_prelayernorm."}.get(
        family, "roberta."
    )
    change(folder, lambda tensors: {prefix + name: value for name, value in tensors.items()} | {head: torch.zeros(160)})
    return folder


def change(folder, weights=None, **config):
    """Rewrite the weights by a function and keys of config.json; a value of None deletes the key."""
    if weights is not None:
        save_file(weights(load_file(folder / "model.safetensors")), folder / "model.safetensors")
    raw = json.loads((folder / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))


def refused(folder, *parts):
    """The one sentence; it names the folder and all `parts`."""
    with pytest.raises(UserError) as caught:
        load_weights(folder)
    text = str(caught.value)
    assert str(folder) in text and "\n" not in text
    for part in parts:
        assert re.search(part, text), text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"num_hidden_layers": 2},
            r"nothing uses encoder\.layer\.2\.attention\.output\.LayerNorm\.b.* and 13 more$",
        ),
        ({"num_hidden_layers": 4}, r"missing are encoder\.layer\.3\.attention\.\S+, .* and 13 more$"),
        ({"max_position_embeddings": 50}, r"position_embeddings\.weight has shape \(48, 16\), .* wants \(50, 16\)$"),
        ({"model_type": None}, "names no model_type"),
        ({"is_decoder": True}, "is_decoder: true.*bert"),
        ({"quantization_config": {"load_in_8bit": True}}, "config.json: the weights are quantised"),
    ],
)
def test_weights_of_another_config(folder, config, message):
    change(folder, **config)
    refused(folder, message)


def test_pre_norm_weights_under_the_names_of_post_norm(tmp_path):
    published("roberta-prelayernorm", tmp_path)

    def rename(name):
        name = name.replace("attention.LayerNorm", "attention.output.LayerNorm")
        return name.replace("intermediate.LayerNorm", "output.LayerNorm").replace("roberta_prelayernorm.", "roberta.")

    change(tmp_path, lambda tensors: {rename(name): value for name, value in tensors.items()}, model_type="xlm-roberta")
    change(tmp_path, architectures=None)
    refused(tmp_path, r"nothing uses LayerNorm\.bias, LayerNorm\.weight$")


@pytest.mark.parametrize(("family", "other"), [("bert", "xlm-roberta"), ("xlm-roberta", "bert")])
def test_another_family(family, other, tmp_path):
    published(family, tmp_path)
    change(tmp_path, model_type=other)
    refused(tmp_path, "architectures names (Bert|XLMRoberta)Model, but model_type", other)


@pytest.mark.parametrize("kind", [torch.int8, torch.float8_e4m3fn])
def test_quantised_weights(folder, kind):
    name = "bert.encoder.layer.1.output.dense.weight"
    change(folder, lambda tensors: tensors | {name: tensors[name].to(kind)})
    refused(folder, rf"{name} is of type (I8|U8|F8_E4M3); quantised weights are not read")


def test_a_tensor_that_is_there_twice(folder):
    """Under two prefixes, or in two shards, or with a prefix of another family."""
    tensors, name = load_file(folder / "model.safetensors"), "encoder.layer.1.output.dense.weight"
    save_file(tensors | {f"model.{name}": tensors[f"bert.{name}"] + 1}, folder / "model.safetensors")
    refused(folder, rf"{name} is there twice, the other time as bert\.{name}")
    save_file({"transformer.a": torch.ones(2), "a": torch.ones(2)}, folder / "model.safetensors")
    assert set(Shards(folder).places) == {"transformer.a", "a"}
    with pytest.raises(UserError, match="is there twice"):
        Shards(folder, ["transformer."])
    (folder / "model.safetensors").unlink()
    save_file(tensors, folder / "a.safetensors")
    save_file({"bert.embeddings.LayerNorm.gamma": torch.ones(16)}, folder / "b.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, r"embeddings\.LayerNorm\.gamma is there twice, .*LayerNorm\.weight in a\.safetensors")


def test_another_number_of_heads(tmp_path):
    """Known where a tensor has a number for each head."""
    raw = SHAPE | {"model_type": "normformer", "type_vocab_size": 1, "pad_token_id": 1}
    save_encoder(tmp_path, fresh_encoder(EncoderConfig.from_huggingface(raw), 1))
    change(tmp_path, num_attention_heads=2)
    refused(tmp_path, r"attention\.self\.head_scale has shape \(4,\), config\.json wants \(2,\)", "; .*layer.2")


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_numbers_that_are_not_finite(folder, number, kind):
    """Large ones are no damage, though their sum overflows."""
    change(folder, lambda tensors: tensors | {"bert.embeddings.LayerNorm.bias": torch.full((16,), 3e38)})
    assert load_weights(folder).embeddings.norm.bias.max() == 3e38

    def damage(tensors):
        tensors["bert.encoder.layer.1.output.dense.weight"][3, 5] = number
        tensors["bert.embeddings.LayerNorm.bias"].zero_()
        return {name: value.to(kind) for name, value in tensors.items()}

    change(folder, damage)
    refused(folder, r"encoder\.layer\.1\.output\.dense\.weight has numbers that are not finite")


def test_code_of_its_own(folder):
    change(folder, auto_map={"AutoModel": "modeling.Mine"}, model_type="mine")
    refused(folder, r"asks for code of its own \(auto_map\), which is never run", "no model of type 'mine'")
    change(folder, model_type="eurobert")
    assert read_config(folder)["model_type"] == "eurobert"


def test_published_layouts(tmp_path):
    """Prefixes, heads, old names of norms, tables that are computed, tied copies, shards."""
    layouts = {
        "bert": {"cls.seq_relationship.weight": (2, 16), "cls.predictions.decoder.weight": (160, 16)},
        "xlm-roberta": {"lm_head.decoder.weight": (160, 16), "roberta.pooler.dense.weight": (16, 16)},
        "xlm-roberta-xl": {"lm_head.dense.weight": (16, 16)},
        "roberta-prelayernorm": {"lm_head.layer_norm.bias": (16,)},
        "xglm": {"model.embed_positions.weights": (50, 16)},
    }
    for family, more in layouts.items():
        folder = published(family, tmp_path / family)
        plain = load_weights(folder)
        extra = {name: torch.ones(shape) for name, shape in more.items()}
        if family != "xglm":
            extra["roberta.embeddings.position_ids" if family != "bert" else "bert.embeddings.position_ids"] = (
                torch.arange(48)
            )
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"} if family == "bert" else {}

        def rename(name, old=old):
            return next((name.replace(new, before) for new, before in old.items() if name.endswith(new)), name)

        change(folder, lambda t, extra=extra, rename=rename: {rename(k): v for k, v in t.items()} | extra)
        if family == "xglm":
            shard(folder)
        loaded = load_weights(folder)
        assert all(map(torch.equal, loaded.parameters(), plain.parameters()))
        assert ("pooler.dense.weight" in loaded.pretrained) == (family in ("bert", "xlm-roberta"))


def shard(folder):
    tensors = list(load_file(folder / "model.safetensors").items())
    (folder / "model.safetensors").unlink()
    places = {}
    for number, part in enumerate([tensors[: len(tensors) // 2], tensors[len(tensors) // 2 :]], 1):
        name = f"model-0000{number}-of-00002.safetensors"
        save_file(dict(part), folder / name)
        places |= {key: name for key, _ in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def test_the_demo_s_models_load(root):
    for folder in sorted((root / "resources/demo/models").iterdir()):
        load_weights(folder)


def test_the_decoder_of_an_encoder_decoder_is_not_needed(tmp_path):
    audit(tmp_path, [], ["decoder.block.0.layer.0.SelfAttention.q.weight", "lm_head.weight"], {}, True)
    with pytest.raises(UserError, match=r"nothing uses decoder\.block\.0"):
        audit(tmp_path, [], ["decoder.block.0.layer.0.SelfAttention.q.weight"], {})
