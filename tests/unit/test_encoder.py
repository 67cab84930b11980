"""The encoder against the library's models: hidden states of all layers, gradients, folders."""

import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from crossalign.engine.encoder import Encoder, restore_vocabulary, slice_vocabulary
from crossalign.engine.huggingface import library_names, load_config, load_encoder, load_weights, save_encoder
from crossalign.engine.layout import Layout
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.runtime.errors import UserError

SHAPE = {
    "vocab_size": 90,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # Large weights: with the usual 0.02 a wrong attention would hardly show.
    "initializer_range": 0.3,
}
# The same shape in XGLM's words.
XGLM = {
    "vocab_size": 90,
    "d_model": 32,
    "num_layers": 3,
    "attention_heads": 4,
    "ffn_dim": 48,
    "max_position_embeddings": 38,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "init_std": 0.3,
}


def library_model(family):
    import transformers

    torch.manual_seed(3)
    if family == "bert":
        model = transformers.BertModel(transformers.BertConfig(**SHAPE))
    elif family == "xlm-roberta":
        model = transformers.XLMRobertaModel(
            transformers.XLMRobertaConfig(**SHAPE, type_vocab_size=1, pad_token_id=1), add_pooling_layer=False
        )
    elif family == "xglm":
        model = transformers.XGLMModel(transformers.XGLMConfig(**XGLM, pad_token_id=1))
    else:
        model = transformers.RobertaPreLayerNormModel(
            transformers.RobertaPreLayerNormConfig(**SHAPE, type_vocab_size=1, pad_token_id=1), add_pooling_layer=False
        )
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 0.5, 0.2)
    return model


FAMILIES = ["bert", "xlm-roberta", "roberta-prelayernorm", "xglm"]


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request, tmp_path_factory):
    """The library's model and ours read from the folder it wrote."""
    folder = tmp_path_factory.mktemp(request.param)
    model = library_model(request.param)
    model.save_pretrained(folder)
    return model.train(), load_weights(folder).train(), folder


def padded_batch(pad):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 90, (4, 11), generator=generator)
    mask = torch.zeros(4, 11, dtype=torch.long)
    for row, length in enumerate([11, 3, 7, 1]):
        mask[row, :length] = 1
    return torch.where(mask.bool(), ids, pad), mask


def test_hidden_states_equal_the_library(pair):
    model, ours, _ = pair
    ids, mask = padded_batch(ours.config.pad_id)
    theirs = model(ids, attention_mask=mask, output_hidden_states=True)
    states = ours(ids, mask, all_layers=True)
    assert len(states) == len(theirs.hidden_states) == SHAPE["num_hidden_layers"] + 1
    real = mask.bool()
    for state, expected in zip(states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(state[real], expected[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours(ids, mask)[real], theirs.last_hidden_state[real], atol=1e-5, rtol=1e-5)


def test_hidden_states_without_mask(pair):
    model, ours, _ = pair
    ids, _ = padded_batch(7)
    torch.testing.assert_close(ours(ids), model(ids).last_hidden_state, atol=1e-5, rtol=1e-5)


def test_segment_types():
    model = library_model("bert")
    ours = Encoder(EncoderConfig.from_huggingface(model.config.to_dict()))
    copy_weights(model, ours)
    ids, mask = padded_batch(0)
    types = (torch.arange(11) > 4).long().expand(4, 11)
    expected = model(ids, attention_mask=mask, token_type_ids=types).last_hidden_state
    real = mask.bool()
    torch.testing.assert_close(ours(ids, mask, types)[real], expected[real], atol=1e-5, rtol=1e-5)
    assert (ours(ids, mask)[real] - expected[real]).abs().max() > 1e-2


def copy_weights(model, ours):
    state = model.state_dict()
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            parameter.copy_(torch.cat([state[part] for part in library_names(ours)[name]]))


def test_gradients_equal_the_library(pair):
    model, ours, _ = pair
    ids, mask = padded_batch(ours.config.pad_id)
    weights = torch.randn(4, 11, 32, generator=torch.Generator().manual_seed(2)) * mask[..., None]
    model.zero_grad()
    ours.zero_grad()
    (model(ids, attention_mask=mask).last_hidden_state * weights).sum().backward()
    (ours(ids, mask) * weights).sum().backward()
    theirs = {name: parameter.grad for name, parameter in model.named_parameters()}
    names = library_names(ours)
    for name, parameter in ours.named_parameters():
        expected = torch.cat([theirs[part] for part in names[name]])
        torch.testing.assert_close(parameter.grad, expected, atol=2e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def packed_inputs(ours, filling=0):
    """The batch of `padded_batch` as packed tokens."""
    ids, mask = padded_batch(ours.config.pad_id)
    lengths = mask.sum(1)
    rows = mask.bool().reshape(-1).nonzero()[:, 0]
    cells = torch.zeros(mask.numel(), dtype=torch.long)
    cells[rows] = torch.arange(len(rows))
    positions = torch.arange(11).repeat(4)[rows] + ours.config.position_offset
    packed = ids.reshape(-1)[rows]
    if filling:
        packed, positions, rows = (torch.cat([x, x.new_zeros(filling)]) for x in (packed, positions, rows))
    return packed, positions, Layout(4, 11, lengths, cells, rows, filled=filling > 0), ids, mask


@pytest.mark.parametrize("filling", [0, 5, "groups"])
def test_packed_equals_padded(pair, filling):
    _, ours, _ = pair
    packed, positions, layout, ids, mask = packed_inputs(ours, filling if filling != "groups" else 0)
    if filling == "groups":
        layout.group(ratio=0.7, least=1)
        assert [(group.batch, group.length) for group in layout.groups] == [(1, 11), (2, 7), (1, 1)]
    weights = torch.randn(4, 11, 32, generator=torch.Generator().manual_seed(2)) * mask[..., None]
    expected = ours(ids, mask)
    expected_grads = torch.autograd.grad((expected * weights).sum(), list(ours.parameters()))
    got = layout.to_grid(ours.packed(packed, positions, None, layout))
    real = mask.bool()
    torch.testing.assert_close(got[real], expected[real], atol=1e-5, rtol=1e-5)
    grads = torch.autograd.grad((got * weights).sum(), list(ours.parameters()))
    for (name, _), grad, wanted in zip(ours.named_parameters(), grads, expected_grads, strict=True):
        torch.testing.assert_close(grad, wanted, atol=2e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def test_an_empty_sequence_gives_no_nan(pair):
    _, ours, _ = pair
    layout = Layout(2, 3, torch.tensor([3, 0]), torch.tensor([0, 1, 2, 0, 0, 0]), torch.tensor([0, 1, 2]))
    positions = torch.arange(3) + ours.config.position_offset
    out = layout.to_grid(ours.packed(torch.tensor([5, 6, 7]), positions, None, layout))
    out[0].sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(p.grad).all() for p in ours.parameters() if p.grad is not None)


def test_normformer_is_its_equations():
    """Against the formulas of Shleifer et al. written out for one layer and one sentence."""
    config = EncoderConfig(
        vocab_size=20, hidden=8, layers=1, heads=2, intermediate=12, positions=16, position_offset=2, norm="normformer",
        residual_scaling=True, family="normformer", hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    encoder = fresh_encoder(config, 1)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.7)
    layer = encoder.layers[0]
    embedded, got = encoder(torch.tensor([[3, 4, 5, 6]]), all_layers=True)
    x = embedded[0]
    q, k, v = (layer.attention_norm(x) @ layer.qkv.weight.T + layer.qkv.bias).chunk(3, dim=1)
    heads = []
    for h in range(2):
        part = slice(4 * h, 4 * h + 4)
        weights = torch.softmax(q[:, part] @ k[:, part].T / 2.0, dim=1)
        heads.append(layer.head_scale[h] * (weights @ v[:, part]))
    attended = torch.cat(heads, dim=1) @ layer.out.weight.T + layer.out.bias
    x = x + layer.inner_attention_norm(attended)
    inner = torch.nn.functional.gelu(layer.output_norm(x) @ layer.up.weight.T + layer.up.bias)
    x = layer.residual_scale * x + layer.inner_output_norm(inner) @ layer.down.weight.T + layer.down.bias
    torch.testing.assert_close(got[0], encoder.final_norm(x), atol=1e-5, rtol=1e-5)


def test_folder_round_trip(pair, tmp_path):
    model, ours, _ = pair
    save_encoder(tmp_path, ours)
    again = load_weights(tmp_path)
    assert again.config == ours.config
    for (name, parameter), (_, other) in zip(ours.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(parameter, other), name
    theirs = type(model).from_pretrained(tmp_path).eval()
    ids, mask = padded_batch(ours.config.pad_id)
    got = theirs(ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(got, model.eval()(ids, attention_mask=mask).last_hidden_state, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_old_names_and_prefixes(pair, prefix, tmp_path):
    _, ours, folder = pair
    if ours.config.family != "bert":
        pytest.skip("names of BERT")
    tensors = {
        prefix + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    tensors["cls.predictions.bias"] = torch.zeros(90)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    again = load_weights(tmp_path)
    assert torch.equal(again.layers[1].attention_norm.weight, ours.layers[1].attention_norm.weight)
    assert again.pretrained["pooler.dense.weight"].shape == (32, 32)


def test_sliced_vocabulary_is_exact(pair):
    _, ours, folder = pair
    sliced = load_weights(folder).train()
    full = sliced.embeddings.word.weight.data.clone()
    ids, mask = padded_batch(ours.config.pad_id)
    used = torch.unique(ids)
    mapping = slice_vocabulary(sliced, used)
    assert len(sliced.embeddings.word.weight) == len(used) < 90
    ours.zero_grad()
    a = ours(ids, mask)
    b = sliced(mapping[ids], mask)
    assert torch.equal(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    assert torch.equal(ours.embeddings.word.weight.grad[used], sliced.embeddings.word.weight.grad)
    unused = torch.ones(90, dtype=torch.bool)
    unused[used] = False
    assert not ours.embeddings.word.weight.grad[unused].any()
    restore_vocabulary(sliced, full)
    assert torch.equal(sliced.embeddings.word.weight, ours.embeddings.word.weight)


def write_folder(folder, raw, tensors=None):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(raw))
    if tensors is not None:
        save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "t5"}, "model_type 't5' is not one of bert"),
        ({"hidden_act": "relu"}, "hidden_act 'relu' is not supported"),
        ({"num_attention_heads": 5}, "hidden size 32 is not a multiple of the 5"),
        ({"position_embedding_type": "relative_key"}, "is not 'absolute'"),
    ],
)
def test_configs_that_are_refused(tmp_path, change, message):
    write_folder(tmp_path, SHAPE | change)
    with pytest.raises(UserError, match=message):
        load_config(tmp_path)


def test_a_config_without_a_size(tmp_path):
    write_folder(tmp_path, {"model_type": "bert", "vocab_size": 3})
    with pytest.raises(UserError, match=r"config\.json: missing hidden_size, num_hidden_layers"):
        load_config(tmp_path)


def test_folders_that_are_refused(pair, tmp_path):
    _, ours, folder = pair
    with pytest.raises(UserError, match=r"config\.json is missing"):
        load_weights(tmp_path)
    raw = json.loads((folder / "config.json").read_text())
    write_folder(tmp_path, raw)
    with pytest.raises(UserError, match=r"has no model\.safetensors"):
        load_weights(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a file")
    with pytest.raises(UserError, match=r"model\.safetensors cannot be read"):
        load_weights(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    write_folder(tmp_path, raw | {"intermediate_size": 49, "ffn_dim": 49}, tensors)
    with pytest.raises(UserError, match=r"(intermediate\.dense|fc1)\.\w+ has shape \(48.*wants \(49"):
        load_weights(tmp_path)
    (missing,) = library_names(ours)["layers.1.down.bias"]
    tensors.pop(missing)
    write_folder(tmp_path, raw, tensors)
    with pytest.raises(UserError, match=f"no tensor '{re.escape(missing)}'"):
        load_weights(tmp_path)


def test_a_tokenizer_of_another_model(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(30))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    config = EncoderConfig(vocab_size=35, hidden=8, layers=1, heads=2, intermediate=8, positions=16)
    save_encoder(tmp_path, fresh_encoder(config, 1))
    _, tokenizer = load_encoder(tmp_path)
    assert tokenizer.encode("w3 w4").ids == [2, 8, 9, 3]
    save_encoder(tmp_path, fresh_encoder(replace(config, vocab_size=30), 1))
    with pytest.raises(UserError, match="knows 35 pieces but the model has 30 embeddings"):
        load_encoder(tmp_path)
