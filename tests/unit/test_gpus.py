"""GPUs are taken one by one, shared when told so, and free again however their holder ends."""

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from threading import Timer

import pytest

from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import Claim, Note, choices, claim_gpus, gpus, jobs_per_gpu, lock_folder, wish

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# Holds a GPU until its input ends, and says which.
HOLDER = """
import sys
from crossalign.runtime.gpus import claim_gpus
print(",".join(claim_gpus(pause=0.02)), flush=True)
sys.stdin.read()
"""


def claim_of(folder, names, share=1):
    return Claim(folder, names, wish({"CROSSALIGN_GPU_SHARE": str(share)}, ""))


def try_gpus(folder, names, share=1):
    """A GPU and the open file that holds it, or none while none is free."""
    claim = claim_of(folder, names, share)
    if claim.attempt():
        claim._write(Note(claim.use))
    for lock in claim.reserved.values():
        os.close(lock)
    return claim.held


def clean():
    """The environment of a machine on which nobody has chosen a GPU."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")}
    return kept | {"PYTHONPATH": str(SCRIPTS)}


@pytest.fixture
def holders(tmp_path):
    """Starts programs that claim a GPU of four; those left are ended afterwards."""
    started = []

    def start(**variables):
        locks = str(tmp_path / "locks")
        environment = {**clean(), "CROSSALIGN_GPUS": "0,1,2,3", "CROSSALIGN_GPU_LOCKS": locks, **variables}
        command = [sys.executable, "-c", HOLDER]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started.append(subprocess.Popen(command, env=environment, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_programs_at_the_same_time_have_different_gpus_and_share_them_as_told(holders):
    processes = [holders(CROSSALIGN_GPU_SHARE="2") for _ in range(8)]
    assert Counter(process.stdout.readline().strip() for process in processes) == dict.fromkeys("0123", 2)


def test_a_killed_program_leaves_its_gpu(holders):
    first = holders(CROSSALIGN_GPUS="7")
    assert first.stdout.readline().strip() == "7"
    second = holders(CROSSALIGN_GPUS="7")
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.5)
    first.send_signal(signal.SIGKILL)
    assert second.stdout.readline().strip() == "7"


def test_empty_gpu_come_first(tmp_path):
    order = [try_gpus(tmp_path, ["0", "1"], share=2) for _ in range(5)]
    assert [list(taken) for taken in order] == [["0"], ["1"], ["0"], ["1"], []]
    os.close(order[1]["1"])
    assert list(try_gpus(tmp_path, ["0", "1"], share=2)) == ["1"]


def test_who_needs_whole_gpu_is_not_kept_waiting_by_those_who_share(tmp_path):
    names = ["0", "1"]
    sharing = [try_gpus(tmp_path, names, share=2) for _ in range(3)]
    assert [list(held) for held in sharing] == [["0"], ["1"], ["0"]]
    patient = claim_of(tmp_path, names)
    assert not patient.attempt() and list(patient.reserved) == ["1"]
    # Nobody else goes to the GPU that it waits for.
    assert list(try_gpus(tmp_path, names, share=2)) == []
    os.close(sharing[1]["1"])
    assert list(try_gpus(tmp_path, names, share=2)) == []
    assert patient.attempt() and list(patient.held) == ["1"] and not patient.reserved


def test_how_long_a_program_waited_is_told(tmp_path, caplog):
    caplog.set_level("INFO")
    taken = try_gpus(tmp_path, ["0"])
    Timer(0.3, os.close, [taken["0"]]).start()
    claim_of(tmp_path, ["0"]).wait(0.02)
    told = re.fullmatch(r"waited ([0-9.]+) s for a GPU", caplog.messages[-1])
    assert 0.2 <= float(told[1]) < 5
    caplog.clear()
    claim_of(tmp_path, ["1"]).wait(0.02)
    assert not caplog.messages


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
    os.close(try_gpus(folder, ["0"])["0"])
    assert mode(folder / "0.0.lock") == 0o666
    # Without a name: beside other temporary files.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert mode(lock_folder({})) == 0o1777
    assert os.umask(0o022) == 0o022


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o1777, 0o1775, 0o700])
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
    with pytest.raises(UserError, match="locks: not a folder"):
        locks_in(folder)
    with pytest.raises(UserError, match=r"locks/deeper: no folder for locks can be made \(File exists\); CROSSALIGN"):
        locks_in(folder / "deeper")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, r" \(not a file\)"),
        (os.mkdir, r" \(Is a directory\)"),
        (lambda lock: lock.symlink_to("there"), ""),
        (lambda lock: lock.symlink_to("not-there"), ""),
    ],
)
def test_what_lies_in_place_of_a_lock_is_named_and_not_followed(tmp_path, make, why):
    (tmp_path / "there").write_text("mine")
    (tmp_path / "there").chmod(0o600)
    make(tmp_path / "0.0.lock")
    with pytest.raises(UserError, match=f"0.0.lock: cannot be locked{why}"):
        try_gpus(tmp_path, ["0"])
    assert mode(tmp_path / "there") == 0o600
    assert not (tmp_path / "not-there").exists()


@pytest.mark.parametrize("variable", ["SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"])
def test_the_choice_of_others_is_kept(holders, variable):
    assert choices({variable: "3", "CROSSALIGN_GPUS": "1"}) == [] and choices({"CROSSALIGN_GPUS": "1"}) == ["1"]
    process = holders(**{variable: "3"})
    assert process.stdout.readline().strip() == ""


def test_the_driver_is_asked_and_without_one_there_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(variable, raising=False)
    assert gpus({}) == claim_gpus() == []
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
    program.chmod(0o755)
    assert gpus({}) == ["0", "1"]


@pytest.mark.parametrize(
    ("ask", "name", "values", "message"),
    [
        (gpus, "CROSSALIGN_GPUS", ["0,0", "first", "", "0,,1"], "numbers of different GPUs"),
        (jobs_per_gpu, "CROSSALIGN_GPU_SHARE", ["0", "-1", "two", ""], "the number of programs"),
    ],
)
def test_wrong_variables_are_named(ask, name, values, message):
    for value in values:
        with pytest.raises(UserError, match=f"{name}={value}: {message}"):
            ask({name: value})
