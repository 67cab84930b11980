"""Whose lock a run finds, signals, timers and stages."""

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from crossalign.runtime import holders
from crossalign.runtime.workarounds import LOCKS, beside, locked_files, note_lock, remove_dead_lock, use_one_timer


@pytest.fixture
def folder(tmp_path):
    """A folder with a lock as Snakemake leaves it."""
    if not holders.PROC.is_dir():
        pytest.skip("processes are looked up in /proc")
    (tmp_path / LOCKS).mkdir(parents=True)
    for kind in ("input", "output"):
        (tmp_path / LOCKS / f"0.{kind}.lock").write_text("results/x\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def alive():
    """A process that lives as long as the test, unless it is killed."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def note(folder, pid, name="run", **changes):
    text = holders.this_process() | {"pid": pid, "born": holders.born(pid)} | changes
    (folder / LOCKS / f"{name}.json").write_text(json.dumps(text), encoding="utf-8")


def test_a_lock_goes_when_its_process_is_dead(folder, alive):
    note(folder, alive.pid)
    assert not remove_dead_lock(folder) and locked_files(folder) == ["results/x"]
    alive.kill()
    deadline = time.monotonic() + 30
    # A zombie is dead.
    while not (told := remove_dead_lock(folder)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert f"process {alive.pid} on" in told and not list((folder / LOCKS).iterdir())


def test_another_process_of_the_same_number_is_not_the_run(folder, alive):
    note(folder, alive.pid, born="another boot 1")
    assert remove_dead_lock(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"place": ["login2", *holders.here()[1:]]},
        {"place": [*holders.here()[:1], "pid:[1]", *holders.here()[2:]]},
        {"place": [*holders.here()[:2], "4242"]},
        {"born": ""},
        None,
    ],
    ids=["another host", "another container", "another user", "a system without /proc", "a broken note"],
)
def test_what_cannot_be_known_stays(folder, changes):
    note(folder, 0, "first", born="gone")
    note(folder, 0, born="gone")
    if changes is None:
        (folder / LOCKS / "run.json").write_text("{")
    else:
        note(folder, 0, **({"born": "gone"} | changes))
    assert not remove_dead_lock(folder) and len(list((folder / LOCKS).iterdir())) == 4


def test_a_lock_without_a_note_stays(folder):
    assert not remove_dead_lock(folder) and locked_files(folder)
    # Also if it was made after a dead run's: that run's goes.
    note(folder, 0, born="gone")
    last = (folder / LOCKS / "run.json").stat().st_mtime_ns
    later = folder / LOCKS / "1.output.lock"
    later.touch()
    os.utime(later, ns=(last + 1, last + 1))
    assert remove_dead_lock(folder) and list((folder / LOCKS).iterdir()) == [later]


def test_a_run_notes_itself_only_where_it_has_a_lock(folder, tmp_path_factory):
    free = tmp_path_factory.mktemp("free")
    note_lock(free)
    assert not list(free.iterdir()) and not remove_dead_lock(free)
    note_lock(folder)
    (file,) = (folder / LOCKS).glob("*.json")
    assert holders.state(json.loads(file.read_text())) == "alive"


def test_a_handler_may_want_a_lock_that_is_held():
    lock, done, told = threading.Lock(), threading.Event(), []

    def handle(number, _):
        # A plain handler would wait here for ever; the time makes that a failure.
        if lock.acquire(timeout=5):
            told.append(number)
            lock.release()
        done.set()

    previous = signal.signal(signal.SIGUSR1, beside(handle))
    try:
        with lock:
            os.kill(os.getpid(), signal.SIGUSR1)
        assert done.wait(10)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert told == [signal.SIGUSR1]


def test_many_wishes_are_one_call_which_may_ask_for_the_next():
    """As a scheduler does that looks for work again and again."""
    calls, done = [], threading.Event()

    def look():
        calls.append(time.monotonic())
        if len(calls) < 3:
            wish(0.01)
        else:
            done.set()

    scheduler = SimpleNamespace(_open_jobs=SimpleNamespace(release=look))
    use_one_timer(scheduler, print)
    wish = scheduler._schedule_reevalutation
    begin = time.monotonic()
    for _ in range(100):
        wish(0.2)
    assert sum(isinstance(thread, threading.Timer) for thread in threading.enumerate()) <= 1
    assert done.wait(5) and calls[0] - begin >= 0.2 and len(calls) == 3


def test_snakemake_has_what_is_replaced():
    """crossalign/runtime/workarounds.py; where it is gone or renamed, so may the fault be."""
    from snakemake.scheduling import job_scheduler

    # The text of the file: a plan that was made in this process has replaced the methods.
    source = inspect.getsource(job_scheduler)
    assert "with self._lock:" in source.partition("def exit_gracefully")[2].partition("def ")[0]
    assert "self._open_jobs.release" in source.partition("def _schedule_reevalutation")[2].partition("def ")[0]


@pytest.mark.parametrize("words", [[], ["DEMO_ARGS=--cores 1"], ["DEMO_ARGS=--config seeds=[1]", "TARGETS=anc talk"]])
def test_options_of_the_demo_do_not_swallow_its_targets(root, words):
    from snakemake.cli import parse_args

    made = ["make", "--dry-run", "--assume-old", ".venv/installed", "demo", *words]
    printed = subprocess.run(made, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    command = next(line for line in printed if "snakemake" in line)
    given = parse_args(command.partition("--logger crossalign ")[2].split())[1]
    assert set(given.targets) == ({"anc", "talk"} if words[1:] else {"all"})
