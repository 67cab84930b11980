"""Heads of language models, as the library has them, and their loss over a large vocabulary.

The scores of all rows at once would be the largest tensor of a language model by far. Here they exist for a part of the
rows only, and become their own gradient in place.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine.random_init import redraw
from crossalign.engine.seeds import derive
from crossalign.engine.shape import EncoderConfig

# Scores that exist at a time: on the GPU 1 GB in fp32, on the CPU what its cache nearly holds.
_MOST = {"cuda": 1 << 28, "cpu": 1 << 21}
# Rows and columns of matrices in multiples of 16 bytes, which matrix kernels want.
_BESIDE = 8


class MaskedHead(nn.Module):
    """A layer with GELU and norm, then the product with the word embeddings (tied, so not held here) and a bias."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, config.eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def inner(self, states: Tensor) -> Tensor:
        """What meets the table of words, (n, hidden), in the precision of the states."""
        inner = functional.gelu(
            functional.linear(states, self.dense.weight.to(states.dtype), self.dense.bias.to(states.dtype))
        )
        inner = functional.layer_norm(
            inner.float(), self.norm.normalized_shape, self.norm.weight, self.norm.bias, self.norm.eps
        )
        return inner.to(states.dtype)


class CausalHead(nn.Module):
    """The product with the word embeddings and nothing else, as in XGLM; without weights of its own."""

    bias = None

    def inner(self, states: Tensor) -> Tensor:
        """What meets the table of words: the states themselves."""
        return states


Head = MaskedHead | CausalHead


def masked_loss(head: Head, states: Tensor, words: Tensor, places: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy at `places` (batch, k) of the grid of states; targets below 0 do not count.

    Only these rows meet the vocabulary: the product with all positions would be seven times the work.
    """
    batch, length, hidden = states.shape
    cells = (torch.arange(batch, device=places.device) * length)[:, None] + places
    picked = states.reshape(batch * length, hidden).index_select(0, cells.reshape(-1))
    return word_loss(head.inner(picked), words, head.bias, targets.reshape(-1))


def fresh_head(config: EncoderConfig, seed: int) -> Head:
    """A head that was never trained."""
    if config.causal:
        return CausalHead()
    head = MaskedHead(config)
    redraw(head, config.initializer_range, derive(seed, "masked-head"))
    with torch.no_grad():
        head.bias.zero_()
    return head


def word_loss(x: Tensor, words: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """Mean cross-entropy of the scores x @ words^T + bias, (n, vocabulary), where targets (n) are not negative.

    Products run in the precision of x, sums in fp32. Where nothing counts the loss is 0.
    """
    if not torch.is_grad_enabled():
        # Or the gradients of the table would be computed along with the loss.
        words, bias = words.detach(), None if bias is None else bias.detach()
    with torch.autocast(x.device.type, enabled=False):
        return _WordLoss.apply(x, words, bias, targets)


class _WordLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, words: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
        table, offsets = _aligned(x, words, bias)
        counted = (targets >= 0).to(x.dtype)[:, None]
        total = counted.sum(dtype=torch.float32).clamp(min=1)
        chunks = max(1, -(-len(x) * len(table) // _MOST[x.device.type]))
        loss, dx, product = torch.zeros((), device=x.device), [], None
        for part, target, count in zip(*(t.tensor_split(chunks) for t in (x, targets, counted)), strict=True):
            scores = part @ table.t() if offsets is None else torch.addmm(offsets, part, table.t())
            losses, scores = cross_entropy(scores, target)
            loss += losses.sum()
            if any(ctx.needs_input_grad):
                dx.append((scores @ table).mul_(count))
                # A column beside x sums the scores over the rows: the gradient of the bias, without reading them again.
                beside = [] if bias is None else [count.expand(-1, _BESIDE)]
                own = _product(scores.t(), torch.cat([part * count, *beside], 1), words.dtype)
                product = own if product is None else product.add_(own)
        ctx.total = total
        if dx:
            size, hidden = words.shape
            db = None if bias is None else product[:size, hidden].clone()
            ctx.gradients = torch.cat(dx) if len(dx) > 1 else dx[0], product[:size, :hidden], db
        return loss / total

    @staticmethod
    def backward(ctx, grad: Tensor):
        # In place, since a loss is taken backwards once.
        scale = grad / ctx.total
        return *(value if value is None else value.mul_(scale.to(value.dtype)) for value in ctx.gradients), None


def _aligned(x: Tensor, words: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The table and the bias in the precision of x; on the GPU filled up to an even size with words that never come."""
    table, offsets = words.to(x.dtype), None if bias is None else bias.to(x.dtype)
    if x.is_cuda and (extra := -len(words) % _BESIDE):
        table = functional.pad(table, (0, 0, 0, extra))
        offsets = x.new_zeros(len(words)) if offsets is None else offsets
        offsets = functional.pad(offsets, (0, extra), value=-torch.inf)
    return table, offsets


def cross_entropy(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of each row, 0 where the target is negative, and its gradient: probabilities less 1 at the target."""
    logs = torch.log_softmax(scores, 1, dtype=torch.float32)
    place, counted = targets.clamp(min=0)[:, None], (targets >= 0).float()
    losses = -logs.gather(1, place)[:, 0] * counted
    return losses, logs.exp_().scatter_add_(1, place, -counted[:, None]).to(scores.dtype)


def _product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """left @ right in `dtype`; on the GPU a product of bf16 is summed and kept in fp32."""
    if left.dtype != dtype and left.is_cuda:
        return torch.mm(left, right, out_dtype=dtype)
    return (left @ right).to(dtype)
