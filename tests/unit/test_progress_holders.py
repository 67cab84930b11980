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


def lock(folder):
    """A lock as Snakemake leaves it."""
    (folder / LOCKS).mkdir(parents=True, exist_ok=True)
    for kind in ("input", "output"):
        (folder / LOCKS / f"0.{kind}.lock").write_text("results/x\n", encoding="utf-8")


def locked(folder):
    return any((folder / LOCKS).glob("*.lock"))


def log(folder, host, when="2020-01-01T000000.000000"):
    (folder / LOGS).mkdir(parents=True, exist_ok=True)
    text = f"\nSNAKEMAKE\n=========\n  Date: 2020-01-01\n  Host: {host}\n  User: somebody\n"
    (folder / LOGS / f"{when}.snakemake.log").write_text(text, encoding="utf-8")


def note(folder, **changes):
    holder = replace(this_process(), **changes)
    (folder / NOTES).mkdir(parents=True, exist_ok=True)
    (folder / holder.file).write_text(json.dumps(asdict(holder)), encoding="utf-8")
    return holder


def start(*command, **options):
    return subprocess.Popen([sys.executable, *command], start_new_session=True, **options)


@pytest.fixture
def dead():
    """The number of a process that has gone."""
    process = start("-c", "pass")
    process.wait()
    return process.pid


@pytest.fixture
def alive():
    """A process that lives as long as the test."""
    process = start("-c", "import time; time.sleep(600)")
    yield process.pid
    process.kill()
    process.wait()


def test_no_lock_no_question(tmp_path, alive):
    note(tmp_path, pid=alive, ticks=start_ticks(alive))
    assert judge(tmp_path).state == "free"


def test_the_lock_of_a_dead_run_goes(tmp_path, dead):
    lock(tmp_path)
    gone = note(tmp_path, pid=dead, ticks="1")
    mine, found = enter(tmp_path)
    assert found.state == "dead" and str(dead) in found.told
    assert not locked(tmp_path) and not (tmp_path / gone.file).exists() and (tmp_path / mine.file).exists()
    leave(tmp_path)
    assert not list((tmp_path / NOTES).glob("*.json"))


def test_the_lock_of_a_run_that_is_alive_stays(tmp_path, alive):
    lock(tmp_path)
    other = note(tmp_path, pid=alive, ticks=start_ticks(alive))
    _, found = enter(tmp_path)
    assert found.state == "alive" and f"process {alive}" in found.told
    assert locked(tmp_path) and (tmp_path / other.file).exists()


def test_another_process_of_the_same_number_is_not_the_run(tmp_path, alive):
    lock(tmp_path)
    note(tmp_path, pid=alive, ticks="1")
    assert judge(tmp_path).state == "dead"


def test_a_run_before_the_last_boot_is_dead(tmp_path, alive):
    lock(tmp_path)
    note(tmp_path, pid=alive, ticks=start_ticks(alive), boot="another")
    assert judge(tmp_path).state == "dead"


@pytest.mark.parametrize(
    "changes",
    [{"host": "login2"}, {"machine": "another"}, {"space": "pid:[1]"}],
    ids=["another host", "another machine of the same name", "another container"],
)
def test_what_cannot_be_seen_from_here_stays(tmp_path, dead, changes):
    lock(tmp_path)
    other = note(tmp_path, pid=dead, ticks="1", **changes)
    _, found = enter(tmp_path)
    assert found.state == "unknown" and str(dead) in found.told
    assert locked(tmp_path) and (tmp_path / other.file).exists()


def test_another_users_run_stays(tmp_path, dead, monkeypatch):
    lock(tmp_path)
    note(tmp_path, pid=dead, ticks="1")
    log(tmp_path, this_process().host)
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert judge(tmp_path).state == "unknown"
    # Also if nothing but the lock tells the user.
    for file in (tmp_path / NOTES).glob("*.json"):
        file.unlink()
    found = judge(tmp_path)
    assert found.state == "unknown" and "another user" in found.told


def test_one_run_elsewhere_is_enough_to_keep_the_lock(tmp_path, dead):
    lock(tmp_path)
    note(tmp_path, pid=dead, ticks="1")
    note(tmp_path, pid=dead, ticks="1", host="login2")
    assert judge(tmp_path).state == "unknown"


def test_jobs_that_have_outlived_their_run_keep_the_lock(tmp_path, dead):
    lock(tmp_path)
    holder = note(tmp_path, pid=dead, ticks="1", token="a-token-of-its-own")
    job = start("-c", "import time; time.sleep(600)", env=os.environ | {TOKEN: holder.token})
    try:
        begun = time.monotonic()
        _, found = enter(tmp_path, patience=0.5)
        assert found.state == "jobs" and f"process {job.pid}" in found.told and locked(tmp_path)
        assert time.monotonic() - begun >= 0.5
        # It goes while the next run waits for it.
        threading.Timer(0.5, lambda: (job.kill(), job.wait())).start()
        assert judge(tmp_path, patience=30).state == "dead"
    finally:
        job.kill()
        job.wait()


def test_jobs_that_were_sent_to_slurm_are_left_to_the_start_of_the_run(tmp_path, dead):
    lock(tmp_path)
    holder = note(tmp_path, pid=dead, ticks="1", token="another-token")
    environment = os.environ | {TOKEN: holder.token, "SLURM_JOB_ID": "17"}
    job = start("-c", "import time; time.sleep(600)", env=environment)
    try:
        assert judge(tmp_path).state == "dead"
        # But not what runs beside it in one allocation.
        note(tmp_path, pid=dead, ticks="1", token="another-token", allocation="17")
        assert judge(tmp_path).state == "jobs"
    finally:
        job.kill()
        job.wait()


def test_a_lock_without_a_note_goes_if_its_log_is_of_this_host(tmp_path):
    lock(tmp_path)
    log(tmp_path, this_process().host)
    assert judge(tmp_path).state == "dead"


def test_a_lock_without_a_note_stays_if_its_log_is_of_another_host(tmp_path, dead):
    lock(tmp_path)
    log(tmp_path, "login2")
    found = judge(tmp_path)
    assert found.state == "unknown" and "login2" in found.told
    # A dead run of this host does not explain it.
    note(tmp_path, pid=dead, ticks="1")
    assert judge(tmp_path).state == "unknown"


def test_a_later_log_is_not_the_locks(tmp_path):
    lock(tmp_path)
    log(tmp_path, this_process().host)
    log(tmp_path, "login2", when="2999-01-01T000000.000000")
    assert judge(tmp_path).state == "dead"


def test_a_lock_of_which_nothing_is_known_stays(tmp_path):
    lock(tmp_path)
    assert enter(tmp_path)[1].state == "unknown" and locked(tmp_path)


def test_a_note_that_cannot_be_read_keeps_the_lock(tmp_path, dead):
    lock(tmp_path)
    note(tmp_path, pid=dead, ticks="1")
    (tmp_path / NOTES / "broken.json").write_text("{", encoding="utf-8")
    assert judge(tmp_path).state == "unknown"


def test_a_plain_snakemake_in_the_folder_keeps_the_lock(tmp_path, dead):
    lock(tmp_path)
    log(tmp_path, this_process().host)
    note(tmp_path, pid=dead, ticks="1")
    program = tmp_path / "bin" / "snakemake"
    program.parent.mkdir()
    program.write_text("import time; print('here', flush=True); time.sleep(600)\n", encoding="utf-8")
    for options, state in (([], "alive"), (["--mode", "remote"], "dead")):
        process = start(str(program), *options, cwd=tmp_path, stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            assert judge(tmp_path).state == state
            assert judge(tmp_path).told.count(str(process.pid)) == (state == "alive")
        finally:
            process.kill()
            process.communicate()


def test_without_proc_nothing_is_known(tmp_path, dead, monkeypatch):
    lock(tmp_path)
    note(tmp_path, pid=dead, ticks="1")
    monkeypatch.setattr(holders, "PROC", tmp_path / "none")
    assert enter(tmp_path)[1].state == "unknown" and locked(tmp_path)


def test_without_locks_of_the_file_system_nothing_is_removed(tmp_path, dead, monkeypatch):
    lock(tmp_path)
    note(tmp_path, pid=dead, ticks="1")

    def refuse(stream, how):
        raise OSError("no locks available")

    monkeypatch.setattr(holders.fcntl, "flock", refuse)
    assert enter(tmp_path)[1].state == "unknown" and locked(tmp_path)


def test_of_two_that_start_at_once_only_one_unlocks(tmp_path, dead, root):
    lock(tmp_path)
    note(tmp_path, pid=dead, ticks="1")
    # The first locks again at once, as Snakemake would, and stays.
    program = """
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
    environment = os.environ | {"PYTHONPATH": str(root / "scripts")}
    options = {"stdout": subprocess.PIPE, "text": True, "env": environment}
    both = [start("-c", program, str(tmp_path), **options) for _ in range(2)]
    try:
        states = sorted(process.stdout.readline().strip() for process in both)
        # The second finds no lock yet, or finds its holder alive.
        assert states in (["alive", "dead"], ["dead", "free"])
    finally:
        for process in both:
            process.kill()
            process.communicate()


def test_a_zombie_is_dead(tmp_path):
    lock(tmp_path)
    process = start("-c", "import time; time.sleep(600)")
    note(tmp_path, pid=process.pid, ticks=start_ticks(process.pid))
    assert judge(tmp_path).state == "alive"
    process.kill()
    try:
        deadline = time.monotonic() + 30
        while judge(tmp_path).state != "dead":
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.wait()
