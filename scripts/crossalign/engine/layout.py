"""Packed batches: all tokens of a batch one after another, and how they lie in the padded grid.

Linear layers, norms and dropout see only real tokens. The grid (sentences x positions) exists for heads, and for
attention where no kernel for packed sequences is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Layout:
    """Where the `tokens` packed tokens of `batch` sequences lie in a grid of `batch` x `length` cells.

    `cells[b * length + i]` is the packed position of token i of sequence b (0 where there is none);
    `rows[t]` is the cell of packed token t (0 for the tokens that only fill up a static shape).
    Both are None when every cell holds a token, in row order.
    """

    batch: int
    length: int
    lengths: Tensor | None = None
    cells: Tensor | None = None
    rows: Tensor | None = None
    # True when packed tokens without a cell may follow the real ones (static shapes).
    filled: bool = False
    # A bound on the length of the sequences, the filling included; None: `length`.
    longest: int | None = None

    def __post_init__(self) -> None:
        self._mask: Tensor | None = None
        self._bias: Tensor | None = None
        self._bounds: Tensor | None = None
        self._real: Tensor | None = None
        self._places: dict[int, tuple] = {}
        # Runs of neighbouring sequences of like length, each with its own grid, and their numbers of tokens.
        self.groups: list[Layout] = []
        self.sizes: list[int] = []

    @classmethod
    def from_mask(cls, mask: Tensor) -> Layout:
        """Every cell is a packed token; `mask` tells the real ones."""
        layout = cls(*mask.shape, lengths=mask.sum(1))
        layout._mask = mask
        return layout

    @property
    def mask(self) -> Tensor:
        """Cells that hold a token, (batch, length)."""
        if self._mask is None:
            self._mask = torch.arange(self.length, device=self.lengths.device) < self.lengths[:, None]
        return self._mask

    def keys(self) -> Tensor | None:
        """Attention mask over keys, (batch, 1, 1, length); an empty sequence keeps one key, or softmax gives NaN."""
        if self.lengths is None:
            return None
        keys = self.mask.clone()
        keys[:, 0] = True
        return keys[:, None, None, :]

    def bounds(self, tokens: int) -> Tensor:
        """Starts of the sequences and their end, int32; filling tokens count as one more sequence."""
        if self._bounds is None:
            ends = torch.cumsum(self.lengths, 0, dtype=torch.int32)
            self._bounds = torch.nn.functional.pad(ends, (1, 0))
            if self.filled:
                self._bounds = torch.cat([self._bounds, self._bounds.new_full((1,), tokens)])
        return self._bounds

    def real(self, tokens: int) -> Tensor:
        """Packed tokens that are not filling, (tokens, 1)."""
        if self._real is None:
            total = self.lengths.sum()
            self._real = (torch.arange(tokens, device=self.lengths.device) < total)[:, None]
        return self._real

    def bias(self, heads: int, causal: bool) -> Tensor:
        """What attention on a CPU adds to its scores: minus infinity where a token does not look."""
        if self._bias is None:
            keys = torch.ones(self.batch, 1, 1, self.length, dtype=torch.bool) if self.lengths is None else self.keys()
            seen = keys & torch.ones(self.length, self.length, dtype=torch.bool).tril() if causal else keys
            bias = torch.zeros(seen.shape).masked_fill_(~seen, float("-inf"))
            self._bias = bias.expand(-1, heads, -1, -1).flatten(0, 1)
        return self._bias

    def group(self, ratio: float = 0.7, least: int = 4, waste: float = 2.5) -> None:
        """Cut a batch that is sorted by length, the longest first, into groups: their grids have less padding.

        For the CPU, where attention over a padded grid costs what it computes. Groups pay where one grid for all is
        `waste` times as large as theirs.
        """
        lengths = self.lengths.tolist()
        cuts = [0]
        for stop in range(least, len(lengths) - least + 1):
            if lengths[stop] <= ratio * lengths[cuts[-1]] and stop - cuts[-1] >= least:
                cuts.append(stop)
        parts = [lengths[start:stop] for start, stop in zip(cuts, [*cuts[1:], len(lengths)], strict=True)]
        if self.batch * self.length**2 > waste * sum(len(part) * max(part) ** 2 for part in parts):
            self.groups = [Layout._of_lengths(part) for part in parts]
            self.sizes = [sum(part) for part in parts]

    @classmethod
    def _of_lengths(cls, lengths: list[int]) -> Layout:
        longest = max(lengths)
        if min(lengths) == longest:
            return cls(len(lengths), longest)
        layout = cls(len(lengths), longest, torch.tensor(lengths))
        layout.rows = layout.mask.view(-1).nonzero()[:, 0]
        layout.cells = torch.zeros(layout.mask.numel(), dtype=torch.long)
        layout.cells[layout.rows] = torch.arange(len(layout.rows))
        return layout

    def to_grid(self, packed: Tensor) -> Tensor:
        """(tokens, n) to (batch, length, n); cells without a token hold some other token's values."""
        if self.cells is not None:
            real = self.real(packed.shape[0]) if self.filled else None
            packed = Gather.apply(packed, self.cells, self.rows, real)
        return packed.view(self.batch, self.length, -1)

    def from_grid(self, grid: Tensor) -> Tensor:
        """(batch, length, n) to (tokens, n)."""
        flat = grid.reshape(self.batch * self.length, -1)
        return flat if self.cells is None else Gather.apply(flat, self.rows, self.cells, self.mask.view(-1, 1))

    def places(self, heads: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """For attention on a CPU: where queries, keys and values of all heads lie, and where the packed tokens do.

        A row is one head of one token. From packed (token, part, head) to (part, sequence, head, position) and back;
        from (sequence, head, position) to (token, head) and back; which of the first, and of the second, hold a token
        (None: all).
        """
        if heads not in self._places:
            every = torch.arange(self.batch * self.length)
            cells = (every if self.cells is None else self.cells).view(self.batch, 1, self.length)
            rows = (every if self.rows is None else self.rows)[:, None]
            head, part = torch.arange(heads), torch.arange(3)
            sequence, position = rows // self.length, rows % self.length
            inner = (part[:, None] * self.batch + sequence[:, None]) * heads + head
            real = (
                None if self.cells is None else self.mask.view(self.batch, 1, -1).expand(-1, heads, -1).reshape(-1, 1)
            )
            filling = self.real(len(rows)).repeat_interleave(3 * heads, 0) if self.filled else None
            self._places[heads] = (
                ((cells * 3 + part.view(3, 1, 1, 1)) * heads + head[:, None]).reshape(-1),
                (inner * self.length + position[:, None]).reshape(-1),
                ((sequence * heads + head) * self.length + position).reshape(-1),
                (cells * heads + head[:, None]).reshape(-1),
                filling,
                real,
            )
        return self._places[heads]


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
        return back if ctx.real is None else back * ctx.real, None, None, None
