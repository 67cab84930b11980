"""Whose lock it is: a dead run's is removed, and nothing else ever is."""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace

import pytest

from crossalign.runtime import holders
from crossalign.runtime.holders import LOCKS, LOGS, NOTES, TOKEN, enter, judge, leave, start_ticks, this_process

pytestmark = pytest.mark.skipif(not holders.PROC.is_dir(), reason="processes are looked up in /proc")
SLEEP = ("-c", "import time; time.sleep(600)")
# The first locks again at once, as Snakemake would, and stays.
ENTERS = """
import sys, time
from pathlib import Path
from crossalign.runtime.holders import LOCKS, enter
folder = Path(sys.argv[1])
found = enter(folder)[1]
if found.state == "dead":
    (folder / LOCKS / "0.output.lock").write_text("mine")
print(found.state, flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a lock as Snakemake leaves it."""
    (tmp_path / LOCKS).mkdir(parents=True)
    for kind in ("input", "output"):
        (tmp_path / LOCKS / f"0.{kind}.lock").write_text("results/x\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def start():
    """Starts programs of Python, and leaves none behind."""
    started = []

    def begin(*command, **options):
        started.append(subprocess.Popen([sys.executable, *command], start_new_session=True, **options))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def dead(start):
    """The number of a process that has gone."""
    process = start("-c", "pass")
    process.wait()
    return process.pid


@pytest.fixture
def alive(start):
    """A process that lives as long as the test."""
    return start(*SLEEP).pid


def locked(folder):
    return any((folder / LOCKS).glob("*.lock"))


def log(folder, host, when="2020-01-01T000000.000000"):
    (folder / LOGS).mkdir(parents=True, exist_ok=True)
    text = f"\nSNAKEMAKE\n=========\n  Date: 2020-01-01\n  Host: {host}\n  User: somebody\n"
    (folder / LOGS / f"{when}.snakemake.log").write_text(text, encoding="utf-8")


def note(folder, pid, ticks="1", **changes):
    holder = replace(this_process(), pid=pid, ticks=ticks, **changes)
    (folder / NOTES).mkdir(parents=True, exist_ok=True)
    (folder / holder.file).write_text(json.dumps(asdict(holder)), encoding="utf-8")
    return holder


def test_no_lock_no_question(tmp_path, alive):
    note(tmp_path, alive, start_ticks(alive))
    assert judge(tmp_path).state == "free"


def test_the_lock_of_a_dead_run_goes(folder, dead):
    gone = note(folder, dead)
    mine, found = enter(folder)
    assert found.state == "dead" and str(dead) in found.told
    assert not locked(folder) and not (folder / gone.file).exists() and (folder / mine.file).exists()
    leave(folder)
    assert not list((folder / NOTES).glob("*.json"))


def test_the_lock_of_a_run_that_is_alive_stays(folder, alive):
    other = note(folder, alive, start_ticks(alive))
    _, found = enter(folder)
    assert found.state == "alive" and f"process {alive}" in found.told
    assert locked(folder) and (folder / other.file).exists()


def test_another_process_of_the_same_number_is_not_the_run(folder, alive):
    note(folder, alive, "1")
    assert judge(folder).state == "dead"
    # Nor is one of the same number and start before the last boot.
    note(folder, alive, start_ticks(alive), boot="another")
    assert judge(folder).state == "dead"


@pytest.mark.parametrize(
    "changes",
    [{"host": "login2"}, {"machine": "another"}, {"space": "pid:[1]"}],
    ids=["another host", "another machine of the same name", "another container"],
)
def test_what_cannot_be_seen_from_here_stays(folder, dead, changes):
    # A dead run of this host does not explain the lock either.
    note(folder, dead + 1)
    other = note(folder, dead, **changes)
    _, found = enter(folder)
    assert found.state == "unknown" and str(dead) in found.told
    assert locked(folder) and (folder / other.file).exists()


def test_another_users_run_stays(folder, dead, monkeypatch):
    holder = note(folder, dead)
    log(folder, this_process().host)
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert judge(folder).state == "unknown"
    # Also if nothing but the lock tells the user.
    (folder / holder.file).unlink()
    found = judge(folder)
    assert found.state == "unknown" and "another user" in found.told


def test_jobs_that_have_outlived_their_run_keep_the_lock(folder, dead, start):
    holder = note(folder, dead, token="a-token-of-its-own")
    job = start(*SLEEP, env=os.environ | {TOKEN: holder.token})
    begun = time.monotonic()
    _, found = enter(folder, patience=0.5)
    assert found.state == "jobs" and f"process {job.pid}" in found.told and locked(folder)
    assert time.monotonic() - begun >= 0.5
    # It goes while the next run waits for it.
    threading.Timer(0.5, lambda: (job.kill(), job.wait())).start()
    assert judge(folder, patience=30).state == "dead"


def test_jobs_that_were_sent_to_slurm_are_left_to_the_start_of_the_run(folder, dead, start):
    holder = note(folder, dead, token="another-token")
    start(*SLEEP, env=os.environ | {TOKEN: holder.token, "SLURM_JOB_ID": "17"})
    assert judge(folder).state == "dead"
    # But not what runs beside it in one allocation.
    note(folder, dead, token="another-token", allocation="17")
    assert judge(folder).state == "jobs"


def test_a_lock_without_a_note_goes_if_its_log_is_of_this_host(folder):
    assert enter(folder)[1].state == "unknown" and locked(folder), "nothing is known of it"
    log(folder, this_process().host)
    assert judge(folder).state == "dead"
    # A later log is not the lock's.
    log(folder, "login2", when="2999-01-01T000000.000000")
    assert judge(folder).state == "dead"


def test_a_lock_without_a_note_stays_if_its_log_is_of_another_host(folder, dead):
    log(folder, "login2")
    found = judge(folder)
    assert found.state == "unknown" and "login2" in found.told
    note(folder, dead)
    assert judge(folder).state == "unknown"


def test_a_plain_snakemake_in_the_folder_keeps_the_lock(folder, dead, start):
    log(folder, this_process().host)
    note(folder, dead)
    program = folder / "bin" / "snakemake"
    program.parent.mkdir()
    program.write_text("import time; print('here', flush=True); time.sleep(600)\n", encoding="utf-8")
    for options, state in (([], "alive"), (["--mode", "remote"], "dead")):
        process = start(str(program), *options, cwd=folder, stdout=subprocess.PIPE)
        process.stdout.readline()
        assert judge(folder).state == state
        assert judge(folder).told.count(str(process.pid)) == (state == "alive")
        process.kill()
        process.wait()


def refuse(stream, how):
    raise OSError("no locks available")


@pytest.mark.parametrize("lacking", ["a note that can be read", "processes", "locks of the file system"])
def test_where_something_cannot_be_known_nothing_is_removed(folder, dead, monkeypatch, lacking):
    note(folder, dead)
    if lacking == "processes":
        monkeypatch.setattr(holders, "PROC", folder / "none")
    elif lacking == "locks of the file system":
        monkeypatch.setattr(holders.fcntl, "flock", refuse)
    else:
        (folder / NOTES / "broken.json").write_text("{", encoding="utf-8")
    assert enter(folder)[1].state == "unknown" and locked(folder)


def test_of_two_that_start_at_once_only_one_unlocks(folder, dead, root, start):
    note(folder, dead)
    options = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | {"PYTHONPATH": str(root / "scripts")}}
    both = [start("-c", ENTERS, str(folder), **options) for _ in range(2)]
    states = sorted(process.stdout.readline().strip() for process in both)
    # The second finds no lock yet, or finds its holder alive.
    assert states in (["alive", "dead"], ["dead", "free"])


def test_a_zombie_is_dead(folder, start):
    process = start(*SLEEP)
    note(folder, process.pid, start_ticks(process.pid))
    assert judge(folder).state == "alive"
    process.kill()
    deadline = time.monotonic() + 30
    while judge(folder).state != "dead":
        assert time.monotonic() < deadline
        time.sleep(0.05)
