"""Jobs share a GPU by what the first of their kind took, through an MPS of their own; all on fake cards."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from crossalign.runtime import mps, sharing
from crossalign.runtime.gpus import choices
from crossalign.runtime.sharing import Gpu, Room, Use, Watch, job_kind, obstacle, outlook, places, read_use, write_use

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
H200, SMALL_CARD = 0.95 * 143_771, 0.95 * 24_564
SMALL_MODEL = Use(2_300, 0.55, 0.24, 0.9)
MBERT = Use(9_000, 0.75, 0.34, 1.1)
DECODER = Use(11_000, 0.97, 0.88, 1.0)

# One card per file: what nvidia-smi would print of it.
DRIVER = """#!/bin/sh
case "$1" in
--id=*) cat "{cards}/${{1#--id=}}" ;;
*) ls "{cards}" ;;
esac
"""
# The daemon is a process of its own, as the real one is; its number is in the folder of its pipes.
CONTROL = """#!/bin/sh
pid=$(cat "${{CUDA_MPS_PIPE_DIRECTORY:-{theirs}}}/pid" 2> /dev/null)
if [ "$1" = -d ]; then
    echo "$CUDA_VISIBLE_DEVICES" >> {folder}/started
    [ -e {folder}/broken ] && exit 1
    sleep 600 > /dev/null 2>&1 &
    echo $! > "$CUDA_MPS_PIPE_DIRECTORY/pid"
    exit 0
fi
read -r request
[ -n "$pid" ] && kill -0 "$pid" 2> /dev/null || {{ echo Cannot find MPS control daemon process >&2; exit; }}
if [ "$request" = quit ]; then kill "$pid"; echo "$CUDA_MPS_PIPE_DIRECTORY" >> {folder}/ended; fi
"""
# Claims a GPU for a job of the kind `work`, says what it got, and ends well when its input ends.
JOB = """
import logging, os, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
from crossalign.runtime.errors import run_main
from crossalign.runtime.gpus import claim_gpus
def main():
    names = claim_gpus(kind="work", pause=0.02)
    print(*names, os.environ["CUDA_VISIBLE_DEVICES"], os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "-"), flush=True)
    sys.stdin.read()
run_main(main)
"""


@pytest.mark.parametrize(
    ("memory", "cores", "mps", "use", "expected"),
    [
        (H200, 16, True, SMALL_MODEL, (4, "the GPU")),
        (H200, 16, False, SMALL_MODEL, (2, "the GPU")),  # they take turns
        (H200, 16, True, MBERT, (3, "the GPU")),
        (H200, 3, True, SMALL_MODEL, (3, "cores")),
        (H200, 16, True, DECODER, (1, "the GPU")),  # it keeps the card busy: sharing brings nothing
        (SMALL_CARD, 16, True, MBERT, (2, "memory")),
        (8_000, 16, True, MBERT, (1, "memory")),  # more than there is, or so: alone it may fit
        (H200, 16, True, Use(100, 0.01, None, 0.0), (48, "MPS")),
        (H200, 16, True, Use(2_000, 0.5), (2, "the GPU")),  # a driver that does not tell the power
    ],
)
def test_how_many_share_a_card(memory, cores, mps, use, expected):
    assert places(Room(memory, cores, mps), use) == expected


def test_jobs_of_different_kinds_share_what_is_left():
    room = Room(H200, 16, True)
    assert obstacle(room, [], DECODER) == ""
    assert obstacle(room, [MBERT], SMALL_MODEL) == obstacle(room, [SMALL_MODEL], MBERT) == ""
    assert obstacle(room, [DECODER], SMALL_MODEL) == ""  # half of it fits
    assert obstacle(room, [DECODER, SMALL_MODEL], SMALL_MODEL) == "the GPU"
    assert obstacle(room, [SMALL_MODEL], SMALL_MODEL, elsewhere=15.0) == "cores"


def test_a_kind_is_one_program_on_models_of_one_size(tmp_path):
    for name, size in (("a", 3 << 20), ("b", 4 << 20), ("c", 5 << 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"\0" * size)
    assert [job_kind("finetune", "ner", model=tmp_path / name) for name in "abc"] == [
        *("finetune-ner-4MB", "finetune-ner-4MB", "finetune-ner-8MB")
    ]
    assert job_kind("bilstm", "pos") == "bilstm-pos"
    assert job_kind("embed", model=tmp_path / "none") == "embed-1MB"


def test_a_record_keeps_the_most_memory_and_the_last_load(tmp_path):
    assert read_use(tmp_path, "work") is None
    write_use(tmp_path, "work", MBERT)
    write_use(tmp_path, "work", SMALL_MODEL)
    assert read_use(tmp_path, "work") == Use(MBERT.memory, SMALL_MODEL.busy, SMALL_MODEL.power, SMALL_MODEL.cores)
    (tmp_path / "work.json").write_text("{")
    assert read_use(tmp_path, "work") is None


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Machine:
    """Fake cards, a fake MPS, and jobs on them."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.cards, self.jobs = folder, folder / "cards", []
        self.records, self.locks = folder / "records", folder / "locks"
        for path in (self.cards, folder / "bin", folder / "theirs"):
            path.mkdir()
        self.install("nvidia-smi", DRIVER.format(cards=self.cards))
        self.card("0")
        for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "CROSSALIGN_GPU_SHARE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("PYTHONPATH", str(SCRIPTS))
        monkeypatch.setenv("CROSSALIGN_GPU_RECORDS", str(self.records))
        monkeypatch.setenv("CROSSALIGN_GPU_LOCKS", str(self.locks))

    def install(self, name, text):
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def install_mps(self):
        self.install("nvidia-cuda-mps-control", CONTROL.format(folder=self.folder, theirs=self.folder / "theirs"))

    def card(self, name, used=500, busy=0, power=100):
        draft = self.folder / "draft"
        draft.write_text(f"GPU-{name}, 24000, {used}, {busy}, {power}.0, 700.0\n")
        draft.replace(self.cards / name)

    def start(self, code=JOB, **variables):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-c", code] if "\n" in code else [sys.executable, code]
        self.jobs.append(subprocess.Popen(command, env=os.environ | variables, text=True, **pipes))
        return self.jobs[-1]

    def lines(self, name):
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def machine(monkeypatch):
    """One card of 24 GB; what is left of jobs and daemons is ended afterwards."""
    # Sockets have short names.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        found = Machine(Path(name), monkeypatch)
        yield found
        for job in found.jobs:
            job.kill()
            job.communicate()
        for number in filter(alive, keepers(found) + daemon(found) + daemon(found, "slurm-*/mps-*")):
            os.kill(number, signal.SIGKILL)


def got(job):
    return job.stdout.readline().split()


def waits(job):
    """Whether a job says that it has to wait, not that it has a place."""
    return next(line for line in job.stderr if line.startswith(("waiting", "working"))).startswith("waiting")


def test_the_first_is_measured_alone_and_the_others_share_as_many_as_fit(machine):
    first = machine.start()
    assert got(first) == ["0", "0", "-"]
    others = [machine.start() for _ in range(3)]
    assert all(map(waits, others))
    machine.card("0", used=6500, busy=40, power=300)
    time.sleep(1.1)
    first.communicate()
    use = read_use(machine.records, "work")
    assert use.memory == 6000 and 0.1 < use.busy <= 0.4 and 0.05 < use.power <= 0.34 and use.cores < 1
    machine.card("0")
    # Memory for three: 3 x 6,000 x 1.1 of 0.95 x 24,000 - 500.
    assert [got(job)[0] for job in others] == ["0"] * 3
    late = machine.start()
    assert waits(late)
    others[0].kill()
    assert got(late)[0] == "0"


def test_a_job_that_fails_is_no_measure(machine):
    machine.start("from crossalign.runtime.gpus import claim_gpus\nclaim_gpus(kind='work')\n1 / 0\n").communicate()
    assert not machine.records.exists()


def test_a_long_job_lets_others_in_once_it_is_known(machine, monkeypatch):
    monkeypatch.setattr(sharing, "SETTLED", 0.3)
    heard = []
    with Watch("0", pause=0.05, then=heard.append):
        time.sleep(0.2)
        machine.card("0", used=1500, busy=100, power=400)
        wait_for(lambda: heard)
    assert len(heard) == 1 and heard[0].memory == 1000 and heard[0].busy > 0


def test_what_the_driver_does_not_tell(machine):
    """Without the memory a GPU is not shared; without the power the rest still counts."""
    write_use(machine.records, "work", SMALL_MODEL)
    for line in ("", "no such card", "GPU-0, [N/A], 5, 6, 7, 8"):
        (machine.cards / "0").write_text(f"{line}\n")
        assert sharing.look_at("0") is None
    first = machine.start()
    assert got(first)[0] == "0"
    second = machine.start()
    assert waits(second)
    first.kill()
    assert got(second)[0] == "0"
    with Watch("0", pause=0.05) as watch:
        time.sleep(0.2)
    assert watch.use() is None and watch.peak == 0
    (machine.cards / "0").write_text("GPU-0, 24000, 500, 30, [N/A], [N/A]\n")
    gpu = sharing.look_at("0")
    assert gpu.uuid == "GPU-0" and math.isnan(gpu.power)
    watch = Watch("0")
    watch.samples = [gpu, Gpu("GPU-0", 24000, 900, 50, math.nan, math.nan)]
    use = watch.use()
    assert (use.memory, use.busy, use.power) == (400, 0.4, None)


def test_memory_of_programs_that_do_not_ask_counts(machine):
    write_use(machine.records, "work", Use(4_000, 0.1, 0.1, 0.1))
    assert got(machine.start())
    machine.card("0", used=22_000)
    assert waits(machine.start())


def test_what_a_scheduler_gave_is_shared_within_it(machine):
    given = {"SLURM_JOB_ID": "77", "CUDA_VISIBLE_DEVICES": "0"}
    assert choices(given | {"CROSSALIGN_GPU_RECORDS": "r"}) == ["0"] and choices(given) == []
    assert choices({"CUDA_VISIBLE_DEVICES": "-1", "CROSSALIGN_GPU_RECORDS": "r"}) == []
    write_use(machine.records, "work", Use(8_000, 0.2, 0.2, 0.1))
    inside = [machine.start(**given) for _ in range(2)]
    assert [got(job)[0] for job in inside] == ["0", "0"]
    # Another SLURM job may see another GPU under the same number.
    assert got(machine.start(**given | {"SLURM_JOB_ID": "78"}))[0] == "0"
    assert waits(machine.start(**given))


def test_a_number_that_the_user_gives_wins(machine):
    write_use(machine.records, "work", DECODER)
    jobs = [machine.start(CROSSALIGN_GPU_SHARE="3") for _ in range(3)]
    assert [got(job)[0] for job in jobs] == ["0"] * 3
    assert waits(machine.start(CROSSALIGN_GPU_SHARE="3"))


def test_one_on_each_gpu_is_not_shared_and_needs_no_mps(machine):
    machine.install_mps()
    job = machine.start(CROSSALIGN_GPU_SHARE="1")
    assert got(job) == ["0", "0", "-"]
    job.communicate()
    assert not machine.lines("started") and not machine.records.exists()


# ---- MPS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(machine, monkeypatch):
    """The machine with MPS installed, and jobs small enough to share."""
    machine.install_mps()
    write_use(machine.records, "work", Use(1_000, 0.2, 0.2, 0.1))
    short = f"import crossalign.runtime.mps as mps; mps.LINGER = 0.4\n{JOB}"
    machine.start_job = lambda **variables: machine.start(short, **variables)
    return machine


def daemon(machine, places="mps-*"):
    return [int(file.read_text()) for file in machine.locks.glob(f"{places}/pipe/pid")]


def alive(number):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def keepers(machine):
    """Processes that keep a daemon of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if "crossalign.runtime.mps" in words and any(word.startswith(str(machine.locks)) for word in words):
            found.append(int(path.name))
    return found


def test_mps_is_started_once_and_ended_after_the_last_job_however_that_ends(served):
    place = served.locks / f"mps-{os.geteuid()}-0"
    first, second = served.start_job(), served.start_job()
    assert [got(first), got(second)] == [["0", "GPU-0", str(place / "pipe")]] * 2
    assert served.lines("started") == ["GPU-0"]  # this GPU alone
    assert len(keepers(served)) == 1
    (number,) = daemon(served)
    first.communicate()
    time.sleep(0.8)
    assert alive(number)
    second.kill()
    wait_for(lambda: not alive(number))
    wait_for(lambda: not place.exists())
    assert served.lines("ended") == [str(place / "pipe")]
    # And once more from the beginning.
    assert got(served.start_job())[2] == str(place / "pipe") and len(served.lines("started")) == 2


def test_after_a_crash_the_next_keeper_takes_over_and_ends_what_nobody_uses(served):
    served.card("1")
    jobs = [served.start_job(CROSSALIGN_GPUS=name) for name in "01"]
    assert [got(job)[0] for job in jobs] == ["0", "1"]
    numbers = daemon(served)
    for keeper in keepers(served):
        os.kill(keeper, signal.SIGKILL)
    for job in jobs:
        job.kill()
    assert all(map(alive, numbers)) and len(numbers) == 2
    assert got(served.start_job(CROSSALIGN_GPUS="0"))[0] == "0"
    assert len(served.lines("started")) == 2  # taken over
    wait_for(lambda: sorted(map(alive, numbers)) == [False, True])
    served.jobs[-1].kill()
    wait_for(lambda: not any(map(alive, numbers)))


def test_a_submission_serves_the_steps_that_come_and_go(served):
    """SLURM ends with a step all that the step has started, so the daemon is its submission's."""
    given = {"SLURM_JOB_ID": "77", "CUDA_VISIBLE_DEVICES": "0"}
    keep = "from crossalign.runtime import gpus, mps\nmps.LINGER = 0.2\ngpus.keep_mps()\nprint(flush=True)\ninput()\n"
    submission = served.start(keep, **given)
    got(submission)
    (number,) = daemon(served, "slurm-77/mps-*")
    time.sleep(0.6)
    assert alive(number)  # before the first step
    for _ in range(2):
        step = served.start_job(**given)
        assert got(step)[:2] == ["0", "GPU-0"]
        step.communicate()
    assert served.lines("started") == ["GPU-0"] and alive(number)
    submission.kill()
    wait_for(lambda: not alive(number))


def test_a_daemon_of_somebody_else_is_used_and_left_alone(served):
    theirs = subprocess.Popen(["sleep", "600"])
    (served.folder / "theirs" / "pid").write_text(str(theirs.pid))
    try:
        job = served.start_job()
        assert got(job) == ["0", "0", "-"]
        assert "through MPS" in job.communicate()[1]
        assert not served.lines("started") and not served.lines("ended") and theirs.poll() is None
    finally:
        theirs.kill()
        theirs.wait()


@pytest.mark.parametrize("cause", ["broken", "off", "long"])
def test_without_mps_jobs_share_all_the_same(served, cause):
    variables = {"CROSSALIGN_GPU_MPS": "off"} if cause == "off" else {}
    if cause == "broken":
        (served.folder / "broken").touch()
    elif cause == "long":
        variables = {"CROSSALIGN_GPU_LOCKS": str(served.folder / ("x" * 90))}
    jobs = [served.start_job(**variables) for _ in range(2)]
    assert [got(job) for job in jobs] == [["0", "0", "-"]] * 2
    # What does not start is not tried again by each job.
    assert len(served.lines("started")) == (1 if cause == "broken" else 0)


def test_a_folder_of_somebody_else_is_not_entered(served):
    place = served.locks / f"mps-{os.geteuid()}-0"
    place.mkdir(parents=True)
    place.chmod(0o755)
    assert mps.join(place, "GPU-0", os.environ) is None


# ---- too little memory ----------------------------------------------------------------------------------------------

# Runs out of memory until it has the GPU to itself, or always.
HUNGRY = """
import logging, os, sys, types
logging.basicConfig(level=logging.INFO, format="%(message)s")
class OutOfMemoryError(RuntimeError): pass
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(memory_reserved=lambda: 3000 * 2**20)
from crossalign.runtime.gpus import claim_gpus, restart_if_crowded
from crossalign.runtime.errors import run_main
def main():
    claim_gpus(kind="work", pause=0.02)
    print(os.environ.get("CROSSALIGN_GPU_ALONE"), os.environ["CUDA_VISIBLE_DEVICES"], *sys.argv[1:], flush=True)
    if "CROSSALIGN_GPU_ALONE" not in os.environ or "always" in os.environ:
        raise OutOfMemoryError("CUDA out of memory")
if __name__ == "__main__":
    run_main(main)
"""


@pytest.fixture
def hungry(machine):
    write_use(machine.records, "work", Use(4_000, 0.2, 0.2, 0.1))
    program = machine.folder / "hungry.py"
    program.write_text(HUNGRY)
    machine.hungry = lambda **variables: machine.start(str(program), **variables)
    return machine


def test_out_of_memory_beside_a_neighbour_runs_again_alone(hungry):
    neighbour = hungry.start()
    got(neighbour)
    hungry.card("0", used=18_000)
    job = hungry.hungry()
    assert got(job) == ["None", "0"]
    # It waits for the neighbour to go, and nobody comes in before it.
    told = [next(job.stderr) for _ in range(3)][-1]
    assert told.startswith("out of memory beside others that use 13.6 of the 23 GB of the GPU: this job starts again")
    assert waits(job) and waits(hungry.start())
    neighbour.communicate()
    assert got(job) == ["1", "0"] and job.wait(20) == 0


@pytest.mark.parametrize(("used", "variables", "starts"), [(4_000, {}, 1), (18_000, {"always": "1"}, 2)])
def test_out_of_memory_without_a_neighbour_or_a_second_time_is_a_failure(hungry, used, variables, starts):
    hungry.card("0", used=used)
    job = hungry.hungry(**variables)
    out, error = job.communicate(timeout=20)
    assert job.returncode == 1 and error.rstrip().endswith("OutOfMemoryError: CUDA out of memory")
    assert len(out.splitlines()) == starts


# ---- one line at the start of a run ---------------------------------------------------------------------------------


def test_the_run_says_how_its_jobs_share(machine):
    assert outlook(machine.records, [], 16, True) == ""
    told = outlook(machine.records, ["0"], 16, True)
    assert told.startswith("1 GPU of 23 GB, shared with MPS; each kind of job is measured first")
    machine.card("1")
    write_use(machine.records, "finetune-ner-128MB", SMALL_MODEL)
    (machine.records / "odd.json").write_text("[]")
    told = outlook(machine.records, ["0", "1"], 16, False)
    assert "2 GPUs of 23 GB, shared without MPS (no nvidia-cuda-mps-control)" in told
    assert "at a time on each: finetune-ner-128MB 2; others are measured first" in told and "\n" not in told
    assert json.loads((machine.records / "finetune-ner-128MB.json").read_text())["memory"] == 2300
