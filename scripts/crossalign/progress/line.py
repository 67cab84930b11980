"""The progress line: jobs done, jobs in all, about how long it still takes, and the rules that run.

On a terminal it is redrawn in place; elsewhere there is a plain line each minute and at each tenth.
"""

import contextlib
import math
import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from statistics import mean
from typing import TextIO

CLEAR = "\r\x1b[K"
MINUTE = 60.0


class Tally:
    """Jobs by rule: how many are planned, the seconds of those done; and the jobs that run: rule and start."""

    def __init__(self) -> None:
        self.planned = Counter[str]()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.running: dict[int, tuple[str, float]] = {}
        self.first = math.inf

    def plan(self, jobs: Mapping[str, int]) -> None:
        """What is to be done, as Snakemake counts it."""
        self.planned = Counter({rule: count for rule, count in jobs.items() if rule != "total"})

    def start(self, job: int, rule: str, now: float) -> None:
        self.first = min(self.first, now)
        self.running[job] = rule, now

    def finish(self, job: int, now: float) -> None:
        if job in self.running:
            rule, start = self.running.pop(job)
            self.seconds[rule].append(now - start)

    @property
    def done(self) -> int:
        return sum(map(len, self.seconds.values()))

    @property
    def total(self) -> int:
        return self.planned.total()

    def left(self, now: float) -> float | None:
        """About how many seconds are left; None before rules with half of the jobs have finished one."""
        if now <= self.first or not self.seconds or 2 * sum(self.planned[rule] for rule in self.seconds) < self.total:
            return None
        spent = sum(map(sum, self.seconds.values()))
        means = dict.fromkeys(self.planned, spent / self.done) | {rule: mean(s) for rule, s in self.seconds.items()}
        undone = self.planned - Counter({rule: len(seconds) for rule, seconds in self.seconds.items()})
        work = sum(means[rule] * count for rule, count in undone.items())
        # What running jobs have behind them is not left; one that takes longer than its rule's others is nearly done.
        behind = [(now - start, means.get(rule, math.inf)) for rule, start in self.running.values()]
        # Seconds of work in a second: jobs side by side, and what Snakemake needs between them.
        pace = (spent + sum(seconds for seconds, _ in behind)) / (now - self.first)
        return max(work - sum(map(min, behind)), 0.0) / pace if pace else None

    def told(self, now: float) -> str:
        """`312 of 890 jobs, about 4 minutes left: evaluate, finetune`"""
        left = self.left(now)
        words = "" if left is None or self.done == self.total else f", about {duration(max(left, MINUTE))} left"
        rules = sorted({rule for rule, _ in self.running.values()})
        return f"{self.done} of {self.total} jobs{words}" + (f": {', '.join(rules)}" if rules else "")


def duration(seconds: float) -> str:
    """A time for people: 4 minutes."""
    units = (("second", 1, 90), ("minute", 60, 5400), ("hour", 3600, 172_800), ("day", 86_400, math.inf))
    unit, length, _ = next(each for each in units if seconds < each[2])
    count = round(seconds / length)
    return f"{count} {unit}{'s' * (count != 1)}"


class Screen:
    """Writes to the terminal or the log that the run was started with."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock = stream, clock
        self.terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.next, self.tenth = clock() + MINUTE, 0

    def say(self, text: str) -> None:
        """A text that stays, in the place of the line."""
        self._write((CLEAR if self.terminal else "") + text + "\n")

    def show(self, text: str, done: int, total: int) -> None:
        """The line as it is now; without a terminal only when it is time for one."""
        if self.terminal:
            # One column stays free: a full line makes some terminals wrap.
            self._write(CLEAR + text[: self._width() - 1])
        elif 10 * done // total > self.tenth or self.clock() >= self.next:
            self.next, self.tenth = self.clock() + MINUTE, 10 * done // total
            self._write(f"{text}\n")

    def _width(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        return shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        # A terminal that has gone must not end the run.
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()
