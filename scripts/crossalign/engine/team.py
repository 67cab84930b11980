"""Processes that train one model together, one for each GPU of a machine, as torchrun starts them.

Each works on its part of a batch; the gradients are summed before every update, so that all hold the same weights. One
process alone is a team of one, for which nothing here costs anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor

from crossalign.runtime.errors import UserError

T = TypeVar("T")

# The others wait that long for the first one while it encodes the texts.
_PATIENCE = timedelta(days=2)


class Team:
    """This process's number, `rank`, among the `world` processes."""

    def __init__(self, rank: int = 0, world: int = 1) -> None:
        self.rank, self.world = rank, world

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether there are no others."""
        return self.world == 1

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
