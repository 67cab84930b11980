"""Cross-entropy over the vocabulary in parts: value and gradients are those of the plain formula."""

import pytest
import torch
from torch.nn import functional

from crossalign.engine import lm_heads as module
from crossalign.engine.lm_heads import plain_cross_entropy, word_loss


def make(rows=23, size=50, hidden=8, bias=True):
    generator = torch.Generator().manual_seed(1)
    x, words = (torch.randn(n, hidden, generator=generator, dtype=torch.float64) for n in (rows, size))
    offsets = torch.randn(size, generator=generator, dtype=torch.float64) if bias else None
    targets = torch.randint(0, size, (rows,), generator=generator)
    targets[[2, 7]] = -100
    return [t if t is None else t.requires_grad_() for t in (x, words, offsets)], targets


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("most", [1 << 20, 120, 1])
def test_value_and_gradients(monkeypatch, bias, most):
    """Also when the rows come in parts, the smallest of one row each; the loss is scaled as by the engine."""
    monkeypatch.setitem(module._MOST, "cpu", most)
    inputs, targets = make(bias=bias)
    given = [t for t in inputs if t is not None]
    loss = word_loss(*inputs, targets)
    got = torch.autograd.grad(3 * loss, given)
    expected = functional.cross_entropy(functional.linear(*inputs), targets, ignore_index=-100)
    torch.testing.assert_close(loss.double(), expected, atol=1e-6, rtol=1e-6)
    for one, other in zip(got, torch.autograd.grad(3 * expected, given), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_nothing_to_predict_and_no_gradients():
    inputs, targets = make()
    loss = word_loss(*inputs, torch.full_like(targets, -100))
    assert loss == 0 and not any(grad.any() for grad in torch.autograd.grad(loss, inputs))
    with torch.no_grad():
        loss = word_loss(*inputs, targets)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, word_loss(*inputs, targets).detach())


def test_columns_that_fill_up_a_row_do_not_count():
    """What the GPU does: a vocabulary of 50 in rows of 64."""
    scores = torch.randn(6, 64, generator=torch.Generator().manual_seed(2))
    targets = torch.tensor([0, 49, 3, -100, 7, 7])
    want, gradient = plain_cross_entropy(scores[:, :50].clone(), targets, 50)
    got, filled = plain_cross_entropy(scores.clone(), targets, 50)
    assert torch.equal(got, want) and got[3] == 0
    assert torch.equal(filled[:, :50], gradient) and not filled[:, 50:].any()
