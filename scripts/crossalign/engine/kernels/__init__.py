"""Triton kernels for what memory or launches bind. PyTorch's CUDA builds bring Triton; without it plain PyTorch serves.

Import the modules of this package only where `available` says so, and late: importing Triton takes a second.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@functools.cache
def available() -> bool:
    """Whether the kernels can be used; CROSSALIGN_TRITON=0 switches them off."""
    if os.environ.get("CROSSALIGN_TRITON", "1") == "0":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def serve(x: Tensor) -> bool:
    """Whether the kernels work on this tensor."""
    return x.is_cuda and available()
