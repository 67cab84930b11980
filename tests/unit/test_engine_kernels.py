"""The Triton kernels, run by Triton's interpreter on the CPU, against PyTorch."""

import os
import subprocess
import sys

import pytest

CHECK = """
import torch
import triton.runtime.interpreter as interpreter

# Triton 3.6 turns arrays of one element into integers, which NumPy 2.4 refuses.
patch = interpreter._patch_lang_tensor
def patched(tensor, scope):
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
interpreter._patch_lang_tensor = patched
from torch.nn import functional
from crossalign.engine.kernels import norms, update
from crossalign.engine.kernels.attention import ShortAttention
from crossalign.engine.ops import AddNorm, Gradients
from crossalign.engine.optimiser import AdamW

torch.manual_seed(0)
for low in (False, True):
    n = 5000
    master, m, v = torch.randn(n), torch.zeros(n), torch.zeros(n)
    copy = torch.zeros(n, dtype=torch.bfloat16) if low else None
    expected = master.clone().requires_grad_()
    optimiser = torch.optim.AdamW([expected], 1e-2, (0.9, 0.99), 1e-8, 0.01)
    settings, scale = AdamW((0.9, 0.99), 1e-8, 0.01), torch.tensor(0.3)
    for step in (1, 2, 3):
        grad = torch.randn(n)
        grad = grad.bfloat16() if low else grad
        numbers = torch.tensor([1e-2, step, 1 - 0.9**step, (1 - 0.99**step) ** 0.5])
        update.adamw(master, m, v, grad, copy, numbers, scale, settings, 0.01)
        expected.grad = grad.float() * scale
        optimiser.step()
    torch.testing.assert_close(master, expected.detach(), rtol=1e-5, atol=1e-6)
    if low:
        # The interpreter cuts where a GPU rounds.
        torch.testing.assert_close(copy.float(), master, rtol=2**-7, atol=0)

def inputs(dtype, rows):
    x, residual = (torch.randn(rows, 48).to(dtype).requires_grad_() for _ in range(2))
    parameters = [torch.randn(48).to(dtype) for _ in range(3)]
    return x, residual, parameters, Gradients({one: torch.full((48,), 7.0, dtype=dtype) for one in parameters})

for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.06)):
    # Few programs take several tiles each; of many the sums come in more than one piece.
    for fresh, rows, norms._PROGRAMS, norms._MANY_ROWS in ((True, 37, 3, 8192), (False, 530, 1056, 500)):
        x, residual, parameters, into = inputs(dtype, rows)
        if not fresh:
            for parameter in parameters:
                into.place(parameter)
        y = AddNorm.apply(x, residual, *parameters, 1e-6, 0.0, into)
        reference = [t.detach().float().requires_grad_() for t in (x, residual, *parameters[:2])]
        want = functional.layer_norm(reference[0] + reference[1], (48,), reference[2], reference[3], 1e-6)
        torch.testing.assert_close(y.float(), want, rtol=tolerance, atol=tolerance)
        g = torch.randn(rows, 48).to(dtype)
        dx, dresidual = torch.autograd.grad(y, (x, residual), g)
        grads = torch.autograd.grad(want, reference, g.float())
        torch.testing.assert_close(dx.float(), grads[0], rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(dresidual.float(), grads[1], rtol=tolerance, atol=tolerance)
        start = 0.0 if fresh else 7.0
        for parameter, expected in zip(parameters, (grads[2], grads[3], grads[0].sum(0))):
            place, add = into.place(parameter)
            torch.testing.assert_close(place.float(), start + expected, rtol=tolerance, atol=5 * tolerance)
            assert add

# Dropout: its share is right, the backward pass drops the same numbers, other calls drop others.
zeros = torch.zeros(37, 48, requires_grad=True)
parameters = [torch.ones(48), torch.zeros(48), torch.zeros(48)]
into = Gradients({one: torch.zeros(48) for one in parameters})
ones = torch.ones(37, 48, requires_grad=True)
patterns = []
for _ in range(2):
    y = AddNorm.apply(ones, zeros, *parameters, 1e-6, 0.25, into)
    dropped = y < 0
    (dx,) = torch.autograd.grad(y, ones, torch.randn(37, 48))
    assert torch.equal(dx == 0, dropped)
    assert abs(dropped.float().mean() - 0.25) < 0.04
    patterns.append(dropped)
assert not torch.equal(*patterns)

# Sums over rows, and the factor of clipping.
for fresh in (True, False):
    value, place = torch.randn(150, 70), torch.full((70,), 2.0)
    norms.row_sums(value, place, add=not fresh)
    torch.testing.assert_close(place, value.sum(0) + (0.0 if fresh else 2.0), rtol=1e-4, atol=1e-4)
update._PROGRAMS = 4
gradients = [torch.randn(20000), torch.randn(9)]
norm = torch.cat(gradients).norm()
torch.testing.assert_close(update.clipping(gradients, 3.0), (3.0 / (norm + 1e-6)).view(1), rtol=1e-5, atol=0)
assert update.clipping(gradients, 1000.0).item() == 1.0

# Attention: sequences within one block and over several, the filling left out.
for lengths, heads, size in (([5, 64, 30], 2, 16), ([100, 3, 65], 1, 16)):
    filling = 70
    bounds = torch.tensor([0, *lengths, filling]).cumsum(0).to(torch.int32)
    tokens = int(bounds[-2])
    qkv = torch.randn(tokens + filling, 3 * heads * size, requires_grad=True)
    attend = lambda x, dropout=0.0, base=0: ShortAttention.apply(
        x, bounds, max(lengths), True, heads, dropout, (torch.tensor([5]), base))
    out = attend(qkv)
    given = torch.randn_like(out)
    given[tokens:] = 0
    (grad,) = torch.autograd.grad(out, qkv, given)
    copy = qkv.detach().requires_grad_()
    parts = [part.view(-1, 3, heads, size).permute(1, 2, 0, 3) for part in copy[:tokens].split(lengths)]
    want = torch.cat([functional.scaled_dot_product_attention(*p).transpose(0, 1).flatten(1) for p in parts])
    torch.testing.assert_close(out[:tokens], want, rtol=1e-5, atol=1e-5)
    assert not out[tokens:].any()
    torch.testing.assert_close(grad, torch.autograd.grad(want, copy, given[:tokens])[0], rtol=1e-4, atol=1e-5)
    # With dropout: the derivative in a random direction, and another mask from another base.
    direction = torch.randn_like(qkv)
    with torch.no_grad():
        change = attend(qkv + 1e-2 * direction, 0.3, 64) - attend(qkv - 1e-2 * direction, 0.3, 64)
    y = attend(qkv, 0.3, 64)
    (grad,) = torch.autograd.grad(y, qkv, given)
    torch.testing.assert_close((grad * direction).sum(), (change * given).sum() / 2e-2, rtol=1e-2, atol=1e-2)
    assert not torch.equal(y, attend(qkv, 0.3, 128))
    # Uniform weights: a query's sum of kept weights tells the share that is dropped.
    ones = torch.cat([torch.zeros(len(qkv), 2 * heads * size), torch.ones(len(qkv), heads * size)], 1)
    assert abs(attend(ones, 0.3, 0)[:tokens].mean() - 1) < 0.05

print("kernels agree")
"""


def test_kernels_agree_with_pytorch(root):
    pytest.importorskip("triton", reason="Triton comes with PyTorch's CUDA builds only")
    environment = os.environ | {
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": f"{root / 'scripts'}:{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True)
    assert "kernels agree" in done.stdout, done.stderr
