"""The progress line: how far a run is, about how long it still takes, and what it does.

On a terminal it is redrawn in place; elsewhere there is a plain line each minute and at each tenth.
"""

import contextlib
import os
import shutil
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from statistics import mean
from typing import TextIO

CLEAR, GREEN, DIM, RED, PLAIN = "\r\x1b[K", "\x1b[32m", "\x1b[2m", "\x1b[31m", "\x1b[0m"
BAR = 20
MINUTE = 60.0
# Usual seconds of jobs that take long, in the demo; others take about one. Used for rules of which no job has finished
# yet, in proportion to those of which one has: only the ratios count.
USUAL = {
    **{"finetune": 19, "finetune_random": 14, "evaluate": 6, "train_bilstm": 11, "embed_sentences": 4},
    **{"embed_words": 5, "adjust_model": 33, "adapt_to_text": 24, "align_bitext": 10, "align_pieces": 10},
    **{"make_world": 11, "pretrain": 27, "download_model": 20},
}
# The last jobs of a rule tell best what the next takes: other work on the machine comes and goes.
LAST = 10
# No guess before rules with this part of the work have been seen.
SEEN = 1 / 2


class Tally:
    """Jobs by rule: how many are planned, the seconds of those done; and the jobs that run: rule and start."""

    def __init__(self) -> None:
        self.planned = Counter[str]()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.running: dict[int, tuple[str, float]] = {}
        self.first: float | None = None

    def plan(self, jobs: Mapping[str, int]) -> None:
        """What is to be done, as Snakemake counts it."""
        self.planned = Counter({rule: count for rule, count in jobs.items() if rule != "total"})

    def start(self, job: int, rule: str, now: float) -> None:
        self.first = now if self.first is None else self.first
        self.running[job] = rule, now

    def finish(self, job: int, now: float) -> None:
        if job in self.running:
            rule, start = self.running.pop(job)
            self.seconds[rule].append(now - start)

    @property
    def done(self) -> Counter[str]:
        """Finished jobs by rule."""
        return Counter({rule: len(seconds) for rule, seconds in self.seconds.items()})

    @property
    def counts(self) -> tuple[int, int]:
        """Jobs that are done, and all."""
        return self.done.total(), self.planned.total()

    def left(self, now: float) -> float | None:
        """About how many seconds are left; None while too little is known."""
        done = self.done
        if self.first is None or now <= self.first or not done:
            return None
        usual = {rule: USUAL.get(rule, 1) for rule in self.planned | done}
        share = sum(usual[rule] * self.planned[rule] for rule in done)
        if share < SEEN * sum(usual[rule] * count for rule, count in self.planned.items()):
            return None
        spent = sum(map(sum, self.seconds.values()))
        slowness = spent / sum(usual[rule] * count for rule, count in done.items())
        means = {rule: usual[rule] * slowness for rule in usual}
        means |= {rule: mean(seconds[-LAST:]) for rule, seconds in self.seconds.items()}
        work = sum(means[rule] * max(count - done[rule], 0) for rule, count in self.planned.items())
        # What running jobs have behind them is not left; one that takes longer than its rule's others is nearly done.
        running = [(rule, now - start) for rule, start in self.running.values()]
        work -= sum(min(seconds, means.get(rule, seconds)) for rule, seconds in running)
        # Seconds of work in a second: jobs side by side, and what Snakemake needs between them.
        pace = (spent + sum(seconds for _, seconds in running)) / (now - self.first)
        return max(work, 0.0) / pace if pace > 0 else None


def duration(seconds: float) -> str:
    """A time for people: 4 minutes."""
    if seconds < 90:
        return plural(round(seconds), "second")
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    hours = round(seconds / 3600)
    return f"{hours} hours" if hours < 48 else f"{round(seconds / 86400)} days"


def plural(count: int, word: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {word}{'s' * (count != 1)}"


def time_left(seconds: float | None) -> str:
    """What is said of the time that is left."""
    if seconds is None:
        return "time left not known yet"
    return f"about {duration(max(seconds, 60))} left" if seconds >= 45 else "less than a minute left"


class Screen:
    """Writes to the terminal or the log that the run was started with."""

    def __init__(self, stream: TextIO, clock: Callable[[], float], colour: bool = True) -> None:
        self.stream, self.clock = stream, clock
        self.terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = self.terminal and colour and not os.environ.get("NO_COLOR")
        self.drawn = False
        self.next, self.tenth = self.clock() + MINUTE, 0
        self.full, self.empty = "█░"
        try:
            "█░…".encode(stream.encoding or "ascii")
        except UnicodeEncodeError:
            self.full, self.empty = "#-"

    def paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{PLAIN}" if self.colour and colour else text

    def say(self, text: str, colour: str = "") -> None:
        """A text that stays, above the line."""
        self._write((CLEAR if self.drawn else "") + self.paint(text, colour) + "\n")
        self.drawn = False

    def say_wrapped(self, text: str, indent: int) -> None:
        """A long text that stays: on a terminal broken between words."""
        lines = textwrap.wrap(text, max(self._width() - 1, 2 * indent), subsequent_indent=" " * indent)
        for each in lines if self.terminal else [text]:
            self.say(each)

    def show(self, text: str, done: int = 0, total: int = 0, page: str = "") -> None:
        """The line as it is now; without a terminal only when it is time for one."""
        if self.terminal:
            self._draw(text, done, total, page)
            return
        tenth = 10 * done // total if total else 0
        if tenth > self.tenth or self.clock() >= self.next:
            self.next, self.tenth = self.clock() + MINUTE, tenth
            self._write(f"{text} (page: {page})\n" if page else f"{text}\n")

    def clear(self) -> None:
        """Take the line away."""
        if self.drawn:
            self._write(CLEAR)
            self.drawn = False

    def _draw(self, text: str, done: int, total: int, page: str) -> None:
        # One column stays free: a full line makes some terminals wrap.
        width = self._width() - 1
        bar = ""
        if total and width > 40:
            cells = min(BAR, width // 10)
            filled = cells * done // total
            bar = self.paint(self.full * filled + self.empty * (cells - filled), GREEN) + " "
            width -= cells + 1
        if len(text) > width:
            text = f"{text[: max(width - 1, 0)]}…"
        # The page is named on the line where there is room for it.
        where = self.paint(f"   {page}", DIM) if page and len(text) + 3 + len(page) <= width else ""
        self._write(f"{CLEAR}{bar}{text}{where}")
        self.drawn = True

    def _width(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            if columns := os.get_terminal_size(self.stream.fileno()).columns:
                return columns
        return shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        # A terminal that has gone must not end the run.
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()
