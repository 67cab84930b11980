"""Random numbers for dropout inside Triton kernels."""

from __future__ import annotations

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:
    # Rounds of Philox: seven of the usual ten pass all common tests.
    _ROUNDS = tl.constexpr(7)

    @triton.jit
    def kept(seed, base, first, columns, stride, dropout, ROWS: tl.constexpr, BLOCK: tl.constexpr):
        """Which cells of a tile of ROWS rows, beginning at row `first` (a multiple of 4), dropout leaves.

        A cell's number depends on its row, its column and `base` only. Philox gives four numbers at a time, here to
        four rows below each other.
        """
        group = first // 4 + tl.arange(0, ROWS // 4)
        a, b, c, d = tl.rand4x(seed, base + group[:, None] * stride + columns[None, :], _ROUNDS)
        four = tl.permute(tl.join(tl.join(a, b), tl.join(c, d)), (0, 3, 2, 1))
        return tl.reshape(four, (ROWS, BLOCK)) >= dropout
