"""The compiled layer of small models gives what PyTorch gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crossalign.engine import cpu, fused, ops
from crossalign.engine.encoder import Encoder
from crossalign.engine.layout import Layout
from crossalign.engine.ops import Sink
from crossalign.engine.shape import EncoderConfig

LENGTHS = [23, 17, 16, 9, 8, 3, 1]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """As jobs of the demo run, on any machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(ops, "SLOW_PATHS", True)
    known = fused._known
    known.cache_clear()
    yield
    torch.set_num_threads(threads)
    known.cache_clear()


def layer_and_batch():
    torch.manual_seed(1)
    config = EncoderConfig(
        family="bert", norm="post", vocab_size=10, hidden=32, layers=1, heads=4, intermediate=64, positions=64,
        hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    layer = Encoder(config).layers[0].train()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=0.3)
    layout = Layout._of_lengths(LENGTHS)
    layout.group()
    return layer, layout, torch.randn(sum(LENGTHS), 32), torch.randn(sum(LENGTHS), 32)


def run(layer, layout, x, grad, times=1):
    """Output, gradient of the input, gradients of the parameters."""
    for parameter in layer.parameters():
        parameter.sink = Sink(torch.full_like(parameter, float("nan")))
    for _ in range(times):
        given = x.clone().requires_grad_()
        with torch.enable_grad():
            out = layer(given, layout)
        out.backward(grad)
    return out.detach(), given.grad, {name: value.sink.grad.clone() for name, value in layer.named_parameters()}


@pytest.mark.parametrize("times", [1, 2])
def test_layer_equals_pytorch(monkeypatch, times):
    """Also where a second loss adds to the gradients."""
    layer, layout, x, grad = layer_and_batch()
    before = grad.clone()
    used = []
    monkeypatch.setattr(fused, "forward", lambda *given, whole=fused.forward: used.append(1) or whole(*given))
    got = run(layer, layout, x, grad, times)
    assert len(used) == times
    assert torch.equal(grad, before)
    monkeypatch.setattr(fused, "_known", lambda: False)
    want = run(layer, layout, x, grad, times)
    assert len(used) == times
    torch.testing.assert_close(got, want, rtol=2e-4, atol=2e-5)


def test_predictions_equal_pytorch(monkeypatch):
    layer, layout, x, _ = layer_and_batch()
    layer.eval()
    used = []
    monkeypatch.setattr(fused, "forward", lambda *given, whole=fused.forward: used.append(1) or whole(*given))
    with torch.inference_mode():
        got = layer(x, layout)
        assert used == [1]
        monkeypatch.setattr(fused, "_known", lambda: False)
        torch.testing.assert_close(got, layer(x, layout), rtol=1e-4, atol=1e-5)
    assert used == [1]


def test_parameters_that_move_are_found_again():
    """An optimiser takes them into its memory when training starts and gives them back in the end."""
    layer, layout, x, grad = layer_and_batch()
    with torch.no_grad():
        before = layer(x, layout)
        run(layer, layout, x, grad)
        for parameter in layer.parameters():
            parameter.data = 2 * parameter.data
        after = layer(x, layout)
        want = cpu.PostLayer.apply(x, layer.qkv.weight, layer, layout)
    assert (after - before).abs().max() > 0.1
    torch.testing.assert_close(after, want, rtol=1e-4, atol=1e-5)


def test_what_is_no_number_stays_none():
    """One such token spoils its own sentence, so that training notices, and no other."""
    layer, layout, x, _ = layer_and_batch()
    x[LENGTHS[0]] = float("nan")
    with torch.no_grad():
        out = layer(x, layout)
    spoilt = torch.zeros(len(x), dtype=torch.bool)
    spoilt[LENGTHS[0] : LENGTHS[0] + LENGTHS[1]] = True
    assert torch.equal(out.isnan().any(1), spoilt)


def test_attention_equals_pytorch():
    torch.manual_seed(2)
    layout = Layout._of_lengths(LENGTHS)
    qkv, grad = 2 * torch.randn(sum(LENGTHS), 96), torch.randn(sum(LENGTHS), 32)
    results = []
    for function in (lambda x: fused.FusedAttention.apply(x, layout, 4), lambda x: plain(x, 4)):
        given = qkv.clone().requires_grad_()
        out = function(given)
        out.backward(grad)
        results.append((out.detach(), given.grad))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_a_sequence_without_tokens_changes_nothing():
    results = []
    for lengths in ([3, 2], [3, 0, 2]):
        given = torch.arange(5 * 96.0).view(5, 96).sin().requires_grad_()
        out = fused.FusedAttention.apply(given, Layout._of_lengths(lengths), 4)
        out.sum().backward()
        results.append((out.detach(), given.grad))
    torch.testing.assert_close(*results)


def plain(qkv, heads):
    """Attention by PyTorch's own function, sentence by sentence."""
    parts = (part.view(len(part), 3, heads, -1).permute(1, 2, 0, 3) for part in qkv.split(LENGTHS))
    attend = torch.nn.functional.scaled_dot_product_attention
    return torch.cat([attend(*part).transpose(0, 1).reshape(part.shape[2], -1) for part in parts])


def test_gelu_to_the_ends():
    """Also where its exponential is too small for a float."""
    from crossalign.engine import compiled

    x = np.concatenate([np.linspace(-30, 30, 4007), [0.0]]).astype(np.float32)[None]
    bias = np.full(x.shape[1], 0.5, np.float32)
    given = torch.from_numpy(x + bias).requires_grad_()
    want = torch.nn.functional.gelu(given)
    want.sum().backward()
    slope, inner = x.copy(), np.empty_like(x)
    compiled.gelu(slope, bias, inner)
    np.testing.assert_allclose(inner, want.detach().numpy(), rtol=2e-6, atol=5e-7)
    np.testing.assert_allclose(slope, given.grad.numpy(), rtol=2e-6, atol=5e-7)


@pytest.mark.parametrize("why", ["masked", "filled", "threads", "double", "no sinks", "odd", "no numba"])
def test_whatever_does_not_suit_takes_the_other_way(monkeypatch, why):
    layer, layout, x, _ = layer_and_batch()
    for parameter in layer.parameters():
        parameter.sink = Sink(torch.empty_like(parameter))
    assert fused.serves(layer, x, layout)
    if why == "masked":
        layout = Layout.from_mask(torch.ones(3, 4, dtype=torch.bool))
    elif why == "filled":
        layout.filled = True
    elif why == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    elif why == "double":
        x = x.double()
    elif why == "no numba":
        fused._known.cache_clear()
        monkeypatch.setattr(fused.importlib.util, "find_spec", lambda name: None)
    elif why == "odd":
        layer.config = replace(layer.config, intermediate=68)
    elif why == "no sinks":
        del layer.qkv.weight.sink
    assert not fused.serves(layer, x, layout)


def test_attention_of_other_layers_uses_it(monkeypatch):
    used = []
    monkeypatch.setattr(fused, "attend", lambda *given, whole=fused.attend: used.append(1) or whole(*given))
    qkv, layout = torch.randn(sum(LENGTHS), 96), Layout._of_lengths(LENGTHS)
    cpu.attend(qkv.requires_grad_(), layout, 4, 0.0, causal=False)
    assert used == [1]
    cpu.attend(qkv, layout, 4, 0.0, causal=True)
    cpu.attend(qkv, layout, 4, 0.1, causal=False)
    assert used == [1]
