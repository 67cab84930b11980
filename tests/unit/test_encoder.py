"""The encoder against the library's models: hidden states of all layers, gradients, folders."""

import json

import pytest
import torch
from library_models import NAMES, SHAPE, library_model
from safetensors.torch import save_file

from crossalign.engine import layout as layout_module
from crossalign.engine.encoder import restore_vocabulary, slice_vocabulary
from crossalign.engine.folders import library_names, load_config, load_weights, save_encoder
from crossalign.engine.layout import Layout
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module", params=NAMES)
def pair(request, tmp_path_factory):
    """The library's model and ours read from the folder it wrote."""
    folder = tmp_path_factory.mktemp(request.param)
    model = library_model(request.param)
    model.save_pretrained(folder)
    return model.train(), load_weights(folder).train(), folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    model = library_model("bert")
    model.save_pretrained(folder)
    return model, load_weights(folder), folder


def padded_batch(pad):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 90, (4, 11), generator=generator)
    mask = (torch.arange(11) < torch.tensor([11, 3, 7, 1])[:, None]).long()
    return torch.where(mask.bool(), ids, pad), mask


def close(got, want, atol=1e-5, rtol=1e-5, name=""):
    torch.testing.assert_close(got, want, atol=atol, rtol=rtol, msg=lambda message: f"{name}: {message}")


def test_hidden_states_equal_the_library(pair):
    model, ours, _ = pair
    ids, mask = padded_batch(ours.config.pad_id)
    theirs = model(ids, attention_mask=mask, output_hidden_states=True)
    states = ours(ids, mask, all_layers=True)
    real = mask.bool()
    for state, expected in zip(states, theirs.hidden_states, strict=True):
        close(state[real], expected[real])
    close(ours(ids, mask)[real], theirs.last_hidden_state[real])
    ids, _ = padded_batch(7)
    close(ours(ids), model(ids).last_hidden_state, name="without a mask")


def test_segment_types(bert):
    model, ours, _ = bert
    ids, mask = padded_batch(0)
    types = (torch.arange(11) > 4).long().expand(4, 11)
    real = mask.bool()
    expected = model(ids, attention_mask=mask, token_type_ids=types).last_hidden_state[real]
    close(ours(ids, mask, types)[real], expected)
    assert (ours(ids, mask)[real] - expected).abs().max() > 1e-2


def test_gradients_equal_the_library(pair):
    model, ours, _ = pair
    ids, mask = padded_batch(ours.config.pad_id)
    weights = torch.randn(4, 11, 16, generator=torch.Generator().manual_seed(2)) * mask[..., None]
    model.zero_grad()
    ours.zero_grad()
    (model(ids, attention_mask=mask).last_hidden_state * weights).sum().backward()
    (ours(ids, mask) * weights).sum().backward()
    theirs = {name: parameter.grad for name, parameter in model.named_parameters()}
    names = library_names(ours)
    for name, parameter in ours.named_parameters():
        close(parameter.grad, torch.cat([theirs[part] for part in names[name]]), 2e-5, 1e-4, name)


def packed_inputs(ours, filling=0):
    """The batch of `padded_batch` as packed tokens."""
    ids, mask = padded_batch(ours.config.pad_id)
    real = mask.bool()
    positions = torch.arange(11).expand(4, 11)[real] + ours.config.position_offset
    packed, positions = (torch.cat([x, x.new_zeros(filling)]) for x in (ids[real], positions))
    ends = [0, 11, 14, 21, 22] + [22 + filling] * (filling > 0)
    return packed, positions, Layout(torch.tensor(ends), 22 + filling, 11, filling > 0), ids, mask


@pytest.mark.parametrize("filling", [0, 5, "groups"])
def test_packed_equals_padded(pair, filling, monkeypatch):
    """All tokens in one batch, against one sentence after another."""
    _, ours, _ = pair
    if filling == "groups":
        monkeypatch.setattr(layout_module, "ENOUGH", 1)
        monkeypatch.setattr(layout_module, "WASTE", 1.0)
    packed, positions, layout, ids, mask = packed_inputs(ours, filling if filling != "groups" else 0)
    if filling == "groups":
        assert [(group.batch, group.length) for group in layout.groups] == [(1, 11), (2, 7), (1, 1)]
    weights = torch.randn(4, 11, 16, generator=torch.Generator().manual_seed(2)) * mask[..., None]
    rows = [ours(row[real.bool()][None])[0] for row, real in zip(ids, mask, strict=True)]
    expected = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    expected_grads = torch.autograd.grad((expected * weights).sum(), list(ours.parameters()))
    got = layout.to_grid(ours.packed(packed, positions, None, layout))
    close(got[mask.bool()], expected[mask.bool()])
    grads = torch.autograd.grad((got * weights).sum(), list(ours.parameters()))
    for (name, _), grad, wanted in zip(ours.named_parameters(), grads, expected_grads, strict=True):
        close(grad, wanted, 2e-5, 1e-4, name)


def test_where_packed_tokens_lie():
    layout = Layout(torch.tensor([0, 3, 3, 5, 7]), 7, 4, filled=True)
    assert layout.mask.tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    assert layout.cells.tolist() == [0, 1, 2, 0, 0, 0, 0, 0, 3, 4, 0, 0]
    assert layout.rows.tolist() == [0, 1, 2, 8, 9, 0, 0] and layout.real.tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert Layout(torch.tensor([0, 3, 6]), 6, 3).cells is None


def test_an_empty_sequence_gives_no_nan(pair):
    _, ours, _ = pair
    layout = Layout(torch.tensor([0, 3, 3]), 3, 3)
    positions = torch.arange(3) + ours.config.position_offset
    out = layout.to_grid(ours.packed(torch.tensor([5, 6, 7]), positions, None, layout))
    out[0].sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(p.grad).all() for p in ours.parameters() if p.grad is not None)


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
    close(got, model.eval()(ids, attention_mask=mask).last_hidden_state, 1e-6, 1e-6)


def test_sliced_vocabulary_is_exact(pair):
    _, ours, folder = pair
    sliced = load_weights(folder).train()
    full = sliced.embeddings.word.weight.data.clone()
    ids, mask = padded_batch(ours.config.pad_id)
    used = torch.unique(ids)
    mapping = slice_vocabulary(sliced, used)
    assert len(sliced.embeddings.word.weight) == len(used) < 90
    with pytest.raises(ValueError, match="restore the vocabulary"):
        save_encoder(folder / "sliced", sliced)
    ours.zero_grad()
    a, b = ours(ids, mask), sliced(mapping[ids], mask)
    assert torch.equal(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    gradient = ours.embeddings.word.weight.grad
    assert torch.equal(gradient[used], sliced.embeddings.word.weight.grad)
    unused = torch.ones(160, dtype=torch.bool)
    unused[used] = False
    assert not gradient[unused].any()
    restore_vocabulary(sliced, full)
    assert torch.equal(sliced.embeddings.word.weight, ours.embeddings.word.weight)


def write_folder(folder, raw, tensors=None):
    (folder / "config.json").write_text(json.dumps(raw))
    if tensors is not None:
        save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (SHAPE | {"model_type": "t5"}, "does not compute model_type 't5'.* it knows bert.*xlm-roberta-xl"),
        (SHAPE | {"hidden_act": "relu"}, "hidden_act 'relu'"),
        (SHAPE | {"num_attention_heads": 5}, "hidden size 16 is not a multiple of the 5"),
        (SHAPE | {"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
        ({"model_type": "bert", "vocab_size": 3}, r"config\.json: missing hidden_size, num_hidden_layers"),
        ({"model_type": "xglm", "d_model": 8}, "missing vocab_size, num_layers"),
    ],
)
def test_configs_that_are_refused(tmp_path, raw, message):
    write_folder(tmp_path, {"model_type": "bert"} | raw)
    with pytest.raises(UserError, match=message):
        load_config(tmp_path, "own")
