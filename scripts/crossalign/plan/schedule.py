"""The longest chain of jobs, and how long all take on so many GPUs and cores."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from crossalign.plan.jobs import Job


@dataclass(frozen=True)
class Machines:
    """What there is to run on; without GPUs their jobs run on cores. One transfer at a time has the whole network."""

    gpus: int
    cores: int
    transfers: int = 1


def tails(jobs: Mapping[str, Job], names: Collection[str], seconds: Callable[[str], float]) -> dict[str, float]:
    """For each job the seconds from its start to the end of the longest chain behind it."""
    chosen = set(names)
    order = TopologicalSorter({name: [need for need in jobs[name].needs if need in chosen] for name in sorted(chosen)})
    behind = dict.fromkeys(chosen, 0.0)
    found: dict[str, float] = {}
    for name in reversed(list(order.static_order())):
        found[name] = seconds(name) + behind[name]
        for need in jobs[name].needs:
            if need in chosen:
                behind[need] = max(behind[need], found[name])
    return found


def critical_path(jobs: Mapping[str, Job], names: Collection[str], seconds: Callable[[str], float]) -> list[str]:
    """The jobs of the longest chain, first to last."""
    length = tails(jobs, names, seconds)
    dependants: dict[str, list[str]] = {}
    for name in sorted(length):
        for need in jobs[name].needs:
            dependants.setdefault(need, []).append(name)
    chain: list[str] = []
    step = sorted(length)
    while step:
        chain.append(max(step, key=lambda name: length[name]))
        step = dependants.get(chain[-1], [])
    return chain


def wall_time(
    jobs: Mapping[str, Job], names: Collection[str], seconds: Callable[[str], float], machines: Machines
) -> float:
    """Simulate: whenever something is free, the waiting job with the longest chain behind it starts."""
    length = tails(jobs, names, seconds)
    waiting = {name: sum(need in length for need in jobs[name].needs) for name in length}
    dependants: dict[str, list[str]] = {}
    for name in sorted(length):
        for need in jobs[name].needs:
            dependants.setdefault(need, []).append(name)
    # Jobs that ask for the same wait in one queue.
    queues: dict[tuple[int, int, int], list[tuple[float, str]]] = {}
    for name in sorted(name for name, many in waiting.items() if not many):
        heapq.heappush(queues.setdefault(_asks(jobs[name], machines), []), (-length[name], name))
    free = [machines.gpus, machines.cores, machines.transfers]
    running: list[tuple[float, str]] = []
    now = 0.0
    while True:
        while fitting := [
            (queue[0], asks)
            for asks, queue in queues.items()
            if queue and all(want <= left for want, left in zip(asks, free, strict=True))
        ]:
            (_, name), asks = min(fitting)
            heapq.heappop(queues[asks])
            free = [left - want for left, want in zip(free, asks, strict=True)]
            heapq.heappush(running, (now + seconds(name), name))
        if not running:
            return now
        now, name = heapq.heappop(running)
        free = [left + want for left, want in zip(free, _asks(jobs[name], machines), strict=True)]
        for after in dependants.get(name, ()):
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(queues.setdefault(_asks(jobs[after], machines), []), (-length[after], after))


def _asks(job: Job, machines: Machines) -> tuple[int, int, int]:
    """GPUs, cores and transfers of a job; no more than there are, as Snakemake does."""
    transfers = 1 if job.rule.startswith("download_") else 0
    return min(job.gpus, machines.gpus), min(job.threads, machines.cores), transfers
