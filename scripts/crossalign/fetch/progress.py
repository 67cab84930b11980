"""Progress on standard error: a line that renews itself on a terminal, a rare line in a log."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

TERMINAL_SECONDS = 2.0
LOG_SECONDS = 10.0


def size(count: float) -> str:
    """A number of bytes for people: `12.3 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


class Progress:
    """Tells how far one transfer is."""

    def __init__(
        self,
        label: str,
        start: int,
        total: int | None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.label, self.start, self.total = label, start, total
        self.stream = stream or sys.stderr
        self.clock = clock
        self.terminal = self.stream.isatty()
        self.began = self.last = clock()
        self.dirty = False

    def update(self, done: int) -> None:
        """Say how many bytes there are; printed only when the last line is old enough."""
        now = self.clock()
        if now - self.last < (TERMINAL_SECONDS if self.terminal else LOG_SECONDS):
            return
        self.last = now
        speed = (done - self.start) / max(now - self.began, 1e-9)
        share = f"{100 * done / self.total:3.0f} % of {size(self.total)}" if self.total else size(done)
        line = f"{self.label}: {share}, {speed / 1e6:.1f} MB/s"
        if self.terminal:
            self.stream.write(f"\r\033[K{line}")
            self.dirty = True
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self.dirty:
            self.stream.write("\r\033[K")
            self.stream.flush()
