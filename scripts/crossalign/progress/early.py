"""The early look: the page of a run that still goes, made again in the background as tables and figures are done."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from crossalign.runtime.holders import TOKEN

PAUSE = 120.0
# At most one part in so many of the time goes into early pages.
SHARE = 30
# The rules that end a run. From the first of them on the page is theirs.
FINAL = {"make_verdicts", "make_report"}
ITEMS = {"make_table", "make_figure"}


class EarlyLook:
    """One maker at a time, at low priority. It writes to `draft`; only this class turns that into `page`."""

    def __init__(
        self, command: Sequence[str], draft: Path, page: Path, log: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        nice = shutil.which("nice")
        self.command = [*([nice, "-n", "19"] if nice else []), *command]
        self.draft, self.page, self.log, self.clock = draft, page, log, clock
        self.process: subprocess.Popen | None = None
        self.wanted = self.closed = False
        self.begun = self.next = 0.0

    def want(self) -> None:
        """There is something new to show."""
        self.wanted = True

    def tick(self) -> None:
        """Put a finished page in its place, and start the next when it is wanted and time for it."""
        if self.process and self.process.poll() is not None:
            self._finish()
        if self.wanted and not self.closed and self.process is None and self.clock() >= self.next:
            self._start()

    def finish(self, patience: float = 120.0) -> bool:
        """The last look at a run that ends without its own page; whether there is one."""
        if self.process is None and not self.closed:
            self._start()
        made = self._wait(patience)
        # A maker that was at work already has not seen the last tables.
        if self.wanted and not self.closed and self.process is None:
            self._start()
            made = self._wait(patience) or made
        return made

    def close(self) -> None:
        """No early page from now on: what is at work is ended, and what it has written is not used."""
        self.closed = True
        if self.process:
            with contextlib.suppress(OSError):
                self.process.kill()
            self.process.wait()
            self.process = None
        with contextlib.suppress(OSError):
            self.draft.unlink(missing_ok=True)

    def _start(self) -> None:
        self.wanted, self.begun = False, self.clock()
        self.next = self.begun + PAUSE
        # Not a job of the run: after a crash nobody has to wait for it.
        environment = {name: value for name, value in os.environ.items() if name != TOKEN} | {"OMP_NUM_THREADS": "1"}
        # Whatever goes wrong here must not disturb the run; the log has it.
        with contextlib.suppress(OSError):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("w") as log:
                streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
                # A session of its own: a terminal's Ctrl-C is for the run.
                self.process = subprocess.Popen(self.command, env=environment, start_new_session=True, **streams)

    def _wait(self, patience: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process:
                self.process.wait(patience)
                return self._finish()
        return False

    def _finish(self) -> bool:
        made = self.process.returncode == 0
        self.process = None
        self.next = max(self.next, self.clock() + SHARE * (self.clock() - self.begun))
        with contextlib.suppress(OSError):
            if made and not self.closed:
                self.draft.replace(self.page)
                return True
        return False
