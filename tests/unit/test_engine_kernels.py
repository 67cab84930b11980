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
from crossalign.models import kernels
from crossalign.models.ops import Sink
from crossalign.training.arena import AdamW

torch.manual_seed(0)
for low in (False, True):
    n = 5000
    master, m, v = torch.randn(n), torch.randn(n) * 0.01, torch.rand(n) * 0.01
    grad = torch.randn(n)
    grad = grad.bfloat16() if low else grad
    copy = torch.zeros(n, dtype=torch.bfloat16) if low else None
    expected = [x.clone() for x in (master, m, v)]
    scale = torch.tensor(0.3)
    settings = AdamW((0.9, 0.99), 1e-8, 0.01)
    numbers = torch.tensor([1e-2, 3.0, 1 - 0.9**3, (1 - 0.99**3) ** 0.5])
    kernels.adamw(master, m, v, grad, copy, numbers, scale, settings, 0.01)
    torch._fused_adamw_([expected[0]], [grad.float() * scale], [expected[1]], [expected[2]], [], [torch.tensor(3.0)],
        lr=1e-2, beta1=0.9, beta2=0.99, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)
    for got, want in zip((master, m, v), expected):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-7)
    if low:
        # The interpreter cuts where a GPU rounds.
        torch.testing.assert_close(copy.float(), master, rtol=2**-7, atol=0)

def inputs(dtype):
    x, residual = (torch.randn(37, 48).to(dtype).requires_grad_() for _ in range(2))
    weight, bias = torch.randn(48).to(dtype), torch.randn(48).to(dtype)
    sinks = tuple(Sink(torch.full((48,), 7.0, dtype=dtype)) for _ in range(3))
    return x, residual, weight, bias, sinks

for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.06)):
    for fresh in (True, False):
        x, residual, weight, bias, sinks = inputs(dtype)
        for sink in sinks:
            sink.fresh = fresh
        y = kernels.AddNorm.apply(x, residual, weight, bias, 1e-6, 0.0, None, sinks)
        reference = [t.detach().float().requires_grad_() for t in (x, residual, weight, bias)]
        want = functional.layer_norm(reference[0] + reference[1], (48,), reference[2], reference[3], 1e-6)
        torch.testing.assert_close(y.float(), want, rtol=tolerance, atol=tolerance)
        g = torch.randn(37, 48).to(dtype)
        dx, dresidual = torch.autograd.grad(y, (x, residual), g)
        grads = torch.autograd.grad(want, reference, g.float())
        torch.testing.assert_close(dx.float(), grads[0], rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(dresidual.float(), grads[1], rtol=tolerance, atol=tolerance)
        start = 0.0 if fresh else 7.0
        for sink, expected in zip(sinks, (grads[2], grads[3], grads[0].sum(0))):
            torch.testing.assert_close(sink.grad.float(), start + expected, rtol=tolerance, atol=5 * tolerance)
            assert not sink.fresh

# Dropout: its share is right, the backward pass drops the same numbers, other calls drop others.
x, residual, weight, bias, sinks = inputs(torch.float32)
zeros = torch.zeros_like(residual).requires_grad_()
ones = torch.ones(37, 48, requires_grad=True)
seed = torch.tensor([123])
patterns = []
for base in (0, ones.numel()):
    y = kernels.AddNorm.apply(ones, zeros, torch.ones(48), torch.zeros(48), 1e-6, 0.25, (seed, base), sinks)
    dropped = y < 0
    (dx,) = torch.autograd.grad(y, ones, torch.randn(37, 48))
    assert torch.equal(dx == 0, dropped)
    assert abs(dropped.float().mean() - 0.25) < 0.04
    patterns.append(dropped)
assert not torch.equal(*patterns)
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
