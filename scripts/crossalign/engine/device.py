"""Devices and precisions."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from threading import Thread

import torch

from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import claim_gpu, restart_without_mps


def choose_device(name: str = "auto", alone: bool = False) -> torch.device:
    """`auto` is the GPU where there is one. Sets the CPU up for small models: one thread, no oneDNN.

    `alone`: no other job on it, whatever the profile's share.
    """
    if name in ("auto", "cuda") and torch.backends.cuda.is_built():
        claim_gpu(alone)
        if not torch.cuda.is_available():
            restart_without_mps()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"device '{name}' was asked for but PyTorch sees no CUDA device; use --device cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device '{name}' is not one of auto, cpu, cuda, cuda:<number>") from None
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)
    if device.type == "cpu":
        # Two processes with one thread each beat one with two, and oneDNN is slow on products of this size.
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        torch.backends.mkldnn.set_flags(False)
        _keep_memory()
    return device


def wake(device: torch.device) -> Callable[[], None]:
    """Let a GPU start and load its libraries while the host goes on; call what is returned before it is used."""
    if device.type != "cuda":
        return lambda: None
    # No daemon: a program that ends with an error waits for it, or the interpreter would end under CUDA's feet (134).
    waking = Thread(target=_first_product, args=[device])
    waking.start()
    return waking.join


def _first_product(device: torch.device) -> None:
    with torch.cuda.device(device):  # each thread has a current GPU of its own
        square = torch.ones(64, 64, device=device)
        torch.mm(square, square)
        torch.cuda.synchronize()


def _keep_memory() -> None:
    """Let the C library keep freed memory: getting it back from the system costs a fifth of a small step."""
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD


def choose_precision(name: str, device: torch.device) -> str:
    """`auto` is bf16 on GPUs that have it, fp32 elsewhere."""
    if name == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    if name not in ("bf16", "fp32"):
        raise UserError(f"precision '{name}' is not one of auto, bf16, fp32")
    if name == "bf16" and device.type == "cpu":
        raise UserError("precision bf16 is for GPUs; on the CPU use fp32")
    return name
