"""The progress line: how far, how long still, cut to the terminal, and plain where there is none."""

import io
import os
import pty
import select
import struct
import termios
from fcntl import ioctl

import pytest

from crossalign.progress.estimate import USUAL, Tally, duration, time_left
from crossalign.progress.screen import Screen, State, bar, fit, line


class Clock:
    """Time that passes when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def tally(**planned):
    made = Tally()
    made.plan(planned | {"total": sum(planned.values())})
    return made


def run(jobs, rule, numbers, start, seconds):
    for number in numbers:
        jobs.start(number, rule, start)
        jobs.finish(number, start + seconds)


def test_nothing_is_guessed_before_a_job_has_finished():
    jobs = tally(finetune=4)
    assert jobs.left(0.0) is None
    jobs.start(1, "finetune", 0.0)
    assert jobs.left(5.0) is None


def test_two_jobs_side_by_side_halve_the_time():
    jobs = tally(finetune=10)
    run(jobs, "finetune", (1, 2), 0.0, 10.0)  # 20 seconds of work in 10
    assert jobs.counts == (2, 10)
    assert jobs.left(10.0) == pytest.approx(8 * 10 / 2)


def test_what_running_jobs_have_behind_them_is_not_left():
    jobs = tally(finetune=4)
    run(jobs, "finetune", (1, 2), 0.0, 10.0)
    jobs.start(3, "finetune", 10.0)
    jobs.start(4, "finetune", 10.0)
    # Of 20 seconds of work 8 are done; two at a time.
    assert jobs.left(14.0) == pytest.approx(12 / 2)
    # One that takes longer than its rule's others is as good as done, not more.
    assert jobs.left(1000.0) == 0.0


def test_rules_count_by_their_own_seconds():
    jobs = tally(prepare=2, finetune=3)
    run(jobs, "prepare", (1, 2), 0.0, 1.0)
    run(jobs, "finetune", (3,), 1.0, 9.0)
    # Eleven seconds of work in ten.
    assert jobs.left(10.0) == pytest.approx(2 * 9 / 1.1)


def test_rules_that_were_not_seen_count_in_proportion():
    jobs = tally(finetune=10, evaluate=10)
    run(jobs, "finetune", (1,), 0.0, 2 * USUAL["finetune"])  # twice as slow as usual
    assert jobs.left(2.0 * USUAL["finetune"]) == pytest.approx(9 * 2 * USUAL["finetune"] + 10 * 2 * USUAL["evaluate"])


def test_nothing_is_guessed_before_most_of_the_work_is_known():
    jobs = tally(prepare=30, finetune=20)
    run(jobs, "prepare", range(30), 0.0, 1.0)
    assert jobs.left(5.0) is None
    run(jobs, "finetune", [30], 5.0, 10.0)
    assert jobs.left(15.0) is not None


def test_a_failed_job_is_not_done_and_may_come_again():
    jobs = tally(finetune=2)
    jobs.start(1, "finetune", 0.0)
    jobs.fail(1)
    assert jobs.counts == (0, 2) and not jobs.running
    run(jobs, "finetune", (1,), 1.0, 1.0)
    assert jobs.counts == (1, 2)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (62, "62 seconds"),
        (240, "4 minutes"),
        (5000, "83 minutes"),
        (4 * 3600, "4 hours"),
        (2.6e5, "3 days"),
    ],
)
def test_durations_are_for_people(seconds, words):
    assert duration(seconds) == words


def test_time_left_is_never_exact():
    assert time_left(None) == "time left not known yet"
    assert time_left(20) == "less than a minute left"
    assert time_left(50) == "about 60 seconds left"
    assert time_left(245) == "about 4 minutes left"


def test_the_bar_fills():
    assert bar(0, 10, 5, "#", "-") == "-----"
    assert bar(5, 10, 4, "#", "-") == "##--"
    assert bar(10, 10, 5, "#", "-") == "#####"
    assert bar(0, 0, 3, "#", "-") == "---"


def test_a_text_is_cut_with_a_mark():
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdefg", 6) == "abcde…"


def test_the_line_says_how_far_and_what():
    state = State(312, 890, 240, "fine-tuning POS on Russian")
    assert line(state) == "312 of 890, about 4 minutes left: fine-tuning POS on Russian"
    assert line(State(0, 0, None, "planning the run")) == "planning the run"


def test_without_a_terminal_a_line_each_minute_and_at_each_tenth():
    stream, clock = io.StringIO(), Clock()
    screen = Screen(stream, clock)
    for second in range(125):
        clock.now = second
        screen.show(State(3, 100, None, "x"))
    # After one minute and after two.
    assert len(stream.getvalue().splitlines()) == 2
    for done in range(3, 31):
        screen.show(State(done, 100, None, "x", "results/demo/report/index.html"))
    lines = stream.getvalue().splitlines()[2:]
    assert [text.split()[0] for text in lines] == ["10", "20", "30"]
    assert all(text.endswith("(page: results/demo/report/index.html)") for text in lines)
    assert "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()


class Terminal:
    """A terminal of so many columns, and what was written to it."""

    def __init__(self, columns):
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding="utf-8")

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


STATE = State(
    312, 890, 240, "fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)", "results/demo/report/index.html"
)


@pytest.mark.parametrize("columns", [20, 41, 80, 100, 200])
def test_the_line_fits_the_terminal(columns, coloured, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(columns)
    Screen(terminal.stream, Clock()).show(STATE)
    drawn = terminal.text().removeprefix("\r\x1b[K")
    assert len(drawn) < columns and "\n" not in drawn
    assert drawn.lstrip("█░ ").startswith("312 of 890"[: columns - 2])
    # Where to look is on the line if there is room.
    assert ("results/demo/report/index.html" in drawn) == (columns == 200)


def test_colour_only_where_it_is_wanted(coloured, monkeypatch):
    terminal = Terminal(80)
    Screen(terminal.stream, Clock()).show(STATE)
    assert "\x1b[32m" in terminal.text()
    for colour, variable in ((False, ""), (True, "1")):
        monkeypatch.setenv("NO_COLOR", variable)
        Screen(terminal.stream, Clock(), colour=colour).show(STATE)
        assert "\x1b[32m" not in terminal.text()


def test_what_stays_replaces_the_line(coloured):
    terminal = Terminal(80)
    screen = Screen(terminal.stream, Clock(), colour=False)
    screen.show(STATE)
    terminal.text()
    screen.say("Failed: something")
    assert terminal.text() == "\r\x1b[KFailed: something\r\n"
    # Nothing to take away any more.
    screen.clear()
    screen.say("done")
    assert terminal.text() == "done\r\n"


def test_long_texts_are_broken_between_words_on_a_terminal_only(coloured):
    terminal = Terminal(20)
    Screen(terminal.stream, Clock()).say_wrapped("Why:  one two three four", indent=6)
    assert terminal.text() == "Why:  one two three\r\n      four\r\n"
    stream = io.StringIO()
    Screen(stream, Clock()).say_wrapped("Why:  one two three four" * 20, indent=6)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal(80)
    screen = Screen(terminal.stream, Clock())
    screen.show(State(9, 10, None, "x"))
    assert terminal.text() == "9 of 10, time left not known yet: x\r\n"


def test_a_terminal_that_has_gone_ends_nothing(coloured):
    terminal = Terminal(80)
    screen = Screen(terminal.stream, Clock())
    os.close(terminal.master)
    screen.show(STATE)
    screen.say("still here")


def test_letters_that_the_terminal_lacks_are_not_used(coloured):
    terminal = Terminal(80)
    stream = os.fdopen(os.dup(terminal.stream.fileno()), "w", encoding="ascii", errors="replace")
    Screen(stream, Clock(), colour=False).show(State(5, 10, None, "x"))
    assert terminal.text().startswith("\r\x1b[K###---- 5 of 10")
