"""Devices, precisions, and several processes that train one model together."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from threading import Thread
from typing import TypeVar

import torch
from torch import Tensor

from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import claim_gpus, restart_without_mps


def choose_device(name: str = "auto", job: str = "") -> torch.device:
    """`auto` is the GPU where there is one. Sets the CPU up for small models: one thread, no oneDNN.

    `job` is the kind of this job (`job_kind`): jobs share a GPU by what those of their kind took before.
    """
    if name in ("auto", "cuda") and torch.backends.cuda.is_built():
        claim_gpus(kind=job)
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


T = TypeVar("T")

# The others wait that long for the first one while it encodes the texts.
_PATIENCE = timedelta(days=2)


class Team:
    """This process's number, `rank`, among the `world` processes."""

    def __init__(self, rank: int = 0, world: int = 1) -> None:
        self.rank, self.world = rank, world
        # The first is the process that writes.
        self.first, self.alone = rank == 0, world == 1

    def part(self, batch: int) -> int:
        """The blocks of a batch that are one process's."""
        if batch % self.world:
            raise UserError(f"--batch {batch} does not divide over {self.world} processes")
        return batch // self.world

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the team; on the GPU without waiting, within a graph too."""
        if not self.alone:
            for tensor in tensors:
                if tensor.numel():
                    torch.distributed.all_reduce(tensor)

    def gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, one below the other, on the CPU."""
        tensor = tensor.cpu()
        if self.alone:
            return tensor[None]
        parts = [torch.empty_like(tensor) for _ in range(self.world)]
        torch.distributed.all_gather(parts, tensor)
        return torch.stack(parts)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        if self.alone:
            return flag
        number = torch.tensor([int(flag)])
        torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
        return bool(number)

    def in_turn(self, work: Callable[[], T]) -> T:
        """Do the work in the first process and then in the others, which find what it left on disk."""
        if self.first:
            result = work()
            self.wait()
            return result
        self.wait()
        return work()

    def told(self, text: str) -> str:
        """What the first process says."""
        if self.alone:
            return text
        words = [text]
        torch.distributed.broadcast_object_list(words)
        return words[0]

    def wait(self) -> None:
        """Until all are here."""
        self.any(False)

    def leave(self) -> None:
        """End the connections."""
        if not self.alone:
            torch.distributed.destroy_process_group()


def join_team(device: str) -> tuple[Team, str]:
    """The team that torchrun's environment describes, and the name of this process's device."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Team(), device
    rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        if local >= torch.cuda.device_count():
            raise UserError(f"process {local} has no GPU: this machine has {torch.cuda.device_count()}")
        device = f"cuda:{local}"
        torch.cuda.set_device(local)
    elif device != "cpu":
        raise UserError(f"--device {device}: several processes take auto, cpu or cuda, one GPU each")
    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    torch.distributed.init_process_group(backend, timeout=_PATIENCE)
    return Team(rank, world), device
