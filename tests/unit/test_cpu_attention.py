"""Attention on the CPU against PyTorch's own, sequence by sequence."""

import pytest
import torch
from torch.nn import functional

from crossalign.engine import cpu, ops
from crossalign.engine.layout import Layout

HEADS, SIZE = 3, 5


def packed_layout(lengths: list[int], filling: int = 0) -> Layout:
    """As the batches of the engine give it."""
    longest = max(lengths)
    layout = Layout(len(lengths), longest, torch.tensor(lengths))
    real = layout.mask.view(-1).nonzero()[:, 0]
    layout.rows = torch.cat([real, torch.zeros(filling, dtype=torch.long)])
    layout.cells = torch.zeros(len(lengths) * longest, dtype=torch.long)
    layout.cells[real] = torch.arange(len(real))
    layout.filled = filling > 0
    return layout


def reference(qkv: torch.Tensor, lengths: list[int], causal: bool) -> torch.Tensor:
    parts = (part.view(-1, 3, HEADS, SIZE).permute(1, 2, 0, 3) for part in qkv.split(lengths))
    attend = functional.scaled_dot_product_attention
    return torch.cat([attend(*part, is_causal=causal).transpose(0, 1).flatten(1) for part in parts])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("lengths", "grouped", "filling"),
    # None: every cell a token, and no table says so.
    [
        ([7, 3, 1], False, 0),
        ([4, 4], False, 0),
        ([4, 4], False, None),
        ([9, 8, 1, 1, 1, 1, 1, 1], True, 0),
        ([5, 2], False, 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("slow_paths", [False, True])
def test_equals_pytorch_and_its_gradient(lengths, grouped, filling, causal, slow_paths, monkeypatch):
    monkeypatch.setattr(ops, "SLOW_PATHS", slow_paths)
    torch.manual_seed(1)
    layout = Layout(2, 4) if filling is None else packed_layout(lengths, filling)
    filling = filling or 0
    if grouped:
        layout.group(least=2)
        assert len(layout.groups) > 1
        # Groups must be used here, and one grid give the same.
        whole = cpu.attend(torch.ones(sum(lengths), 3 * HEADS * SIZE), layout, HEADS, 0.0, causal)
        assert torch.allclose(whole, torch.ones(1))
        made = "bias" if slow_paths and not causal else "places"
        assert any(made in group.__dict__ for group in layout.groups) and made not in layout.__dict__
    tokens = sum(lengths)
    qkv = torch.randn(tokens + filling, 3 * HEADS * SIZE, requires_grad=True)
    given = torch.randn(tokens + filling, HEADS * SIZE)
    given[tokens:] = 0
    got = cpu.attend(qkv, layout, HEADS, 0.0, causal)
    want = reference(qkv[:tokens], lengths, causal)
    torch.testing.assert_close(got[:tokens], want)
    assert torch.isfinite(got).all()
    # Predictions go another way.
    with torch.inference_mode():
        torch.testing.assert_close(cpu.attend(qkv, layout, HEADS, 0.0, causal)[:tokens], want)
    (grad,) = torch.autograd.grad(got, qkv, given)
    (want_grad,) = torch.autograd.grad(want, qkv, given[:tokens])
    torch.testing.assert_close(grad, want_grad, rtol=1e-4, atol=1e-6)
    assert not grad[tokens:].any()


def test_dropout_keeps_the_mean_and_its_gradient_uses_the_same_mask():
    lengths = [6, 4]
    layout = packed_layout(lengths)
    qkv = torch.randn(10, 3 * HEADS * SIZE, dtype=torch.float64, requires_grad=True)

    def attend(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return cpu.attend(x, layout, HEADS, 0.4, False)

    assert torch.autograd.gradcheck(attend, (qkv,), eps=1e-6, atol=1e-5)
    assert not torch.allclose(attend(qkv), cpu.attend(qkv, layout, HEADS, 0.0, False))
    ones = torch.cat([torch.randn(10, 2 * HEADS * SIZE), torch.ones(10, HEADS * SIZE)], 1)
    torch.manual_seed(4)
    mean = torch.stack([cpu.attend(ones, layout, HEADS, 0.4, False) for _ in range(300)]).mean()
    assert abs(mean - 1) < 0.03


@pytest.mark.parametrize("slow_paths", [False, True])
def test_gradient_of_gelu(slow_paths, monkeypatch):
    monkeypatch.setattr(ops, "SLOW_PATHS", slow_paths)
    x = torch.linspace(-8, 8, 41, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cpu.gelu, x)
    torch.testing.assert_close(cpu.gelu(x), functional.gelu(x))
