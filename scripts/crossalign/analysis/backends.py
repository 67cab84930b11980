"""Where the arithmetic of the similarity indexes runs: numpy and scipy on the CPU, PyTorch on a GPU.

The indexes are written once, over the operators and function names that numpy arrays and PyTorch tensors share; what
the two libraries do differently stands here. The CPU does without PyTorch because numpy computes X^T X at half the
price of a general product, scipy can stop an eigendecomposition after the leading vectors, and neither takes seconds
to import. A small job does without scipy as well.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from crossalign.runtime.errors import UserError

Array = Any  # a numpy array or a PyTorch tensor, always of the backend at hand
# Multiplications that one core does in the seconds that PyTorch takes to load: less work is no work for a GPU.
SMALL = 2e10
# What a driver puts there when a GPU may be used: NVIDIA's, the one of Windows' Linux, AMD's.
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")


class NumpyBackend:
    """Float64 on the CPU; the methods are what the indexes need beyond the operators that both libraries share."""

    xp = np
    # Rows that lie in working memory as float64 at a time, and rows and columns of a tile of an n x n matrix.
    # Blocks of some megabytes stay in the cache, and memory of that size is used again instead of fetched anew.
    block = 4096
    tile = 2048
    # Up to so many rows numpy's own decompositions are as fast as scipy's, whose import takes longer than all of them.
    small = 128

    def load(self, array: np.ndarray) -> np.ndarray:
        """The array as stored, where the arithmetic happens; the CPU keeps it on disk, a GPU copies it."""
        return array

    def double(self, block: np.ndarray) -> np.ndarray:
        """A new float64 array, which the caller may overwrite."""
        return np.array(block, dtype=np.float64, order="C")

    def single(self, block: np.ndarray) -> np.ndarray:
        """A new float32 array."""
        return np.array(block, dtype=np.float32, order="C")

    def host(self, array: np.ndarray) -> np.ndarray:
        """A numpy array."""
        return np.asarray(array)

    def zeros(self, *shape: int) -> np.ndarray:
        """Zeros in float64."""
        return np.zeros(shape)

    def inverse_factor(self, matrix: np.ndarray) -> np.ndarray | None:
        """W with W^T matrix W = 1, upper triangular; None where the matrix is not positive definite."""
        if len(matrix) <= self.small:
            try:
                return _inverse_lower(np.linalg.cholesky(matrix)).T
            except np.linalg.LinAlgError:
                return None
        import scipy.linalg

        factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=0, clean=1)
        if failed:
            return None
        inverse, failed = scipy.linalg.lapack.dtrtri(factor, lower=0)
        return None if failed else inverse

    def products(self, left: np.ndarray, rights: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Y^T Y and X^T Y of one X and every Y."""
        for right in rights:
            yield right.T @ right, left.T @ right

    def smallest(self, values: np.ndarray, places: Sequence[int]) -> list[float]:
        """The values at those places of the sorted order, counted from zero."""
        return np.partition(values, places)[list(places)].tolist()

    def eigh(self, matrices: Sequence[np.ndarray], top: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Eigenvalues (ascending) and eigenvectors of symmetric matrices, at least the `top` largest of each."""
        found = []
        for matrix in matrices:
            size = len(matrix)
            if size <= self.small:
                found.append(tuple(np.linalg.eigh(matrix)))
                continue
            import scipy.linalg

            if top is not None and 4 * top < size:
                found.append(scipy.linalg.eigh(matrix, subset_by_index=(size - top, size - 1), check_finite=False))
            else:
                # The default driver is several times slower than divide and conquer when all vectors are wanted.
                found.append(scipy.linalg.eigh(matrix, driver="evd", check_finite=False))
        return found


def _inverse_lower(factor: np.ndarray) -> np.ndarray:
    """The inverse of a lower triangular matrix, by halves: [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1]."""
    size = len(factor)
    inverse = np.zeros_like(factor)
    if size <= 8:
        for row in range(size):
            inverse[row, row] = 1.0
            inverse[row] -= factor[row, :row] @ inverse[:row]
            inverse[row] /= factor[row, row]
        return inverse
    half = size // 2
    inverse[:half, :half] = _inverse_lower(factor[:half, :half])
    inverse[half:, half:] = _inverse_lower(factor[half:, half:])
    inverse[half:, :half] = -inverse[half:, half:] @ (factor[half:, :half] @ inverse[:half, :half])
    return inverse


class TorchBackend:
    """Float64 through PyTorch, on any of its devices: the same methods as `NumpyBackend`."""

    block = 16384
    tile = 8192

    def __init__(self, device: str) -> None:
        import torch

        if device.startswith("cuda") and not torch.cuda.is_available():
            raise UserError(f"device '{device}' was asked for but PyTorch sees no CUDA device; use --device cpu")
        try:
            self.device = torch.device(device)
        except RuntimeError:
            raise UserError(f"device '{device}' is not one of auto, cpu, cuda, cuda:<number>") from None
        self.xp = torch
        # The matching index relies on the rounding of plain float32 products; TF32 would break its error bound.
        torch.set_float32_matmul_precision("highest")
        self._staging: list[tuple[Array, Any]] = []

    def load(self, array: np.ndarray) -> Array:
        with warnings.catch_warnings():
            # PyTorch warns about memory maps because it could write to them; nothing here does.
            warnings.simplefilter("ignore", UserWarning)
            source = self.xp.from_numpy(array)
        if self.device.type != "cuda":
            return source
        # Two page-locked buffers in turn: one is filled while the other travels; much faster than a plain copy.
        if len(self._staging) == 2:
            buffer, arrived = self._staging.pop(0)
            arrived.synchronize()
        else:
            buffer, arrived = None, self.xp.cuda.Event()
        if buffer is None or buffer.shape != source.shape or buffer.dtype != source.dtype:
            buffer = self.xp.empty(source.shape, dtype=source.dtype, pin_memory=True)
        buffer.copy_(source)
        target = buffer.to(self.device, non_blocking=True)
        arrived.record()
        self._staging.append((buffer, arrived))
        return target

    def double(self, block: Array) -> Array:
        return block.to(self.xp.float64, copy=True)

    def single(self, block: Array) -> Array:
        return block.to(self.xp.float32, copy=True)

    def host(self, array: Array) -> np.ndarray:
        return array.cpu().numpy()

    def zeros(self, *shape: int) -> Array:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def inverse_factor(self, matrix: Array) -> Array | None:
        torch = self.xp
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if failed.item():
            return None
        unit = torch.eye(len(matrix), dtype=torch.float64, device=self.device)
        return torch.linalg.solve_triangular(factor, unit, upper=False).T

    def products(self, left: Array, rights: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
        # Products of this shape fill a GPU only by the dozen. Matrices of several widths go one by one.
        rights = list(rights)
        if len({right.shape[1] for right in rights}) == 1:
            stacked = self.xp.stack(rights)
            yield from zip(stacked.mT @ stacked, left.T @ stacked, strict=True)
        else:
            yield from ((right.T @ right, left.T @ right) for right in rights)

    def smallest(self, values: Array, places: Sequence[int]) -> list[float]:
        return self.xp.sort(values).values[list(places)].tolist()

    def eigh(self, matrices: Sequence[Array], top: int | None = None) -> list[tuple[Array, Array]]:
        # One call for many matrices: a GPU is idle most of the time while it decomposes one of this size.
        found: list[tuple[Array, Array]] = [None] * len(matrices)  # type: ignore[list-item]
        for size in sorted({len(matrix) for matrix in matrices}):
            places = [place for place, matrix in enumerate(matrices) if len(matrix) == size]
            values, vectors = self.xp.linalg.eigh(self.xp.stack([matrices[place] for place in places]))
            for row, place in enumerate(places):
                found[place] = (values[row], vectors[row])
        return found


Backend = NumpyBackend | TorchBackend


def choose_backend(device: str = "cpu", work: float = float("inf")) -> Backend:
    """`cpu` is numpy; `cuda` or `cuda:<number>` is PyTorch; `auto` is the GPU where there is one and enough to do.

    `work` is the number of multiplications that lie ahead.
    """
    if device == "auto":
        device = "cuda" if work > SMALL and _gpu_possible() and _gpu_usable() else "cpu"
    return NumpyBackend() if device == "cpu" else TorchBackend(device)


def _gpu_possible() -> bool:
    """Whether it is worth asking PyTorch for a GPU: asking takes two seconds."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return not sys.platform.startswith("linux") or any(map(os.path.exists, _DRIVERS))


def _gpu_usable() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()
