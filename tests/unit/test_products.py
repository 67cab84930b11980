"""Products of heads by NumPy are those of PyTorch."""

import pytest
import torch

from crossalign.engine import ops, products
from crossalign.engine.heads import BiaffineHead

WORDS, SIZE, LABELS = 5, 9, 4


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """As jobs of the demo run, on any machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(ops, "SLOW_PATHS", True)
    yield
    torch.set_num_threads(threads)


def both(monkeypatch, function, *shapes, used=None):
    """Value and gradients by NumPy and by PyTorch; the loss reads only the words `used`."""
    torch.manual_seed(3)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    results = []
    for slow in (True, False):
        monkeypatch.setattr(ops, "SLOW_PATHS", slow)
        value = function(*inputs)
        assert ("Product" in str(value.grad_fn) or "Bilinear" in str(value.grad_fn)) == slow
        loss = (value * torch.linspace(-1, 1, value.shape[-1])).square()
        loss = loss.sum() if used is None else (loss * used[..., None]).sum()
        results.append([value.detach(), *torch.autograd.grad(loss, inputs)])
    return results


@pytest.mark.parametrize("other", [(SIZE, 7), (3, SIZE, 7)], ids=["one matrix", "a batch"])
@pytest.mark.parametrize("words", [WORDS, 0])
def test_product(monkeypatch, other, words):
    got, want = both(monkeypatch, products.product, (3, words, SIZE), other)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("words", ["all", "some", "none"])
def test_bilinear(monkeypatch, words):
    """Also where the loss leaves words out, as it does with padding."""
    used = {"all": torch.ones(3, WORDS), "some": torch.eye(3, WORDS), "none": torch.zeros(3, WORDS)}[words]
    shapes = (3, WORDS, SIZE), (SIZE, LABELS, 6), (3, WORDS, 6)
    got, want = both(monkeypatch, products.bilinear, *shapes, used=used)
    torch.testing.assert_close(got, want)


def test_linear():
    module, x = torch.nn.Linear(SIZE, LABELS), torch.randn(3, WORDS, SIZE)
    torch.testing.assert_close(products.linear(x, module), module(x))


def test_parser(monkeypatch):
    """All scores of the parser's head, both ways."""
    torch.manual_seed(4)
    head, states = BiaffineHead(16, LABELS, 0.0), torch.randn(3, 12, 16)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    starts, mask = torch.tensor([[1, 3, 4], [1, 2, 0], [5, 0, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    results = []
    for slow in (True, False):
        monkeypatch.setattr(ops, "SLOW_PATHS", slow)
        arcs, dependents, nodes = head(states, starts, mask)
        at = head.labels_at(dependents, nodes, torch.tensor([[0, 1, 2], [2, 0, 0], [0, 0, 0]]))
        everywhere = head.labels_everywhere(dependents, nodes)
        loss = arcs[:, :, 0].square().mean() + at.square().mean() + everywhere.square().mean()
        results.append([arcs, at, everywhere, *torch.autograd.grad(loss, list(head.parameters()))])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("why", ["threads", "double", "autocast", "quick"])
def test_whatever_does_not_suit_takes_the_other_way(monkeypatch, why):
    x = torch.randn(2, SIZE)
    assert products.suits(x)
    if why == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    elif why == "quick":
        monkeypatch.setattr(ops, "SLOW_PATHS", False)
    with torch.autocast("cpu", torch.bfloat16, enabled=why == "autocast"):
        assert not products.suits(x.double() if why == "double" else x)
