"""The progress line: how far, how long still, cut to the terminal, and plain where there is none."""

import io
import os
import pty
import select
import struct
import termios
from fcntl import ioctl
from types import SimpleNamespace

import pytest

from crossalign.progress.line import USUAL, Screen, Tally, duration, time_left

TEXT = "312 of 890, about 4 minutes left: fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)"
STATE = (TEXT, 312, 890, "results/demo/report/index.html")


def tally(**planned):
    made = Tally()
    made.plan(planned | {"total": sum(planned.values())})
    return made


def run(jobs, rule, numbers, start, seconds):
    for number in numbers:
        jobs.start(number, rule, start)
        jobs.finish(number, start + seconds)


def test_nothing_is_guessed_before_most_of_the_work_is_known():
    jobs = tally(finetune=4)
    assert jobs.left(0.0) is None
    jobs.start(1, "finetune", 0.0)
    assert jobs.left(5.0) is None
    jobs = tally(prepare=30, finetune=20)
    run(jobs, "prepare", range(30), 0.0, 1.0)
    assert jobs.left(5.0) is None
    run(jobs, "finetune", [30], 5.0, 10.0)
    assert jobs.left(15.0) is not None


def test_jobs_side_by_side_share_the_time_and_what_they_have_behind_them_is_not_left():
    jobs = tally(finetune=10)
    run(jobs, "finetune", (1, 2), 0.0, 10.0)  # 20 seconds of work in 10
    assert jobs.counts == (2, 10)
    assert jobs.left(10.0) == pytest.approx(8 * 10 / 2)
    jobs = tally(finetune=4)
    run(jobs, "finetune", (1, 2), 0.0, 10.0)
    jobs.start(3, "finetune", 10.0)
    jobs.start(4, "finetune", 10.0)
    # Of 20 seconds of work 8 are done; two at a time.
    assert jobs.left(14.0) == pytest.approx(12 / 2)
    # One that takes longer than its rule's others is as good as done, not more.
    assert jobs.left(1000.0) == 0.0


def test_rules_count_by_their_own_seconds_and_unseen_ones_in_proportion():
    jobs = tally(prepare=2, finetune=3)
    run(jobs, "prepare", (1, 2), 0.0, 1.0)
    run(jobs, "finetune", (3,), 1.0, 9.0)
    # Eleven seconds of work in ten.
    assert jobs.left(10.0) == pytest.approx(2 * 9 / 1.1)
    jobs = tally(finetune=10, evaluate=10)
    run(jobs, "finetune", (1,), 0.0, 2 * USUAL["finetune"])  # twice as slow as usual
    assert jobs.left(2.0 * USUAL["finetune"]) == pytest.approx(9 * 2 * USUAL["finetune"] + 10 * 2 * USUAL["evaluate"])


def test_times_are_for_people_and_never_exact():
    times = {1: "1 second", 62: "62 seconds", 240: "4 minutes", 5000: "83 minutes", 14400: "4 hours", 2.6e5: "3 days"}
    assert {seconds: duration(seconds) for seconds in times} == times
    assert list(map(time_left, (None, 20, 50, 245))) == [
        "time left not known yet",
        "less than a minute left",
        "about 60 seconds left",
        "about 4 minutes left",
    ]


def test_without_a_terminal_a_line_each_minute_and_at_each_tenth():
    stream, clock = io.StringIO(), SimpleNamespace(now=0.0)
    screen = Screen(stream, lambda: clock.now)
    for second in range(125):
        clock.now = second
        screen.show("3 of 100", 3, 100)
    # After one minute and after two.
    assert len(stream.getvalue().splitlines()) == 2
    for done in range(3, 31):
        screen.show(f"{done} of 100", done, 100, "results/demo/report/index.html")
    lines = stream.getvalue().splitlines()[2:]
    assert lines == [f"{done} of 100 (page: results/demo/report/index.html)" for done in (10, 20, 30)]
    screen.say_wrapped("one two three four " * 20, indent=6)
    assert len(stream.getvalue().splitlines()) == 6
    assert "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()


class Terminal:
    """A terminal of so many columns, and what was written to it."""

    def __init__(self, columns=80, **options):
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding=options.pop("encoding", "utf-8"), errors="replace")
        self.screen = Screen(self.stream, lambda: 0.0, **options)

    def text(self):
        """All of it: a terminal may hand over in pieces what was written in one go."""
        self.stream.flush()
        parts = [os.read(self.master, 65536)]
        while select.select([self.master], [], [], 0.2)[0]:
            parts.append(os.read(self.master, 65536))
        return b"".join(parts).decode()


@pytest.fixture
def coloured(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("columns", [20, 41, 80, 100, 200])
def test_the_line_fits_the_terminal(columns, coloured, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(columns)
    terminal.screen.show(*STATE)
    drawn = terminal.text().removeprefix("\r\x1b[K")
    assert len(drawn) < columns and "\n" not in drawn
    assert drawn.lstrip("█░ ").startswith("312 of 890"[: columns - 2])
    assert drawn.count("█") == min(20, (columns - 1) // 10) * 312 // 890 * (columns > 41)
    # Where to look is on the line if there is room, and what does not fit ends with a mark.
    assert drawn.endswith("results/demo/report/index.html" if columns == 200 else "…")


def test_colour_only_where_it_is_wanted(coloured, monkeypatch):
    for colour, variable, wanted in ((True, "", True), (False, "", False), (True, "1", False)):
        monkeypatch.setenv("NO_COLOR", variable)
        terminal = Terminal(colour=colour)
        terminal.screen.show(*STATE)
        assert ("\x1b[32m" in terminal.text()) == wanted


def test_what_stays_replaces_the_line_and_is_broken_between_words(coloured):
    terminal = Terminal(20, colour=False)
    terminal.screen.show(*STATE)
    terminal.text()
    terminal.screen.say("Failed: something")
    assert terminal.text() == "\r\x1b[KFailed: something\r\n"
    # Nothing to take away any more.
    terminal.screen.clear()
    terminal.screen.say_wrapped("Why:  one two three four", indent=6)
    assert terminal.text() == "Why:  one two three\r\n      four\r\n"


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    terminal.screen.show("9 of 10", 9, 10)
    assert terminal.text() == "9 of 10\r\n"


def test_letters_that_the_terminal_lacks_are_not_used(coloured):
    terminal = Terminal(encoding="ascii", colour=False)
    terminal.screen.show("5 of 10", 5, 10)
    assert terminal.text() == "\r\x1b[K###---- 5 of 10"


def test_a_terminal_that_has_gone_ends_nothing(coloured):
    terminal = Terminal()
    os.close(terminal.master)
    terminal.screen.show(*STATE)
    terminal.screen.say("still here")
