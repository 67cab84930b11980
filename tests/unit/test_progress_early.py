"""The early look: one maker at a time, not too often, never over the run's own page, and no harm if it fails."""

import json
import os
import subprocess
import sys
import time

import pytest

from crossalign.catalog.config import load
from crossalign.progress.early import PAUSE, SHARE, EarlyLook
from crossalign.runtime.holders import TOKEN


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def program(body):
    """A maker: `out` is the file that it has to write."""
    return [sys.executable, "-c", f"import os, sys, time; out = sys.argv[1]; {body}"]


@pytest.fixture
def look(tmp_path):
    """Makes a look with a maker of one's own."""
    (tmp_path / "report").mkdir()
    draft, page = tmp_path / "report" / ".early.html", tmp_path / "report" / "index.html"
    made = []

    def make(body):
        made.append(EarlyLook([*program(body), str(draft)], draft, page, tmp_path / "logs" / "early.log", Clock()))
        return made[-1]

    yield make
    for each in made:
        each.close()


def settle(look):
    """Wait for the maker, and let the look notice."""
    look.process.wait(60)
    look.tick()


def test_a_page_is_made_when_there_is_something_new(look):
    early = look("open(out, 'w').write('early')")
    early.tick()
    assert early.process is None
    early.want()
    early.tick()
    settle(early)
    assert early.page.read_text() == "early" and not early.draft.exists() and early.process is None


def test_never_two_at_once_and_never_too_often(look):
    early = look("open(out, 'w').write(str(os.getpid())); time.sleep(0.2)")
    early.want()
    early.tick()
    first = early.process
    early.want()
    early.clock.now += 2 * PAUSE
    early.tick()
    assert early.process is first
    settle(early)
    early.tick()
    # It took two pauses by the clock, so the next has to wait for a multiple of that.
    assert early.process is None and early.next == early.clock.now + SHARE * 2 * PAUSE
    early.clock.now = early.next - 1
    early.tick()
    assert early.process is None
    early.clock.now += 1
    early.tick()
    assert early.process is not None
    settle(early)
    assert early.page.read_text() != str(first.pid)


def test_quick_makers_wait_for_the_pause(look):
    early = look("open(out, 'w').write('x')")
    early.want()
    early.tick()
    settle(early)
    assert early.next == early.clock.now + PAUSE


def test_a_maker_that_fails_changes_nothing_but_its_log(look):
    early = look("open(out, 'w').write('half'); sys.exit('no config yet')")
    early.page.write_text("before")
    early.want()
    early.tick()
    settle(early)
    assert early.page.read_text() == "before" and "no config yet" in early.log.read_text()


def test_a_maker_that_cannot_be_started_disturbs_nothing(look):
    early = look("pass")
    early.command = ["/no/such/program"]
    early.want()
    early.tick()
    assert early.process is None and not early.finish()


def test_after_closing_no_early_page_is_written(look):
    early = look("open(out, 'w').write('early'); time.sleep(600)")
    early.want()
    early.tick()
    while not early.draft.exists():
        time.sleep(0.02)
    maker = early.process
    early.close()
    assert maker.returncode is not None and not early.draft.exists() and not early.page.exists()
    early.want()
    early.tick()
    assert early.process is None and not early.finish() and not early.page.exists()


def test_a_page_that_is_ready_when_the_last_rules_start_is_not_used(look):
    early = look("open(out, 'w').write('early')")
    early.want()
    early.tick()
    early.process.wait(60)
    early.page.write_text("the run's own")
    early.close()
    early.tick()
    assert early.page.read_text() == "the run's own"


def test_the_last_look_waits_for_the_maker(look):
    early = look("time.sleep(0.2); open(out, 'w').write('last')")
    assert early.finish() and early.page.read_text() == "last"
    slow = look("time.sleep(600)")
    assert not slow.finish(patience=0.1)


def test_the_maker_is_no_job_of_the_run_and_of_low_priority(look, monkeypatch):
    monkeypatch.setenv(TOKEN, "secret")
    early = look(f"open(out, 'w').write(os.environ.get('{TOKEN}', 'none') + ' ' + str(os.nice(0)))")
    assert early.finish()
    token, priority = early.page.read_text().split()
    assert token == "none" and int(priority) == 19
    assert os.nice(0) < 19


def test_the_page_of_a_run_that_still_goes_says_so(root, tmp_path):
    results = tmp_path / "results" / "demo"
    results.mkdir(parents=True)
    (results / "config.json").write_text(json.dumps(load([root / "config.demo.yaml"])), encoding="utf-8")
    out, page = results / "report" / ".early.html", results / "report" / "index.html"
    command = [sys.executable, root / "scripts" / "early_look.py", "--results", results, "--out", out, "--page", page]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert "This run is still going." in text and "0 of 48 tables and figures" in text and "Not made yet." in text
    # Verdicts and provenance are the run's own.
    assert sorted(file.name for file in results.rglob("*") if file.is_file()) == [".early.html", "config.json"]
