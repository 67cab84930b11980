"""How the kernels are compiled, and how they share the cores without changing the result."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np


def kernel(function: Callable) -> Callable:
    """Compile a function that runs without Python's lock, and keep the machine code for the next run if possible."""
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:
        # Neither the source folder nor the user's cache folder can be written: compile anew in each run.
        return numba.njit(**settings)(function)


def default_threads() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs a kernel over a list of argument tuples and returns the results in the order of the list.

    No two tasks write to the same number and sums are taken over whole arrays afterwards, so any number of threads and
    any division into tasks gives the same bits.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or default_threads()
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def run(self, function: Callable, tasks: Iterable[tuple]) -> list[Any]:
        """Call `function(*task)` for every task."""
        if self._pool is None:
            return [function(*task) for task in tasks]
        return list(self._pool.map(lambda task: function(*task), tasks))

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def even_ranges(work: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Cut positions 0..len(work) into consecutive ranges of about `size` units of work each."""
    total = np.concatenate(([0], np.cumsum(work, dtype=np.int64)))
    ranges, low = [], 0
    while low < len(work):
        high = int(np.searchsorted(total, total[low] + size, side="left"))
        high = min(max(high, low + 1), len(work))
        ranges.append((low, high))
        low = high
    return ranges
