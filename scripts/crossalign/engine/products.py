"""Products of small heads by NumPy, on one thread of a CPU whose PyTorch lacks MKL.

PyTorch's own are up to three times as slow there, and a batch of them ten times (see `ops.SLOW_PATHS`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine import ops


def suits(x: Tensor) -> bool:
    """Whether NumPy is the quicker way."""
    plain = x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return ops.SLOW_PATHS and plain and torch.get_num_threads() == 1


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for batches of matrices; `b` may also be one matrix for all."""
    return _Product.apply(a, b) if suits(a) else a @ b


def linear(x: Tensor, module: nn.Linear) -> Tensor:
    """What the module gives."""
    return _Product.apply(x, module.weight.t()) + module.bias if suits(x) else module(x)


def bilinear(left: Tensor, weight: Tensor, right: Tensor) -> Tensor:
    """Scores of each pair of rows: sum of left[..., i] * weight[i, :, j] * right[..., j] over i and j."""
    if suits(left):
        return _Bilinear.apply(left, weight, right)
    return (between(left, weight) @ right.unsqueeze(-1)).squeeze(-1)


def between(left: Tensor, weight: Tensor) -> Tensor:
    """The first half of `bilinear`: what the vector on the right is multiplied with."""
    return product(left, weight.flatten(1)).unflatten(-1, weight.shape[1:])


def _array(x: Tensor) -> np.ndarray:
    return x.detach().numpy()


def _rows(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        first, second = _array(a), _array(b)
        if b.dim() == 2:
            return torch.from_numpy((_rows(first) @ second).reshape(*a.shape[:-1], b.shape[1]))
        return torch.from_numpy(first @ second)

    @staticmethod
    def backward(ctx, grad: Tensor):
        a, b = (_array(x) for x in ctx.saved_tensors)
        given = grad.numpy()
        if b.ndim == 2:
            rows = _rows(given)
            return torch.from_numpy((rows @ b.T).reshape(a.shape)), torch.from_numpy(_rows(a).T @ rows)
        return torch.from_numpy(given @ b.swapaxes(1, 2)), torch.from_numpy(a.swapaxes(1, 2) @ given)


class _Bilinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left: Tensor, weight: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(left, weight, right)
        _, labels, size = weight.shape
        ctx.middle = (_rows(_array(left)) @ _array(weight).reshape(len(weight), -1)).reshape(-1, labels, size)
        scores = np.matmul(ctx.middle, _rows(_array(right))[:, :, None])
        return torch.from_numpy(scores.reshape(*left.shape[:-1], labels))

    @staticmethod
    def backward(ctx, grad: Tensor):
        left, weight, right = (_array(x) for x in ctx.saved_tensors)
        flat = weight.reshape(len(weight), -1)
        given = _rows(grad.numpy())
        # Rows that no loss reads, those of the padding, are left out.
        used = np.flatnonzero(given.any(axis=1))
        given, first, second = given[used], _rows(left)[used], _rows(right)[used]
        dmiddle = (given[:, :, None] * second[:, None, :]).reshape(len(used), flat.shape[1])
        dleft, dright = np.zeros_like(_rows(left)), np.zeros_like(_rows(right))
        dleft[used] = dmiddle @ flat.T
        dright[used] = np.matmul(given[:, None, :], ctx.middle[used])[:, 0]
        dweight = (first.T @ dmiddle).reshape(weight.shape)
        return tuple(torch.from_numpy(x) for x in (dleft.reshape(left.shape), dweight, dright.reshape(right.shape)))
