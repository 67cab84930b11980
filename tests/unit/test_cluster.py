"""The programs that stand before SLURM's own, and the jobs that an earlier run has left, on a pretended SLURM."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crossalign.runtime.cluster import end_earlier_jobs, left_behind
from crossalign.runtime.errors import UserError
from crossalign.runtime.workarounds import RUNS, mend_status_queries

ROOT = Path(__file__).resolve().parents[2]
SHIMS = ROOT / "profiles" / "slurm" / "bin"
# A training as SLURM sees it: told to end it takes a moment, and says so by its status.
TRAINING = """
import signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
print("at work", flush=True)
end = time.monotonic() + 20
while not told and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.5)
print("saved", flush=True)
sys.exit(75)
"""
QUERY = ["sacct", "-X", "--noheader", "--format=JobIdRaw,State", "--name", "crossalign_1"]


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Puts shell programs on the PATH, behind the shims. A SLURM that is installed here must not be found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "sed", "timeout", "cat", "touch", "sleep"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", os.pathsep.join([str(SHIMS), str(folder)]))
    monkeypatch.chdir(tmp_path)

    def write(**programs):
        for name, text in programs.items():
            file = folder / name
            file.write_text(f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)
        return folder

    return write


def status():
    """What the executor would read: the last line about a job holds."""
    done = subprocess.run(QUERY, capture_output=True, text=True)
    rows = [line.split("|") for line in done.stdout.splitlines() if line]
    return done.returncode, {row[0]: row[1] for row in rows}


@pytest.mark.parametrize(
    ("sacct", "squeue", "expected"),
    [
        # A cancelled job is called by the name that the executor knows.
        ("echo '7|CANCELLED by 1000'", "exit 1", {"7": "CANCELLED"}),
        # The controller knows best, and the accounting longest.
        (
            "printf '1|COMPLETED\\n2|NODE_FAIL\\n'",
            "printf '2|PENDING\\n3|RUNNING\\n'",
            {"1": "COMPLETED", "2": "PENDING", "3": "RUNNING"},
        ),
        # One of the two is enough; some sites have no sacct; and no answer is no answer.
        ("echo 'accounting storage is disabled' >&2; exit 1", "echo '3|COMPLETED'", {"3": "COMPLETED"}),
        ("echo '3|TIMEOUT'", "exit 1", {"3": "TIMEOUT"}),
        (None, "echo '3|RUNNING'", {"3": "RUNNING"}),
        ("exit 1", "exit 1", {}),
        # Preempted and not queued again is lost.
        ("exit 1", "echo '3|PREEMPTED'", {"3": "FAILED"}),
    ],
)
def test_what_the_executor_is_told_of_jobs(pretend, sacct, squeue, expected):
    pretend(**({"sacct": sacct} if sacct else {}), squeue=squeue)
    assert status() == (int(not expected), expected)


def test_other_questions_go_straight_through(pretend):
    pretend(sacct='echo "asked $@"', squeue="echo wrong")
    assert subprocess.check_output(["sacct", "-j", "3", "-o", "a b"], text=True) == "asked -j 3 -o a b\n"


def test_steps_find_the_settings_again(pretend, monkeypatch):
    pretend(srun='echo "$SLURM_CONF: $2"')
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("CROSSALIGN_SLURM_CONF", "/site/slurm.conf")
    assert subprocess.check_output(["srun", "-n1", "a b"], text=True) == "/site/slurm.conf: a b\n"
    monkeypatch.setenv("SLURM_CONF", "/other.conf")
    assert subprocess.check_output(["srun", "-n1", "a b"], text=True) == "/other.conf: a b\n"


@pytest.fixture
def step(pretend):
    """Starts a step as the executor does: the script goes to a shell through srun."""
    pretend(srun='[ "$1 $2" = "-n1 --cpu-bind=q" ] || exit 9\nshift 2\nexec "$@"')

    begun = []

    def begin(script):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(["srun", "-n1", "--cpu-bind=q", "sh", "-s"], **pipes, start_new_session=True)
        process.stdin.write(script)
        process.stdin.close()
        begun.append(process)
        return process

    yield begin
    for process in begun:
        with contextlib.suppress(ProcessLookupError):  # nothing is left of it, as it should be
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("tell", [os.kill, os.killpg], ids=["the first process", "all processes"])
def test_a_step_outlives_its_warning_until_all_is_saved(step, tmp_path, tell):
    (tmp_path / "training.py").write_text(TRAINING)
    # A Snakemake in between, which does not pass signals on, and a folder that the project may have.
    between = (
        f"import subprocess as s, signal; signal.signal(15, print); exit(s.call(['{sys.executable}', 'training.py']))"
    )
    process = step(f'cd "{tmp_path}" && "{sys.executable}" -c "{between}"\n')
    assert process.stdout.readline() == "at work\n"
    tell(process.pid, signal.SIGTERM)
    assert "saved\n" in process.stdout.read()
    assert process.wait() == 75


@pytest.mark.parametrize(("script", "status"), [("cat", 0), ("exit 7", 7), ("sh -c 'kill -9 $$'", 137)])
def test_a_step_ends_as_its_script_does(step, script, status):
    assert step(f"{script}\n").wait(10) == status


def test_other_steps_are_left_alone(pretend):
    pretend(srun='echo "$@"')
    assert subprocess.check_output(["srun", "-n1", "sh", "-c", "sh -s x"], text=True) == "-n1 sh -c sh -s x\n"


def test_the_shims_come_first_where_there_is_slurm(pretend, monkeypatch):
    folder = pretend(sbatch="exit 0")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("SLURM_CONF", "/site/slurm.conf")
    for _ in range(2):
        mend_status_queries(SHIMS, print)
    assert os.environ["PATH"] == os.pathsep.join([str(SHIMS), str(folder)])
    assert os.environ["CROSSALIGN_SLURM_CONF"] == "/site/slurm.conf"


def test_nothing_changes_where_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    mend_status_queries(SHIMS, print)
    assert os.environ["PATH"] == str(tmp_path)
    assert left_behind(tmp_path, ["1"]) == []


def test_jobs_left_behind_are_cancelled_and_waited_for(pretend, tmp_path, caplog):
    queue = tmp_path / "queue"
    queue.write_text("".join(f"{number}|rule_a|crossalign_1|/x\n" for number in (5, 6, 70)))
    # A cancelled job takes a moment to go: it is still there at the next look.
    pretend(
        squeue=f"""
cd '{tmp_path}'
cat queue
[ -e looked ] && gone=5 || gone=70
sed "/^$gone|/d" queue > left
cat left > queue
touch looked""",
        scancel=f"echo \"$@\" > '{tmp_path}/cancelled'",
    )
    end_earlier_jobs(["5", "70"], pause=0.01)
    assert (tmp_path / "cancelled").read_text() == "5 70\n"
    assert queue.read_text() == "6|rule_a|crossalign_1|/x\n"
    assert "5, 70" in caplog.text


@pytest.fixture
def run_in(tmp_path):
    """Starts processes that are runs in the folder, each under the name of its jobs."""
    begun = []

    def begin(name):
        code = f"import sys; from crossalign.runtime.cluster import note_run; note_run({str(tmp_path)!r}, {name!r})"
        waits = f"{code}; print('noted', flush=True); sys.stdin.read()"
        environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", waits], env=environment, **pipes)
        begun.append(process)
        assert process.stdout.readline() == "noted\n"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.fixture
def queue(pretend, tmp_path):
    """Sets the queue: number, comment, name and folder of each job."""

    def fill(*rows):
        lines = "\n".join("|".join(map(str, row)) for row in rows)
        pretend(squeue=f"cat <<'.'\n{lines}\n.", scancel=f"echo \"$@\" >> '{tmp_path}/cancelled'")

    return fill


def kill(process):
    process.kill()
    process.wait()


def test_jobs_of_a_killed_run_are_left_behind(queue, run_in, tmp_path):
    (tmp_path / "a link").symlink_to(tmp_path)
    kill(run_in("crossalign_1"))
    queue(
        (3, "rule_run", "crossalign_1", tmp_path),
        (4, "rule_run", "crossalign_1", "/elsewhere"),
        (5, "(null)", "a|b", tmp_path),
        (6, "rule_work", "crossalign_1", tmp_path / "a link"),
    )
    assert left_behind(tmp_path, []) == ["3", "6"]
    # A job that makes what is to be made now, wherever it works: the folder may have been moved.
    assert left_behind(tmp_path, ["4", "99"]) == ["3", "4", "6"]


def test_jobs_of_a_run_that_is_alive_stay(queue, run_in, tmp_path, caplog):
    first, second = run_in("crossalign_1"), run_in("crossalign_2")
    queue((3, "rule_a", "crossalign_1", tmp_path), (4, "rule_b", "crossalign_2", tmp_path))
    assert left_behind(tmp_path, []) == []
    assert "left alone: 3, 4" in caplog.text
    kill(first)
    assert left_behind(tmp_path, []) == ["3"]
    kill(second)
    assert left_behind(tmp_path, []) == ["3", "4"]


def test_two_runs_do_not_make_the_same_at_once(queue, run_in, tmp_path):
    process = run_in("crossalign_1")
    queue((3, "rule_a", "crossalign_1", tmp_path), (4, "rule_b", "crossalign_1", tmp_path))
    message = (
        rf"jobs 4 are making what this run is to make. The run .* is process {process.pid} on .*\. Wait for its end;"
    )
    with pytest.raises(UserError, match=message):
        left_behind(tmp_path, ["4"])


def change(tmp_path, **fields):
    note = tmp_path / RUNS / "crossalign_1.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | fields))


@pytest.mark.parametrize("known", [False, True], ids=["no note", "a note of another machine"])
def test_where_nothing_is_sure_the_user_is_asked(queue, run_in, tmp_path, known):
    if known:
        kill(run_in("crossalign_1"))
        change(tmp_path, place=["login2", "", ""])
    queue((3, "rule_a", "crossalign_1", tmp_path), (4, "rule_b", "crossalign_1", tmp_path))
    assert left_behind(tmp_path, []) == []
    who = r"process \d+ on login2, started" if known else r"Nothing says whether .*\(crossalign_1\) is at work"
    with pytest.raises(UserError, match=rf"jobs 3 4 are .*{who}.* cancel them \(scancel 3 4\)\. Then start"):
        left_behind(tmp_path, ["3", "4"])
    assert not (tmp_path / "cancelled").exists()


def test_a_number_that_another_process_has_now_is_not_the_run(queue, run_in, tmp_path):
    run_in("crossalign_1")
    change(tmp_path, born="another")
    queue((3, "rule_a", "crossalign_1", tmp_path))
    assert left_behind(tmp_path, ["3"]) == ["3"]


def test_notes_go_when_run_and_jobs_are_over(queue, run_in, tmp_path):
    for name in ("over", "at-work"):
        kill(run_in(name))
    run_in("alive")
    queue((3, "rule_a", "at-work", tmp_path))
    left_behind(tmp_path, [])
    assert sorted(file.stem for file in (tmp_path / RUNS).iterdir()) == ["alive", "at-work"]


def test_a_job_that_does_not_end_stops_the_run(pretend):
    pretend(squeue="echo '5|rule_a|crossalign_1|/x'", scancel="exit 0")
    with pytest.raises(UserError, match="jobs 5 of an earlier run do not end; cancel them"):
        end_earlier_jobs(["5"], patience=0.05, pause=0.01)


def test_without_an_answer_nothing_is_submitted(pretend, tmp_path):
    pretend(squeue="echo 'no controller' >&2; exit 1")
    with pytest.raises(UserError, match=r"squeue does not answer \(no controller\), and jobs of an earlier run"):
        left_behind(tmp_path, [])


@pytest.mark.parametrize("file", sorted((ROOT / "rules").glob("*.smk")), ids=lambda file: file.name)
def test_training_takes_the_place_of_its_shell(file):
    """A shell dies of SIGTERM at once: the job would end and start again while training still saves its checkpoint."""
    for text in file.read_text(encoding="utf-8").split("shell:")[1:]:
        command = text.split("\n\n\n")[0]
        if "--checkpoints" in command:
            assert 'exec python "$SCRIPTS"/' in command
