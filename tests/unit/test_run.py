"""Starting a run: which one it is, whose lock it finds, signals, timers and stages."""

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from crossalign.runtime import holders
from crossalign.runtime.holders import LOCKS, LOGS, NOTES, TOKEN, enter, judge, leave, start_ticks, this_process
from crossalign.runtime.signals import beside
from crossalign.runtime.stages import Stages
from crossalign.runtime.timer import OneTimer
from run import results_folder

FILES = {
    "config.yaml": "run: paper\nseeds: [1]\n",
    "config.demo.yaml": "run: demo\n",
    "other.yaml": "seeds: [2]\n",
    "broken.yaml": "run: [\n",
    "profiles/demo/config.yaml": "configfile: config.demo.yaml\ncores: 2\n",
    "profiles/gpu/config.yaml": "cores: 8\n",
    "bin/snakemake": """#!/bin/sh\nprintf '%s\\n' "$@"\nenv > environment\n""",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A working project with configs, a profile, and a snakemake that tells how it was called."""
    monkeypatch.chdir(tmp_path)
    assert results_folder([]) == Path("results/unnamed")
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "bin" / "snakemake").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "results"),
    [
        ("all", "results/paper"),
        ("--profile profiles/gpu all", "results/paper"),
        ("--profile profiles/demo all", "results/demo"),
        ("--profile profiles/demo --configfile other.yaml -- all", "results/paper"),
        ("--configfile config.demo.yaml other.yaml --cores 2", "results/demo"),
        ("--configfile config.demo.yaml --config run=mine seeds=[3]", "results/mine"),
        ("--configfile broken.yaml none.yaml", "results/paper"),
        ("--directory elsewhere all", "elsewhere/results/paper"),
    ],
)
def test_the_run_is_that_of_the_configs(project, arguments, results):
    assert results_folder(arguments.split()) == Path(results)


def start_run(project, root, *words, **environment):
    path = os.pathsep.join([str(project / "bin"), os.environ["PATH"]])
    clean = {name: value for name, value in os.environ.items() if name != "CROSSALIGN_AGAIN"}
    command = [sys.executable, root / "scripts" / "run.py", *words]
    return subprocess.run(
        command, cwd=project, env=clean | {"PATH": path} | environment, capture_output=True, text=True
    )


def test_snakemake_gets_the_logger_and_the_commands_to_tell(project, root):
    words = ["--after", "make publish RUN={run}", "--", "--profile", "profiles/demo", "--", "a b"]
    done = start_run(project, root, *words, CROSSALIGN_AGAIN="make demo ", PYTHONPATH="/some/where")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *("--logger", "crossalign"),
        "--logger-crossalign-results=results/demo",
        "--logger-crossalign-again=make demo",
        "--logger-crossalign-unlock=snakemake --unlock --profile profiles/demo -- 'a b'",
        "--logger-crossalign-after=make publish RUN=demo",
        *words[3:],
    ]
    environment = dict(line.split("=", 1) for line in (project / "environment").read_text().splitlines() if "=" in line)
    assert environment["PYTHONPATH"].endswith("scripts/logger:/some/where")
    # The note is of this process, and its jobs are known by the token.
    (note,) = (project / NOTES).glob("*.json")
    assert json.loads(note.read_text())["token"] == environment["CROSSALIGN_RUN"]


def test_a_snakemake_that_is_missing_is_told(project, root):
    done = start_run(project, root, "--", "all", PATH="/nowhere")
    assert done.returncode == 1 and done.stderr == "error: snakemake cannot be started: No such file or directory\n"


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
    if not holders.PROC.is_dir():
        pytest.skip("processes are looked up in /proc")
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


def test_the_lock_of_a_dead_run_goes(folder, dead):
    gone = note(folder, dead)
    mine, found = enter(folder)
    assert found.state == "dead" and str(dead) in found.told
    assert not locked(folder) and not (folder / gone.file).exists() and (folder / mine.file).exists()
    leave(folder)
    assert not list((folder / NOTES).glob("*.json"))


def test_the_lock_of_a_run_that_is_alive_stays(folder, alive, tmp_path_factory):
    other = note(folder, alive, start_ticks(alive))
    _, found = enter(folder)
    assert found.state == "alive" and f"process {alive}" in found.told
    assert locked(folder) and (folder / other.file).exists()
    # Without a lock there is no question.
    free = tmp_path_factory.mktemp("free")
    note(free, alive, start_ticks(alive))
    assert judge(free).state == "free"


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


def test_a_lock_without_a_note_goes_if_its_log_is_of_this_host(folder, dead):
    assert enter(folder)[1].state == "unknown" and locked(folder), "nothing is known of it"
    log(folder, this_process().host)
    assert judge(folder).state == "dead"
    # A later log is not the lock's.
    log(folder, "login2", when="2999-01-01T000000.000000")
    assert judge(folder).state == "dead"
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


def test_snakemake_has_what_is_replaced():
    """crossalign/runtime/workarounds.py; where it is gone or renamed, so may the fault be."""
    from snakemake.scheduling.job_scheduler import JobScheduler

    assert "with self._lock:" in inspect.getsource(JobScheduler.exit_gracefully)
    assert "self._open_jobs.release" in inspect.getsource(JobScheduler._schedule_reevalutation)


def test_many_wishes_are_one_call_which_may_ask_for_the_next():
    """As a scheduler does that looks for work again and again."""
    calls, done = [], threading.Event()

    def look():
        calls.append(time.monotonic())
        if len(calls) < 3:
            wish(0.01)
        else:
            done.set()

    wish = OneTimer(look)
    begin = time.monotonic()
    for _ in range(100):
        wish(0.2)
    assert sum(isinstance(thread, threading.Timer) for thread in threading.enumerate()) <= 1
    assert done.wait(5)
    assert calls[0] - begin >= 0.2
    wish(0.01)
    time.sleep(0.3)
    assert len(calls) == 4


def test_stages_add_up_and_are_told():
    started = time.perf_counter()
    stages = Stages()
    time.sleep(0.05)
    stages.end("read")
    stages.end("tokenise")
    time.sleep(0.02)
    stages.end("read")
    passed = time.perf_counter() - started
    assert list(stages.seconds) == ["read", "tokenise"]
    assert stages.seconds["read"] >= 0.07 and sum(stages.seconds.values()) <= passed
    assert str(stages) == f"read {stages.seconds['read']:.2f}, tokenise {stages.seconds['tokenise']:.2f}"


@pytest.mark.parametrize("question", ["-n", "--dry-run", "--unlock", "--help"])
def test_questions_are_snakemakes_own(project, root, question):
    done = start_run(project, root, "--", "--profile", "profiles/demo", question)
    assert done.stdout.splitlines() == ["--profile", "profiles/demo", question]
    assert not (project / NOTES).exists()
