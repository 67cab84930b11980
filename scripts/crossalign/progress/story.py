"""What is told of a run from its plan to its end. Knows nothing of Snakemake but its sentences."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from crossalign.progress.early import FINAL, ITEMS, EarlyLook
from crossalign.progress.line import GREEN, RED, Screen, Tally, duration, plural, time_left
from crossalign.progress.words import job_words
from crossalign.runtime import holders
from crossalign.runtime.errors import UserError

# Sentences of Snakemake's that stand for no event.
NOTHING_TO_DO = "Nothing to be done"
GRACEFUL = "Will exit after finishing currently running jobs"
RESTART = "Trying to restart job"
# Said beside the event of a failed job, which is told with its log.
REPEATED = ("Exiting because a job execution failed", "WorkflowError:\nAt least one job did not complete successfully")
# What to do about a lock, by the state of its holder.
WAIT = {
    "alive": "  Wait for it, or stop it with Ctrl-C where it was started.",
    "jobs": "  Wait until they have ended, or end them with kill.",
}


@dataclass(frozen=True)
class Run:
    """The folder of a run, results/<run>, and the commands that are told: to go on, to unlock, to try next."""

    results: Path
    again: str
    unlock: str
    after: str = ""

    @property
    def folder(self) -> Path:
        """Where Snakemake works."""
        return self.results.parents[1]

    def short(self, path: Path) -> str:
        """A path of the run for people who are in that folder."""
        return str(path.relative_to(self.folder))

    @property
    def page(self) -> Path:
        return self.results / "report" / "index.html"

    @property
    def log(self) -> Path:
        return self.results / "logs" / "snakemake.log"


class Story:
    """Told on a screen; the early look goes along."""

    def __init__(self, run: Run, screen: Screen, early: EarlyLook, clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.screen, self.early, self.clock = run, screen, early, clock
        self.started = clock()
        self.tally = Tally()
        self.jobs: dict[int, tuple[str, str]] = {}
        self.failed: set[int] = set()
        self.errors = self.interrupted = self.nothing = False

    def plan(self, jobs: Mapping[str, int]) -> None:
        """The run is planned: jobs by rule."""
        self.tally.plan(jobs)
        many = plural(self.tally.counts[1], "job")
        self.screen.say(f"{self.run.results.name}: {many}. Ctrl-C stops the run; to continue: {self.run.again}")
        if self.tally.planned.keys() & (ITEMS | FINAL):
            self.screen.say(f"Look meanwhile: {self.run.page.as_uri()} (reload it now and then)")
        self.screen.say(f"Snakemake's log: {self.run.short(self.run.log)}")

    def start(self, job: int, rule: str, wildcards: Mapping[str, str]) -> None:
        """A job is started or submitted."""
        # The first page, as soon as the run has written its config.
        if not self.jobs and self.tally.planned.keys() & ITEMS:
            self.early.want()
        self.jobs[job] = rule, job_words(rule, wildcards)
        self.tally.start(job, rule, self.clock())
        if rule in FINAL:
            self.early.close()

    def finish(self, job: int) -> None:
        """A job is done."""
        self.tally.finish(job, self.clock())
        self.failed.discard(job)
        if self.jobs.get(job, ("",))[0] in ITEMS:
            self.early.want()
        if self.tally.running:  # else the next job is about to start, and the line that a second brings can name it
            self.show()

    def fail(self, job: int, rule: str, outputs: Iterable[str], logs: Iterable[str]) -> None:
        """A job has failed. One that an interrupt has ended has not."""
        self.tally.running.pop(job, None)  # it may come again
        if self.interrupted:
            return
        self.failed.add(job)
        # Read first: a job that is started again writes its log anew.
        ends = {log: tail(Path(log)) for log in logs}
        from crossalign.progress.outcome import needed_for  # slow to load

        self.screen.say(f"Failed: {self.jobs.get(job, (rule, rule))[1]} (rule {rule})", RED)
        if items := needed_for(self.run.results / "config.json", set(outputs)):
            self.screen.say(f"  needed for {items}")
        for log, end in ends.items():
            self.screen.say(f"  {log}:" if end else f"  nothing in {log}")
            for line in end:
                self.screen.say(f"    {line}")

    def error(self, kind: str, text: str) -> None:
        """Snakemake tells an error; `kind` is the name of its exception."""
        self.errors = True
        if kind == "LockException":
            self._locked()
        elif kind == "KeyboardInterrupt":
            self.interrupted = True
        elif not (self.interrupted or text.startswith(REPEATED) or "\nCalledProcessError in file" in text):
            self.screen.say(text.rstrip(), RED)

    def sentence(self, text: str, serious: bool) -> None:
        """Whatever else Snakemake says."""
        if text.startswith(NOTHING_TO_DO):
            self.nothing = True
        elif self.interrupted:
            return
        elif text.startswith(GRACEFUL):
            self.interrupted = True
            self.screen.say("The run stops when the running jobs are done.")
        elif text.startswith(RESTART):
            self.screen.say("  It is started again.")
        elif serious and not text.startswith(REPEATED):
            self.screen.say(text.rstrip())

    def tick(self) -> None:
        """Called every second."""
        self.early.tick()
        self.show()

    def show(self) -> None:
        """The progress line."""
        if self.interrupted:
            self.screen.show(f"stopping, {plural(len(self.tally.running), 'job')} still running")
            return
        text = "choosing the next jobs" if self.tally.planned else "planning the run"
        if running := list(self.tally.running):
            # The job that was started last, and how many others are running.
            text = self.jobs[running[-1]][1] + (f", and {len(running) - 1} more" if len(running) > 1 else "")
        done, total = self.tally.counts
        if total and done == total:
            text = f"{done} of {total}: ending the run"
        elif total:
            text = f"{done} of {total}, {time_left(self.tally.left(self.clock()))}: {text}"
        page = self.run.short(self.run.page) if total and self.run.page.is_file() else ""
        self.screen.show(text, done, total, page)

    def _locked(self) -> None:
        verdict = holders.judge(self.run.folder)
        self.screen.say(verdict.told or "The folder is locked.", RED)
        if verdict.state in WAIT:
            self.screen.say(WAIT[verdict.state])
        else:
            self.screen.say("  If that run is no longer alive, unlock the folder before you try again:")
            self.screen.say(f"  {self.run.unlock}")

    def end(self) -> None:
        """The last words, however the run has ended."""
        done, total = self.tally.counts
        took = duration(self.clock() - self.started)
        self.screen.clear()
        if self.interrupted:
            self.early.close()
            self.screen.say(f"Stopped after {took}. Of {total} jobs {done} are done and stay done.")
            self.screen.say(f"Continue: {self.run.again}")
            return
        self._last_page()
        if self.failed or self.errors or not (self.nothing or (total and done == total)):
            if self.failed:
                told = f"{len(self.failed)} of {total} jobs failed after {took}; {done} are done and stay done."
                self.screen.say(told, RED)
            self.screen.say(f"Snakemake's log: {self.run.short(self.run.log)}")
            self.screen.say(f"Try again: {self.run.again}")
            return
        self.screen.say("Nothing is left to do." if self.nothing else f"Done in {took}: {plural(total, 'job')}.", GREEN)
        self._outcome()

    def _last_page(self) -> None:
        """A run that does not end with its own page gets an early one, if it has made something for it."""
        if not self.early.closed and any(self.tally.done[rule] for rule in ITEMS):
            self.screen.show("writing the page as far as it goes")
            self.early.finish()
            self.screen.clear()

    def _outcome(self) -> None:
        if self.run.page.is_file():
            self.screen.say(f"Page:     {self.run.page.as_uri()}")
        if self.nothing or "make_report" in self.tally.planned:
            from crossalign.progress.outcome import summary  # slow to load

            try:
                for line in summary(self.run.results):
                    self.screen.say_wrapped(line, indent=len("Did not:  "))
            except UserError as error:  # claims of another version of this workflow, for instance
                self.screen.say(str(error), RED)
        if self.run.after:
            self.screen.say(f"Next:     {self.run.after}")


def tail(log: Path, lines: int = 12) -> list[str]:
    """The last lines of a log that are not empty."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - 64_000))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip()[:300] for line in text.splitlines() if line.strip()][-lines:]
