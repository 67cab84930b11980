"""The jobs behind some targets, which of them are left, the longest chain among these, and how long all take."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter

from crossalign.catalog.addresses import Run, parse
from crossalign.catalog.sets import DataSet

Seconds = Callable[[str], float]


@dataclass(frozen=True)
class Job:
    """One job, named by its first output. `wildcards` have the address of what it makes, or the name of a download.

    `benchmark` is its file below the folder of all benchmarks; `left` says whether it would run.
    """

    rule: str
    outputs: list[str]
    reads: list[str] = field(default_factory=list)
    wildcards: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    threads: int = 1
    benchmark: str = ""
    left: bool = True

    @property
    def name(self) -> str:
        return self.outputs[0]

    @property
    def address(self) -> str:
        """What it is about, in words: an address, or the name of a download."""
        return "/".join(self.wildcards.values())

    @cached_property
    def subject(self) -> Run | DataSet | str:
        """What it is about: a model, a set, or something that has a name only."""
        kind, *parts = self.wildcards.get("address", "").split("/")
        match kind:
            case "models" | "tuned":
                return parse(self.address)
            case "embeddings" | "similarity" | "distances":
                return parse("/".join(parts[:-1]).removesuffix("/words"))
            case "data":
                return DataSet(*parts, *(["train"] if parts[0] == "text" else []))
            case "links":
                return DataSet("bitext", parts[0], parts[1].removesuffix(".pieces"))
        return "/".join(parts) or self.address

    @property
    def detail(self) -> str:
        """The corpus or language in which a model is looked into."""
        return self.address.rpartition("/")[2]


class Graph:
    """Jobs by name, the jobs that each waits for (`needs`), those that wait for it (`dependants`), and what is left."""

    def __init__(self, jobs: Iterable[Job], targets: Iterable[str] = ()) -> None:
        self.jobs = {job.name: job for job in sorted(jobs, key=lambda job: job.name)}
        self.maker = {file: name for name, job in self.jobs.items() for file in job.outputs}
        self.targets = list(targets)
        self.left = {name for name, job in self.jobs.items() if job.left}
        self.needs: dict[str, tuple[str, ...]] = {}
        self.dependants: dict[str, list[str]] = {name: [] for name in self.jobs}
        for name in self.jobs:
            makers = (self.maker.get(file) for file in self.jobs[name].reads)
            self.needs[name] = tuple(dict.fromkeys(maker for maker in makers if maker))
            for need in self.needs[name]:
                self.dependants[need].append(name)

    def tails(self, names: Collection[str], seconds: Seconds) -> dict[str, float]:
        """For each job the seconds from its start to the end of the longest chain behind it."""
        chosen = set(names)
        found: dict[str, float] = {}
        for name in self._last_first:
            if name in chosen:
                behind = (found[after] for after in self.dependants[name] if after in chosen)
                found[name] = seconds(name) + max(behind, default=0.0)
        return found

    @cached_property
    def _last_first(self) -> list[str]:
        """All jobs, each before those that it waits for."""
        return list(TopologicalSorter(self.needs).static_order())[::-1]

    def critical_path(self, names: Collection[str], seconds: Seconds) -> list[str]:
        """The jobs of the longest chain, first to last."""
        length = self.tails(names, seconds)
        chain: list[str] = []
        step = sorted(length)
        while step:
            chain.append(max(step, key=length.__getitem__))
            step = [name for name in self.dependants[chain[-1]] if name in length]
        return chain

    def wall_time(self, names: Collection[str], seconds: Seconds, machines: Machines) -> float:
        """Simulate: whenever something is free, the waiting job with the longest chain behind it starts."""
        length = self.tails(names, seconds)
        waiting = {name: sum(need in length for need in self.needs[name]) for name in length}
        # Jobs that ask for the same wait in one queue.
        queues: dict[tuple[int, int, int], list[tuple[float, str]]] = {}
        asks = {name: machines.asked(self.jobs[name]) for name in length}

        def enqueue(name: str) -> None:
            heapq.heappush(queues.setdefault(asks[name], []), (-length[name], name))

        for name in sorted(name for name, many in waiting.items() if not many):
            enqueue(name)
        free = (machines.gpus, machines.cores, machines.transfers)
        running: list[tuple[float, str]] = []
        now = 0.0
        while True:
            while fitting := [
                (queue[0], wants)
                for wants, queue in queues.items()
                if queue and all(want <= left for want, left in zip(wants, free, strict=True))
            ]:
                (_, name), wants = min(fitting)
                heapq.heappop(queues[wants])
                free = tuple(left - want for left, want in zip(free, wants, strict=True))
                heapq.heappush(running, (now + seconds(name), name))
            if not running:
                return now
            now, name = heapq.heappop(running)
            free = tuple(left + want for left, want in zip(free, asks[name], strict=True))
            for after in self.dependants[name]:
                if after in waiting:
                    waiting[after] -= 1
                    if not waiting[after]:
                        enqueue(after)


@dataclass(frozen=True)
class Machines:
    """What there is to run on; without GPUs their jobs run on cores. One transfer at a time has the whole network."""

    gpus: int
    cores: int
    transfers: int = 1

    def asked(self, job: Job) -> tuple[int, int, int]:
        """GPUs, cores and transfers of a job; no more than there are, as Snakemake does."""
        transfers = 1 if job.rule.startswith("download_") else 0
        return min(job.gpus, self.gpus), min(job.threads, self.cores), transfers
