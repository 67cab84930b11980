"""The logger behind `make demo` and its kin: one line, and a sentence for each job that fails."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterable
from logging import ERROR, WARNING, LogRecord
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from crossalign.progress.line import Screen, Tally, duration
from crossalign.runtime.workarounds import note_lock, remove_dead_lock

TICK = 1.0
PAGE = "report/index.html"


class LogHandler(LogHandlerBase):
    """Hears Snakemake in a thread of its own; a second one redraws the line."""

    writes_to_stream = property(lambda self: True)
    writes_to_file = property(lambda self: False)
    has_filter = property(lambda self: False)
    has_formatter = property(lambda self: False)
    needs_rulegraph = property(lambda self: False)

    def __post_init__(self) -> None:
        self.screen, self.tally = Screen(sys.stderr), Tally()
        self.started, self.ended = time.monotonic(), threading.Event()
        self.failed: set[int] = set()
        self.errors = self.interrupted = False
        self.page: Path | None = None
        self.reason = ""
        if self.common_settings.dryrun:
            return  # the plan itself is what is asked for
        if told := remove_dead_lock(Path()):
            self.screen.say(told)
        self._hear_interrupts()
        threading.Thread(target=self._tick, daemon=True).start()

    def _hear_interrupts(self) -> None:
        """Ctrl-C reaches jobs, too, and must be known before Snakemake tells of their failure."""
        before = signal.getsignal(signal.SIGINT)

        def interrupt(number: int, frame: object) -> None:
            self.interrupted = True
            before(number, frame)

        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)

    def emit(self, record: LogRecord) -> None:
        try:
            if self.common_settings.dryrun:
                if (text := self.format(record)) not in ("", "None"):
                    print(text, flush=True)
            else:
                self._tell(record)
        except Exception:  # a fault in telling must not end a run
            self.handleError(record)

    def _tell(self, record: LogRecord) -> None:
        now = time.monotonic()
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:
                self.tally.plan(record.stats)
                note_lock(Path())
            case LogEvent.JOB_INFO:
                self.tally.start(record.jobid, record.rule_name, now)
                pages = [Path(file) for file in record.output if file.endswith(PAGE)]
                self.page = pages[0].absolute() if pages else self.page
            case LogEvent.JOB_FINISHED:
                self.tally.finish(record.job_id, now)
                self.failed.discard(record.job_id)
            case LogEvent.JOB_ERROR:
                self._fail(record.jobid, record.rule_name, record.output, record.log)
            case LogEvent.ERROR:
                self._error(getattr(record, "exception", ""), str(record.msg))
            # Before the first job and in trouble Snakemake speaks for itself.
            case None if record.levelno >= WARNING or not self.tally.total:
                if not (self.interrupted or ((self.failed or self.errors) and record.levelno >= ERROR)):
                    self.screen.say(str(record.msg))
        self._show()

    def _fail(self, job: int, rule: str, outputs: Iterable[str], logs: Iterable[str]) -> None:
        self.tally.running.pop(job, None)  # it may come again
        if self.interrupted:
            return
        self.failed.add(job)
        written = [(log, end) for log in logs if (end := last_line(Path(log)))]
        said = "; ".join(f"{end} ({log})" for log, end in written) or self.reason or "no log"
        self.screen.say(f"Failed: {rule} of {next(iter(outputs), 'nothing')}: {said}")

    def _error(self, kind: str, text: str) -> None:
        if kind == "KeyboardInterrupt":
            self.interrupted = True
        elif kind == "RuleException" and self.tally.total:
            self.reason = text.rstrip()  # of a job whose failure comes next
        elif not (self.interrupted or self.failed or self.errors):
            self.errors = True
            self.screen.say(text.rstrip())

    def _show(self) -> None:
        if self.interrupted and self.tally.running:
            self.screen.show(f"stopping, {len(self.tally.running)} jobs still running", 0, 1)
        elif self.tally.total:
            self.screen.show(self.tally.told(time.monotonic()), self.tally.done, self.tally.total)

    def _tick(self) -> None:
        while not self.ended.wait(TICK):
            with self.lock, contextlib.suppress(Exception):  # as above
                if not self.ended.is_set():
                    self._show()

    def close(self) -> None:
        """Snakemake closes its loggers last of all, however a run ends; Python does so once more when it exits."""
        with self.lock:
            first = not self.ended.is_set()
            self.ended.set()  # the line is not drawn again
        if first and self.tally.total and not self.common_settings.dryrun:
            done, total, took = self.tally.done, self.tally.total, duration(time.monotonic() - self.started)
            if done < total:
                how = "Failed" if self.failed or self.errors else "Stopped"
                self.screen.say(f"{how} after {took}: {done} of {total} jobs are done and stay done.")
            else:
                page = f" The page: {self.page.as_uri()}" if self.page and self.page.is_file() else ""
                self.screen.say(f"Done in {took}: {done} of {total} jobs.{page}")
        super().close()


def last_line(log: Path) -> str:
    """The last line of a log that is not empty."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
