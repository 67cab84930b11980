"""The logger behind `make demo` and its kin: Snakemake's events for the story, the rest into a file."""

import contextlib
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from logging import WARNING, LogRecord
from pathlib import Path

import psutil
from snakemake.logging import DefaultFilter
from snakemake.shell import shell
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from crossalign.progress.early import EarlyLook
from crossalign.progress.line import Screen
from crossalign.progress.story import Run, Story
from crossalign.runtime import holders

PROGRAM = Path(__file__).resolve().parents[2] / "early_look.py"
TICK = 1.0
# Seconds that jobs have to end after Ctrl-C; and how much older than it a job may be that has not heard it.
GRACE, STARTING = 2.0, 1.0


# No postponed annotations in this file: Snakemake makes options of the command line from these types.
@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """--logger-crossalign-results and so on; scripts/run.py sets them."""

    results: str = field(default="results/unnamed", metadata={"help": "Folder of the run, results/<run>"})
    again: str = field(default="the same command", metadata={"help": "The command that continues the run"})
    unlock: str = field(default="snakemake --unlock", metadata={"help": "The command that unlocks the folder"})
    after: str = field(default="", metadata={"help": "The command to try after the run"})


def about_early_page(text: str) -> bool:
    """Whether Snakemake wonders at the page of a run that still goes on, which is meant to be there before its rule."""
    return "were not present when the DAG was created" in text and "report/index.html" in text


def interrupt_late_jobs(since: float) -> None:
    """A job whose process was started just after Ctrl-C has not heard it, and Snakemake would wait for its end."""
    for started in list(shell._processes.values()):
        with contextlib.suppress(psutil.Error):
            job = psutil.Process(started.pid)
            for process in [job, *job.children(recursive=True)]:
                if process.create_time() > since:
                    process.send_signal(signal.SIGINT)


class Streams:
    """What Snakemake and its jobs write to the standard streams goes to a log; the terminal is for the story."""

    def __init__(self, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log.open("a", encoding="utf-8", errors="replace")
        self.terminal = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="replace")
        self.kept = {stream: os.dup(stream) for stream in (1, 2)}
        for stream in self.kept:
            os.dup2(self.log.fileno(), stream)

    def restore(self) -> None:
        """As it was before."""
        for stream, kept in self.kept.items():
            os.dup2(kept, stream)
            os.close(kept)
        self.kept = {}
        self.log.close()


class LogHandler(LogHandlerBase):
    """Hears Snakemake in a thread of its own; a second one redraws the line."""

    writes_to_stream = property(lambda self: True)
    writes_to_file = property(lambda self: False)
    has_filter = property(lambda self: True)  # none: the story needs all events, whatever --quiet says
    has_formatter = property(lambda self: False)
    needs_rulegraph = property(lambda self: False)

    def __post_init__(self) -> None:
        given = self.common_settings
        self.shown = DefaultFilter(given.quiet, given.debug_dag, given.verbose, given.dryrun, given.printshellcmds)
        self.story = self.streams = None
        if given.dryrun:
            return  # the plan itself is what is asked for
        # Snakemake may change to another folder later.
        results = Path(self.settings.results).absolute()
        run = Run(results, self.settings.again, self.settings.unlock, self.settings.after)
        self.streams = Streams(run.log)
        draft = run.page.with_name(".early.html")
        command = [sys.executable, PROGRAM, "--results", run.results, "--out", draft, "--page", run.page]
        early = EarlyLook(list(map(str, command)), draft, run.page, run.log.with_name("early_look.log"))
        self.story = Story(run, Screen(self.streams.terminal, time.monotonic, colour=not given.nocolor), early)
        self.guard, self.ended, self.interrupted = threading.RLock(), threading.Event(), 0.0
        self._hear_interrupts()
        self.ticker = threading.Thread(target=self._tick, daemon=True)
        self.ticker.start()

    def _hear_interrupts(self) -> None:
        """Ctrl-C reaches jobs, too, and must be known before Snakemake tells of their failure."""
        before = signal.getsignal(signal.SIGINT)

        def interrupt(number: int, frame: object) -> None:
            self.story.interrupted, self.interrupted = True, time.time()
            before(number, frame)

        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)

    def emit(self, record: LogRecord) -> None:
        try:
            if self.shown.filter(record) and (text := self.format(record)) not in ("", "None"):
                print(text, file=self.streams.log if self.streams else sys.stdout, flush=True)
            if self.story:
                with self.guard:
                    self._tell(record)
        except Exception:  # a fault in telling must not end a run
            self.handleError(record)

    def _tell(self, record: LogRecord) -> None:
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:
                self.story.plan(record.stats)
            case LogEvent.JOB_INFO:
                self.story.start(record.jobid, record.rule_name, dict(record.wildcards))
            case LogEvent.JOB_FINISHED:
                self.story.finish(record.job_id)
            case LogEvent.JOB_ERROR:
                self.story.fail(record.jobid, record.rule_name, record.output, record.log)
            case LogEvent.ERROR:
                self.story.error(getattr(record, "exception", ""), str(record.msg))
            case None if not about_early_page(str(record.msg)):
                self.story.sentence(str(record.msg), record.levelno >= WARNING)

    def _tick(self) -> None:
        while not self.ended.wait(TICK):
            with self.guard, contextlib.suppress(Exception):  # as above
                self.story.tick()
            if self.interrupted and time.time() > self.interrupted + GRACE:
                interrupt_late_jobs(self.interrupted - STARTING)

    def close(self) -> None:
        """Snakemake closes its loggers last of all, however a run ends; Python does so once more when it exits."""
        if self.story and not self.ended.is_set():
            self.ended.set()
            self.ticker.join()
            try:
                self.story.end()
            finally:
                self.story.early.close()
                self.streams.restore()
                with contextlib.suppress(OSError):
                    holders.leave(self.story.run.folder)
        super().close()
