"""Every job behind some targets, worked out from the catalog in a second; Snakemake takes many for the same.

Also which of them are still to be done, the longest chain among these, and how long all take on so many machines.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

from crossalign.catalog.inputs import Inputs, Job
from crossalign.catalog.runs import Catalog

Seconds = Callable[[str], float]


class Graph:
    """Jobs by name, the jobs that each waits for (`needs`), and those that wait for it (`dependants`)."""

    def __init__(self, jobs: Iterable[Job], targets: Iterable[str] = ()) -> None:
        self.jobs = {job.name: job for job in jobs}
        self.maker = {file: name for name, job in self.jobs.items() for file in job.outputs}
        self.targets = list(targets)
        self.needs: dict[str, tuple[str, ...]] = {}
        self.dependants: dict[str, list[str]] = {name: [] for name in self.jobs}
        for name in sorted(self.jobs):
            makers = (self.maker.get(file) for file in self.jobs[name].reads)
            self.needs[name] = tuple(dict.fromkeys(maker for maker in makers if maker))
            for need in self.needs[name]:
                self.dependants[need].append(name)

    def remaining(self, exists: Callable[[str], bool]) -> set[str]:
        """The jobs that would run, as far as existing files tell.

        As Snakemake sees it: a target that is missing is made; what a running job reads is made where it is missing;
        what depends on a running job is made again. A missing file that no running job reads is not missed, unless a
        table or figure that is there shows a result of which nothing is: the config asks for more than it did.
        """
        there = {file: exists(file) for file in self.maker}
        begun = {name for name, job in self.jobs.items() if any(there[file] for file in job.outputs)}
        missing = (self.maker[file] for file in self.targets if not there[file])
        grown = (name for name in self._shown & begun if not begun.issuperset(self._results(name)))
        queue = sorted({*missing, *grown})
        found = set(queue)
        while queue:
            name = queue.pop()
            absent = (self.maker[file] for file in self.jobs[name].reads if not there.get(file, True))
            new = {*absent, *self._triggered(name, there)} - found
            found |= new
            queue += sorted(new)
        return found

    @cached_property
    def _shown(self) -> set[str]:
        """The tables and figures."""
        return {name for name, job in self.jobs.items() if job.rule in ("make_table", "make_figure")}

    def _results(self, name: str) -> Iterable[str]:
        """The jobs whose results a table or figure shows; the config is none."""
        return (need for need in self.needs[name] if self.jobs[need].rule != "write_config")

    def _triggered(self, name: str, there: dict[str, bool]) -> Iterable[str]:
        # Another config makes nothing again by itself: params tell which of its keys matter.
        if self.jobs[name].rule == "write_config" and there[name]:
            return ()
        return self.dependants[name]

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


def planned(catalog: Catalog, targets: Iterable[str] = ("all",)) -> Graph:
    """The jobs of some targets: names of rules, items, or files of items."""
    inputs = Inputs(catalog)
    wanted = list(dict.fromkeys(file for target in targets for file in inputs.target(target)))
    jobs: dict[str, Job] = {}
    seen: set[str] = set()
    waiting = list(wanted)
    while waiting:
        file = waiting.pop()
        if file not in seen and (job := inputs.job(file)):
            seen.update(job.outputs)
            jobs[job.name] = job
            waiting += job.reads
        seen.add(file)
    return Graph(jobs.values(), wanted)
