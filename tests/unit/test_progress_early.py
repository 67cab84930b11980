"""The early look: one maker at a time, not too often, never over the run's own page, and no harm if it fails."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from crossalign.catalog.config import load
from crossalign.progress.early import PAUSE, SHARE, EarlyLook
from crossalign.runtime.holders import TOKEN


@pytest.fixture
def look(tmp_path):
    """Makes a look whose maker has the file `out` to write, and a clock that stands still; wanted and begun."""
    (tmp_path / "report").mkdir()
    draft, page = tmp_path / "report" / ".early.html", tmp_path / "report" / "index.html"
    made = []

    def make(body, begin=True):
        time_now = SimpleNamespace(now=1000.0)
        command = [sys.executable, "-c", f"import os, sys, time; out = sys.argv[1]; {body}", str(draft)]
        early = EarlyLook(command, draft, page, tmp_path / "logs" / "early.log", lambda: time_now.now)
        made.append(early)
        early.time = time_now
        early.tick()
        assert early.process is None, "nothing is new yet"
        if begin:
            early.want()
            early.tick()
        return early

    yield make
    for each in made:
        each.close()


def settle(look):
    """Wait for the maker, and let the look notice."""
    look.process.wait(60)
    look.tick()


def test_a_page_is_made_when_there_is_something_new_but_not_too_often(look):
    early = look("open(out, 'w').write('early')")
    settle(early)
    assert early.page.read_text() == "early" and not early.draft.exists() and early.process is None
    assert early.next == early.time.now + PAUSE


def test_never_two_at_once_and_slow_makers_are_started_less_often(look):
    early = look("open(out, 'w').write(str(os.getpid())); time.sleep(0.2)")
    first = early.process
    early.want()
    early.time.now += 2 * PAUSE
    early.tick()
    assert early.process is first
    settle(early)
    early.tick()
    # It took two pauses by the clock, so the next has to wait for a multiple of that.
    assert early.process is None and early.next == early.time.now + SHARE * 2 * PAUSE
    early.time.now = early.next - 1
    early.tick()
    assert early.process is None
    early.time.now += 1
    early.tick()
    settle(early)
    assert early.page.read_text() != str(first.pid)


def test_a_maker_that_fails_or_cannot_be_started_changes_nothing_but_its_log(look):
    early = look("open(out, 'w').write('half'); sys.exit('no config yet')")
    early.page.write_text("before")
    settle(early)
    assert early.page.read_text() == "before" and "no config yet" in early.log.read_text()
    early = look("pass", begin=False)
    early.command = ["/no/such/program"]
    early.want()
    early.tick()
    assert early.process is None and not early.finish()


def test_after_closing_no_early_page_is_written(look):
    early = look("open(out, 'w').write('early'); time.sleep(600)")
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
    early.process.wait(60)
    early.page.write_text("the run's own")
    early.close()
    early.tick()
    assert early.page.read_text() == "the run's own"


def test_the_last_look_waits_for_the_maker_which_is_no_job_and_of_low_priority(look, monkeypatch):
    monkeypatch.setenv(TOKEN, "secret")
    told = f"os.environ.get('{TOKEN}', 'none') + ' ' + str(os.nice(0))"
    early = look(f"time.sleep(0.2); open(out, 'w').write({told})", begin=False)
    assert early.finish() and early.page.read_text() == "none 19"
    assert os.nice(0) < 19
    assert not look("time.sleep(600)", begin=False).finish(patience=0.1)


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
