"""One seed per run, and from it an independent stream of random numbers for every purpose."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

import numpy as np


def derive(seed: int, *purpose: str | int) -> int:
    """A seed that depends on `seed` and on the purpose only, the same on every machine."""
    text = "\0".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A NumPy generator for one purpose."""
    return np.random.Generator(np.random.PCG64(derive(seed, *purpose)))


@contextlib.contextmanager
def torch_seeded(seed: int, *purpose: str | int) -> Iterator[None]:
    """Inside the block PyTorch's CPU generator follows the derived seed; afterwards it is as before."""
    import torch

    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would also reset the generators of GPUs, which the block does not restore.
        torch.default_generator.manual_seed(derive(seed, *purpose))
        yield
