"""Packed batches: all tokens of a batch one after another, and how they lie in the padded grid.

Linear layers, norms and dropout see only real tokens. The grid (sentences x positions) exists for heads, and for
attention where no kernel for packed sequences is at hand.
"""

from __future__ import annotations

import torch
from torch import Tensor

# A group begins where sentences are so much shorter than the first of the group before, and that has enough of them;
# groups pay where one grid for all is so many times as large as theirs.
SHORTER, ENOUGH, WASTE = 0.7, 4, 2.5


class Layout:
    """Where packed tokens lie in a grid of `batch` x `length` cells, worked out from `cu_seqlens`.

    `cu_seqlens` are the starts of the sequences and the end of the last one. `filled`: the last one is none, but tokens
    that fill up a static shape. `cells[b * length + i]` is the place of token i of sequence b among the packed ones (0
    where there is none), `rows[t]` the cell of packed token t (0 where it is filling), `mask` tells the cells with a
    token, `real` the tokens that are no filling. A grid without padding has neither `cells` nor `rows`.

    `groups` are for attention over the grid on a CPU, which costs what it computes: runs of neighbouring sequences of
    like length, whose own grids have less padding. Their batch comes with the longest first.
    """

    def __init__(
        self, cu_seqlens: Tensor, tokens: int, length: int, filled: bool = False, grouped: bool = True
    ) -> None:
        self.tokens, self.length, self.filled = tokens, length, filled
        self.batch = len(cu_seqlens) - 1 - filled
        # As kernels want them, and a bound on the length of the sequences, the filling included.
        self.bounds = cu_seqlens.int()
        self.longest = max(length, 64, tokens // 8 + 1) if filled else length
        starts, ends = cu_seqlens[: self.batch], cu_seqlens[1 : self.batch + 1]
        position, token = (torch.arange(count, device=cu_seqlens.device) for count in (length, tokens))
        self.mask = position < (ends - starts)[:, None]
        self.real = token < ends[-1] if filled else None
        self.cells = self.rows = None
        if filled or tokens < self.batch * length:
            self.cells = torch.where(self.mask, starts[:, None] + position, 0).view(-1)
            sequence = torch.searchsorted(ends, token, right=True)
            self.rows = sequence * length + token - cu_seqlens[sequence]
            if filled:
                self.rows = self.rows * self.real
        # None where one grid for all will do.
        self.groups: list[Layout] = []
        if grouped and not filled and cu_seqlens.device.type == "cpu":
            self.groups = self._cut(cu_seqlens)

    def _cut(self, cu_seqlens: Tensor) -> list[Layout]:
        sizes = cu_seqlens.diff().tolist()
        cuts = [0]
        for stop in range(ENOUGH, len(sizes) - ENOUGH + 1):
            if sizes[stop] <= SHORTER * sizes[cuts[-1]] and stop - cuts[-1] >= ENOUGH:
                cuts.append(stop)
        spans = list(zip(cuts, [*cuts[1:], len(sizes)], strict=True))
        longest = [max(sizes[start:stop]) for start, stop in spans]
        cells = sum((stop - start) * most**2 for (start, stop), most in zip(spans, longest, strict=True))
        if self.batch * self.length**2 <= WASTE * cells:
            return []
        return [
            Layout(cu_seqlens[start : stop + 1] - cu_seqlens[start], sum(sizes[start:stop]), most, grouped=False)
            for (start, stop), most in zip(spans, longest, strict=True)
        ]

    def keys(self) -> Tensor:
        """The cells that attention looks at; an empty sequence keeps one, or softmax gives NaN."""
        keys = self.mask.clone()
        keys[:, 0] = True
        return keys

    def to_grid(self, packed: Tensor) -> Tensor:
        """(tokens, n) to (batch, length, n); cells without a token hold some other token's values."""
        if self.cells is not None:
            packed = Gather.apply(packed, self.cells, self.rows, self.real)
        return packed.view(self.batch, self.length, -1)

    def from_grid(self, grid: Tensor) -> Tensor:
        """(batch, length, n) to (tokens, n)."""
        flat = grid.reshape(self.batch * self.length, -1)
        return flat if self.cells is None else Gather.apply(flat, self.rows, self.cells, self.mask.view(-1))


class Gather(torch.autograd.Function):
    """Choose rows. The backward pass is a gather too: each row that counts is chosen once, so nothing is summed."""

    @staticmethod
    def forward(ctx, x: Tensor, index: Tensor, inverse: Tensor, real: Tensor | None) -> Tensor:
        """`inverse` leads back; `real` tells which rows of x were chosen, None if all were."""
        ctx.inverse, ctx.real = inverse, real
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx, grad: Tensor):
        back = grad.index_select(0, ctx.inverse)
        return back if ctx.real is None else back * ctx.real[:, None], None, None, None
