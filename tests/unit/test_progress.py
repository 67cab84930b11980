"""The progress line: what is left, and how it is drawn on terminals and elsewhere."""

import io
import os
import pty
import select
import struct
import termios
from fcntl import ioctl
from types import SimpleNamespace

import pytest

from crossalign.progress.handler import last_line
from crossalign.progress.line import Screen, Tally

TEXT = "312 of 890 jobs, about 4 minutes left: embed_sentences, evaluate, finetune"


def tally(**planned):
    made = Tally()
    made.plan(planned | {"total": sum(planned.values())})
    return made


def run(jobs, rule, numbers, start, seconds):
    for number in numbers:
        jobs.start(number, rule, start)
        jobs.finish(number, start + seconds)


def test_nothing_is_guessed_before_most_of_the_work_is_known():
    jobs = tally(prepare=20, finetune=30)
    jobs.start(0, "prepare", 0.0)
    assert jobs.left(5.0) is None
    run(jobs, "prepare", range(20), 0.0, 1.0)
    assert jobs.left(5.0) is None and jobs.told(5.0) == "20 of 50 jobs"
    run(jobs, "finetune", [30], 5.0, 10.0)
    assert jobs.left(15.0) is not None


def test_jobs_side_by_side_share_the_time_and_what_they_have_behind_them_is_not_left():
    jobs = tally(finetune=4)
    run(jobs, "finetune", (1, 2), 0.0, 10.0)
    jobs.start(3, "finetune", 10.0)
    jobs.start(4, "finetune", 10.0)
    # Of 20 seconds of work 8 are done; two at a time.
    assert jobs.left(14.0) == pytest.approx(12 / 2)
    assert jobs.told(14.0) == "2 of 4 jobs, about 60 seconds left: finetune"
    # One that takes longer than its rule's others is as good as done, not more.
    assert jobs.left(1000.0) == 0.0
    for job in (3, 4):
        jobs.finish(job, 20.0)
    assert jobs.told(20.0) == "4 of 4 jobs"


def test_rules_count_by_their_own_seconds_and_unseen_ones_by_the_mean():
    jobs = tally(prepare=2, finetune=3)
    run(jobs, "prepare", (1, 2), 0.0, 1.0)
    run(jobs, "finetune", (3,), 1.0, 9.0)
    # Eleven seconds of work in ten.
    assert jobs.left(10.0) == pytest.approx(2 * 9 / 1.1)
    jobs = tally(finetune=10, evaluate=10)
    run(jobs, "finetune", (1,), 0.0, 7.0)
    assert jobs.left(7.0) == pytest.approx((9 + 10) * 7.0)


def test_without_a_terminal_a_line_each_minute_and_at_each_tenth():
    stream, clock = io.StringIO(), SimpleNamespace(now=0.0)
    screen = Screen(stream, lambda: clock.now)
    for second in range(125):
        clock.now = second
        screen.show("3 of 100", 3, 100)
    # After one minute and after two.
    assert len(stream.getvalue().splitlines()) == 2
    for done in range(3, 31):
        screen.show(f"{done} of 100", done, 100)
    screen.say("Failed: something")
    assert stream.getvalue().splitlines()[2:] == ["10 of 100", "20 of 100", "30 of 100", "Failed: something"]


@pytest.mark.parametrize("columns", [20, 200])
def test_the_line_fits_the_terminal_and_what_stays_takes_its_place(columns, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    screen = Screen(os.fdopen(slave, "w"), lambda: 0.0)
    screen.show(TEXT, 312, 890)
    screen.say("Failed: something")
    heard = b""
    while select.select([master], [], [], 0.2)[0]:
        heard += os.read(master, 65536)
    assert heard.decode() == f"\r\x1b[K{TEXT[: columns - 1]}\r\x1b[KFailed: something\r\n"
    # A terminal that has gone ends nothing.
    os.close(master)
    screen.say("still here")


def test_the_last_words_of_a_log(tmp_path):
    log = tmp_path / "long.log"
    log.write_bytes(b"\xff bad\n" + b"".join(b"line %d\n\n" % number for number in range(100_000)))
    assert last_line(log) == "line 99999"
    log.write_text("x" * 1000, encoding="utf-8")
    assert last_line(log) == "x" * 300
    assert last_line(tmp_path / "none.log") == ""
