"""Folders whose config.json is that of another model although all tensors have the right names."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.family_models import write_family
from tests.unit.library_models import library_model

from crossalign.engine.folders import load_language_model, load_weights
from crossalign.runtime.errors import UserError


def change(folder, **values):
    """Other values in config.json; None deletes a key."""
    raw = json.loads((folder / "config.json").read_text()) | values
    (folder / "config.json").write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))


def refused(folder, message, backend="auto"):
    with pytest.raises(UserError, match=message) as caught:
        load_weights(folder, backend=backend)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("backend", ["own", "library"])
@pytest.mark.parametrize(
    ("family", "others", "values"),
    [
        ("bert", ("xlm-roberta", "roberta", "camembert"), {"max_position_embeddings": 48, "type_vocab_size": 2}),
        ("xlm-roberta", ("bert",), {"max_position_embeddings": 50, "type_vocab_size": 1}),
    ],
)
def test_bert_and_roberta_swapped_without_a_prefix(tmp_path, family, others, values, backend):
    """Neither prefix nor head nor `architectures`: only the values tell."""
    model = library_model(family)
    if family == "xlm-roberta":
        old = model.embeddings.position_embeddings
        model.embeddings.position_embeddings = torch.nn.Embedding(50, old.embedding_dim)
    model.save_pretrained(tmp_path)
    pad = 0 if family == "bert" else 1
    change(tmp_path, architectures=None, pad_token_id=pad, **values)
    load_weights(tmp_path, backend=backend)
    told = ", ".join(f"{key} {value}" for key, value in (values | {"pad_token_id": pad}).items())
    right = "bert" if family == "bert" else "roberta or xlm-roberta"
    for other in others:
        change(tmp_path, model_type=other)
        refused(tmp_path, f"model_type is '{other}', but {told} are those of {right}; correct one", backend)
    # A model that is half this and half that is let through, as HerBERT is.
    change(tmp_path, type_vocab_size=values["type_vocab_size"] % 2 + 1, model_type="bert")
    with pytest.raises(UserError, match="token_type_embeddings.weight has shape"):
        load_weights(tmp_path, backend=backend)


@pytest.mark.parametrize(
    ("family", "heads", "tensor"),
    [
        ("llama", {"num_key_value_heads": 4}, "k_proj"),
        ("qwen3", {"head_dim": 16}, "k_norm"),
        ("gemma3_text", {"num_key_value_heads": 1}, "k_proj"),
        ("t5", {"num_heads": 2, "d_kv": 16}, "relative_attention_bias"),
        ("t5", {"relative_attention_num_buckets": 16}, "relative_attention_bias"),
        ("deberta-v2", {"position_buckets": 8}, "rel_embeddings"),
    ],
)
def test_another_number_of_heads_where_shapes_tell(tmp_path, family, heads, tensor):
    write_family(family, tmp_path)
    change(tmp_path, **heads)
    refused(tmp_path, rf"{tensor}\S* has shape \([\d, ]+\), config\.json wants", "library")


@pytest.mark.parametrize("family", ["t5", "mt5"])
def test_two_tables_of_words_that_differ(tmp_path, family):
    write_family(family, tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    name = "encoder.embed_tokens.weight"
    save_file(tensors | {name: tensors["shared.weight"].clone()}, file, {"format": "pt"})
    load_weights(tmp_path, backend="library")
    save_file(tensors | {name: tensors["shared.weight"] + 1}, file, {"format": "pt"})
    refused(tmp_path, rf"{name} and shared\.weight differ, but are one table in this model; delete one")


def test_a_head_that_config_json_ties_to_other_words(tmp_path):
    write_family("qwen3", tmp_path, tie_word_embeddings=True)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"] + 1}, file, {"format": "pt"})
    # A base model has no use for the head.
    load_weights(tmp_path)
    with pytest.raises(UserError, match=r"lm_head\.weight and model\.embed_tokens\.weight differ, but are one table"):
        load_language_model(tmp_path, 1)
