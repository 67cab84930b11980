"""The progress line: redrawn in place on a terminal; elsewhere a plain line each minute and at each tenth."""

import contextlib
import os
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from crossalign.progress.estimate import time_left

CLEAR, GREEN, DIM, RED, PLAIN = "\r\x1b[K", "\x1b[32m", "\x1b[2m", "\x1b[31m", "\x1b[0m"
BAR = 20
MINUTE = 60.0


@dataclass(frozen=True)
class State:
    """What the line tells."""

    done: int
    total: int
    left: float | None
    doing: str
    page: str = ""


def bar(done: int, total: int, cells: int, full: str = "█", empty: str = "░") -> str:
    """A bar of so many cells."""
    filled = cells * done // total if total else 0
    return full * filled + empty * (cells - filled)


def fit(text: str, width: int) -> str:
    """A text cut to a width."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def line(state: State) -> str:
    """The line without a bar."""
    if not state.total:
        return state.doing
    return f"{state.done} of {state.total}, {time_left(state.left)}: {state.doing}"


class Screen:
    """Writes to the terminal or the log that the run was started with."""

    def __init__(self, stream: TextIO, clock: Callable[[], float], colour: bool = True) -> None:
        self.stream, self.clock = stream, clock
        self.terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = self.terminal and colour and not os.environ.get("NO_COLOR")
        self.drawn = False
        self.next, self.tenth = self.clock() + MINUTE, 0
        try:
            "█░…".encode(stream.encoding or "ascii")
            self.cells = "█░"
        except UnicodeEncodeError:
            self.cells = "#-"

    def paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{PLAIN}" if self.colour else text

    def say(self, text: str = "", colour: str = "") -> None:
        """A text that stays, above the line."""
        self._write((CLEAR if self.drawn else "") + (self.paint(text, colour) if colour else text) + "\n")
        self.drawn = False

    def say_wrapped(self, text: str, indent: int) -> None:
        """A long text that stays: on a terminal broken between words."""
        lines = textwrap.wrap(text, max(self._width() - 1, 2 * indent), subsequent_indent=" " * indent)
        for each in lines if self.terminal else [text]:
            self.say(each)

    def show(self, state: State) -> None:
        """The line as it is now; without a terminal only when it is time for one."""
        if self.terminal:
            self._draw(state)
            return
        tenth = 10 * state.done // state.total if state.total else 0
        if tenth > self.tenth or self.clock() >= self.next:
            self.next, self.tenth = self.clock() + MINUTE, tenth
            where = f" (page: {state.page})" if state.page else ""
            self._write(f"{line(state)}{where}\n")

    def clear(self) -> None:
        """Take the line away."""
        if self.drawn:
            self._write(CLEAR)
            self.drawn = False

    def _draw(self, state: State) -> None:
        # One column stays free: a full line makes some terminals wrap.
        width = self._width() - 1
        text = line(state)
        cells = min(BAR, width // 10) if state.total and width > 40 else 0
        text = fit(text, width - cells - bool(cells))
        # The page is named on the line where there is room for it.
        where = f"   {state.page}" if state.page else ""
        if len(text) + len(where) + cells + bool(cells) > width:
            where = ""
        drawn = self.paint(bar(state.done, state.total, cells, *self.cells), GREEN) + " " if cells else ""
        self._write(f"{CLEAR}{drawn}{text}{self.paint(where, DIM) if where else ''}")
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
