"""GPUs are taken slot by slot, and free again however their holder ends; MPS lives as long as the runs that need it."""

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from threading import Timer

import pytest

from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import ALONE, MPS, SHARE, Slot, choices, claim_gpu, gpus, jobs_per_gpu, lock_folder

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
DRIVER = """#!/bin/sh
case "$*" in
*query-gpu=index*) printf '0\\n1\\n2\\n3\\n' ;;
*) for word; do case $word in --id=GPU-*) echo ${word#--id=} ;; --id=*) echo GPU-${word#--id=} ;; esac; done ;;
esac
"""
# A daemon is a process whose number is in the folder that the variable names.
CONTROL = """#!/bin/sh
pid=${{CUDA_MPS_PIPE_DIRECTORY:-{folder}/theirs}}/pid
if [ "$1" = -d ]; then
    echo "$CUDA_VISIBLE_DEVICES" >> {folder}/started
    [ -e {folder}/broken ] && exit 1
    sleep 600 > /dev/null 2>&1 &
    echo $! > $pid
    exit
fi
read request
if [ -e $pid ] && kill -0 $(cat $pid) 2> /dev/null; then
    [ "$request" = quit ] && kill $(cat $pid) && rm $pid
    echo 1234
else
    echo "Cannot find MPS control daemon process"
    exit 1
fi
"""
# Holds a GPU until its input ends, and says which.
HOLDER = """
import logging, os, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
from crossalign.runtime.gpus import claim_gpu
print(claim_gpu(alone="alone" in os.environ, pause=0.02), flush=True)
sys.stdin.read()
"""
# Starts MPS as a run does, tells where, and works until its input ends.
RUN = """
import os, sys
from crossalign.runtime.gpus import PIPES, share_by_mps
print(share_by_mps(os.environ), os.environ.get(PIPES, "-"), flush=True)
sys.stdin.read()
"""
# Runs out of memory until it has the GPU to itself, or always.
HUNGRY = """
import logging, os, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
from crossalign.runtime.errors import run_main
from crossalign.runtime.gpus import claim_gpu
class OutOfMemoryError(RuntimeError): pass
def main():
    print(claim_gpu(pause=0.02), os.environ.get("CROSSALIGN_GPU_ALONE"), flush=True)
    if "CROSSALIGN_GPU_ALONE" not in os.environ or "always" in os.environ:
        raise OutOfMemoryError("CUDA out of memory")
if __name__ == "__main__":
    run_main(main)
"""


class Machine:
    """Four GPUs, an MPS, and programs on them."""

    def __init__(self, folder):
        self.folder, self.locks, self.started = folder, folder / "locks", []
        (folder / "theirs").mkdir()
        self.install("nvidia-smi", DRIVER)

    def install(self, name, text):
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def start(self, code, **variables):
        chosen = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", SHARE, "CUDA_MPS_PIPE_DIRECTORY")
        environment = {name: value for name, value in os.environ.items() if name not in chosen}
        environment |= {"PYTHONPATH": str(SCRIPTS), "CROSSALIGN_GPU_LOCKS": str(self.locks), **variables}
        environment["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        program = self.folder / f"program{len(self.started)}.py"
        program.write_text(code)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.started.append(subprocess.Popen([sys.executable, program], env=environment, text=True, **pipes))
        return self.started[-1]

    def hold(self, **variables):
        return self.start(HOLDER, **variables)

    def lines(self, name):
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def daemons(self):
        return [int(file.read_text()) for file in self.folder.rglob("pid")]


@pytest.fixture
def machine():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # sockets have short names
        found = Machine(Path(name))
        yield found
        for process in found.started:
            process.kill()
            process.communicate()
        for number in filter(alive, found.daemons()):
            os.kill(number, signal.SIGKILL)


def alive(number):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


def wait_for(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def got(process):
    return process.stdout.readline().strip()


def waits(process):
    """Whether a program says that it has to wait, not that it has a slot."""
    return next(line for line in process.stderr if line.startswith(("waiting", "working"))).startswith("waiting")


# ---- slots ----------------------------------------------------------------------------------------------------------


def test_programs_spread_over_the_gpus_and_share_each_as_told(machine):
    processes = [machine.hold(**{SHARE: "2"}) for _ in range(8)]
    assert Counter(map(got, processes)) == {f"GPU-{number}": 2 for number in range(4)}
    assert waits(machine.hold(**{SHARE: "2"}))


def test_a_killed_program_leaves_its_gpu(machine):
    first = machine.hold(CROSSALIGN_GPUS="2")
    assert got(first) == "GPU-2"
    second = machine.hold(CROSSALIGN_GPUS="2")
    assert waits(second)
    first.send_signal(signal.SIGKILL)
    assert got(second) == "GPU-2"


@pytest.mark.parametrize("how", ["alone", ALONE])
def test_who_needs_a_gpu_alone_is_not_kept_waiting_by_those_who_share(machine, how):
    variables = {"CROSSALIGN_GPUS": "0", SHARE: "2"}
    first = machine.hold(**variables)
    assert got(first) == "GPU-0"
    patient = machine.hold(**variables, **{how: "1"})
    assert waits(patient)
    late = machine.hold(**variables)
    assert waits(late)  # there is a slot, on a GPU that somebody waits for
    first.kill()
    assert got(patient) == "GPU-0"
    patient.kill()
    assert got(late) == "GPU-0"


def test_each_run_keeps_to_its_own_number_of_programs_on_a_gpu(tmp_path):
    slots = [Slot(tmp_path, ["0"], share) for share in (4, 2, 2, 4, 4, 4)]
    assert [slot.attempt() for slot in slots] == [True, True, False, True, True, False]
    assert slots[2].taken("0") == 4
    os.close(slots[0].held)
    assert not slots[2].attempt() and slots[5].attempt()


def test_how_long_a_program_waited_is_told(tmp_path, caplog):
    caplog.set_level("INFO")
    first = Slot(tmp_path, ["0"], 1)
    first.wait(0.02)
    assert caplog.messages == ["working on GPU 0"]
    Timer(0.3, os.close, [first.held]).start()
    Slot(tmp_path, ["0"], 1).wait(0.02)
    assert 0.2 <= float(re.fullmatch(r"waited ([0-9.]+) s for a GPU", caplog.messages[-2])[1]) < 5


def test_what_a_scheduler_or_the_user_gave_is_final_outside_a_workflow_and_divided_within_one(machine):
    given = {"SLURM_JOB_ID": "77", "CUDA_VISIBLE_DEVICES": "3"}
    for one in ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"):
        assert got(machine.hold(**{one: given[one]})) == ""
    assert [got(machine.hold(**given, **{SHARE: "2"})) for _ in range(2)] == ["GPU-3"] * 2
    assert waits(machine.hold(**given, **{SHARE: "2"}))
    # Another job of the cluster has GPUs of its own, whatever their numbers.
    assert got(machine.hold(**{**given, "SLURM_JOB_ID": "78", SHARE: "2"})) == "GPU-3"
    assert choices({"CUDA_VISIBLE_DEVICES": "-1", SHARE: "2"}) == []


def test_without_a_driver_there_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(variable, raising=False)
    assert gpus({}) == [] and claim_gpu() == ""
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize(
    ("ask", "name", "values", "message"),
    [
        (gpus, "CROSSALIGN_GPUS", ["0,0", "first", "", "0,,1"], "numbers of different GPUs"),
        (jobs_per_gpu, SHARE, ["0", "-1", "two", ""], "the number of programs"),
    ],
)
def test_wrong_variables_are_named(ask, name, values, message):
    for value in values:
        with pytest.raises(UserError, match=f"{name}={value}: {message}"):
            ask({name: value})


# ---- the folder of the locks ----------------------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def folder(tmp_path):
    """The folder of locks, not made yet, and a usual umask."""
    mask = os.umask(0o022)
    yield tmp_path / "locks"
    os.umask(mask)


def locks_in(folder):
    return lock_folder({"CROSSALIGN_GPU_LOCKS": str(folder)})


def test_users_share_the_folder_and_cannot_remove_the_locks_of_others(folder, tmp_path, monkeypatch):
    assert locks_in(folder) == folder
    assert mode(folder) == 0o1777
    assert Slot(folder, ["0"], 1).attempt() and mode(folder / "0.alone.lock") == 0o666
    # Without a name: beside other temporary files.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert mode(lock_folder({})) == 0o1777
    assert os.umask(0o022) == 0o022


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o1777, 0o700])
def test_a_folder_needs_the_sticky_bit_which_only_its_owner_adds(folder, monkeypatch, bits):
    folder.mkdir()
    folder.chmod(bits)
    with monkeypatch.context() as another:
        another.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        if bits in (0o777, 0o775):
            with pytest.raises(UserError, match=r"others could replace locks in it .*chmod \+t\); CROSSALIGN_GPU_LO"):
                locks_in(folder)
        else:
            assert locks_in(folder) == folder
        assert mode(folder) == bits
    assert locks_in(folder) == folder
    assert mode(folder) == (bits if bits == 0o700 else bits | 0o1000)


def test_what_lies_in_place_of_the_folder_is_named_and_not_followed(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="locks: not a folder, and links are not followed; CROSSALIGN_GPU_LOCKS"):
        locks_in(folder)
    folder.unlink()
    folder.touch()
    with pytest.raises(UserError, match=r"locks/deeper: no folder for locks can be made \(File exists\); CROSSALIGN"):
        locks_in(folder / "deeper")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkdir, r" \(Is a directory\)"),
        (lambda lock: lock.symlink_to("there"), ""),
        (lambda lock: lock.symlink_to("not-there"), ""),
    ],
)
def test_what_lies_in_place_of_a_lock_is_named_and_not_followed(tmp_path, make, why):
    (tmp_path / "there").write_text("mine")
    make(tmp_path / "0.alone.lock")
    with pytest.raises(UserError, match=f"0.alone.lock: cannot be locked{why}"):
        Slot(tmp_path, ["0"], 1).attempt()
    assert not (tmp_path / "not-there").exists() and (tmp_path / "there").read_text() == "mine"


# ---- too little memory ----------------------------------------------------------------------------------------------


def test_out_of_memory_beside_a_neighbour_runs_again_alone(machine):
    variables = {SHARE: "2", "CROSSALIGN_GPUS": "0"}
    neighbour = machine.hold(**variables)
    assert got(neighbour) == "GPU-0"
    job = machine.start(HUNGRY, **variables)
    assert got(job) == "GPU-0 None"
    assert next(line for line in job.stderr if "memory" in line).startswith("out of memory beside other jobs: this job")
    assert waits(job)
    late = machine.hold(**variables)
    assert waits(late)
    neighbour.communicate()
    assert got(job) == "GPU-0 1" and job.wait(20) == 0
    assert got(late) == "GPU-0"


@pytest.mark.parametrize("variables", [{SHARE: "2"}, {SHARE: "1"}, {SHARE: "2", ALONE: "1", "always": "1"}])
def test_out_of_memory_without_a_neighbour_or_a_second_time_is_a_failure(machine, variables):
    if ALONE in variables:
        variables["CROSSALIGN_GPUS"] = "1"
    job = machine.start(HUNGRY, **variables)
    out, error = job.communicate(timeout=20)
    assert job.returncode == 1 and error.rstrip().endswith("OutOfMemoryError: CUDA out of memory")
    assert len(out.splitlines()) == 1


# ---- MPS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(machine):
    machine.install("nvidia-cuda-mps-control", CONTROL.format(folder=machine.folder))
    return machine


def test_mps_starts_once_for_the_gpus_of_the_runs_and_ends_with_the_last_of_them(served):
    runs = [served.start(RUN, CROSSALIGN_GPUS="0,2") for _ in range(2)]
    places = [got(run).split() for run in runs]
    assert places[0] == places[1] and places[0][0] == "True"
    assert served.lines("started") == ["GPU-0,GPU-2"]
    (number,) = served.daemons()
    runs[0].communicate()
    assert alive(number)
    runs[1].communicate()
    wait_for(lambda: not alive(number))
    assert got(served.start(RUN, CROSSALIGN_GPUS="0,2")).split() == places[0] and len(served.lines("started")) == 2


def test_the_run_after_one_that_was_killed_takes_its_daemon_over_and_ends_it(served):
    first = served.start(RUN)
    assert got(first).startswith("True")
    (number,) = served.daemons()
    first.kill()
    first.communicate()
    second = served.start(RUN)
    assert got(second).startswith("True") and len(served.lines("started")) == 1 and alive(number)
    second.communicate()
    wait_for(lambda: not alive(number))


def test_a_daemon_of_somebody_else_is_used_and_left_alone(served):
    theirs = subprocess.Popen(["sleep", "600"])
    (served.folder / "theirs" / "pid").write_text(str(theirs.pid))
    try:
        run = served.start(RUN)
        assert got(run) == "True -"
        run.communicate()
        assert not served.lines("started") and theirs.poll() is None
    finally:
        theirs.kill()
        theirs.wait()


@pytest.mark.parametrize("cause", ["broken", "off", "long", "open"])
def test_without_mps_a_run_goes_on_all_the_same(served, cause):
    variables = {MPS: "off"} if cause == "off" else {}
    if cause == "broken":
        (served.folder / "broken").touch()
    elif cause == "long":
        variables = {"CROSSALIGN_GPU_LOCKS": str(served.folder / ("x" * 90))}
    elif cause == "open":  # a folder that others could have written to
        run = served.start(RUN)
        got(run)
        run.communicate()
        (place,) = served.locks.glob("mps-*")
        place.chmod(0o755)
        (served.folder / "started").unlink()
    assert got(served.start(RUN, **variables)) == "False -"
    assert len(served.lines("started")) == (1 if cause == "broken" else 0)
