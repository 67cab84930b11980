"""Warm starts: a job below tools/warm.py does what it does without, or runs without."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks of large libraries are safe on Linux only")

ROOT = Path(__file__).resolve().parents[2]
BIN = str(Path(sys.executable).parent)

# What a job sees. Who imported torch tells whether it is a fork.
PROBE = """
import json, os, sys, logging, time, signal
import torch
from crossalign import toy
print(json.dumps({
    "warm": torch.SERVER != os.getpid(), "toy": toy.VALUE, "argv": sys.argv[1:], "name": __name__, "path": sys.path[0],
    "cwd": os.getcwd(), "umask": os.umask(0), "temporary": os.environ.get("TMPDIR"), "stdin": sys.stdin.read(),
    "PATH": os.environ["PATH"], "group": os.getpgid(0) == os.getpid(), "file": __file__,
}))
print("to stderr", file=sys.stderr)
sys.exit(7)
"""
WAIT = """
import os, signal, subprocess, sys, time
import torch
if "save" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"saved\\n"), sys.exit(75)))
worker = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(os.getpid(), worker.pid, torch.SERVER != os.getpid(), flush=True)
time.sleep(60)
"""
TORCH = "import os\nSERVER = os.getpid()\n"


class Warm:
    """A server whose command waits for us, and jobs of it."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.folder = folder
        # What the environment of the test run may hold and a job would not.
        self.environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "OMP_NUM_THREADS": "1"}
        self.environment |= more
        self.command = subprocess.Popen(
            [sys.executable, folder.parent / "tools" / "warm.py", "--", "sh", "-c", 'echo "$PATH"; read line; exit 3'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment,
        )  # fmt: skip
        self.path = self.command.stdout.readline().strip()
        self.private = Path(self.path.split(":")[0]).parent

    def start(self, script: str, *arguments: str, **more: str) -> subprocess.Popen:
        return subprocess.Popen(
            ["python", script, *arguments], env=self.environment | {"PATH": self.path} | more, cwd=self.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, umask=0o027,
            executable=shutil.which("python", path=self.path),
        )  # fmt: skip

    def probe(self, **more: str) -> dict:
        job = self.start("probe.py", "a", "b c", **more)
        output, errors = job.communicate("some input")
        assert errors == "to stderr\n"
        assert job.returncode == 7
        return json.loads(output)

    def waiting(self, *arguments: str) -> tuple[subprocess.Popen, int, int]:
        job = self.start("wait.py", *arguments)
        number, worker, warm = job.stdout.readline().split()
        assert warm == "True"
        return job, int(number), int(worker)

    def server(self) -> int:
        return children(self.command.pid)[0]

    def close(self) -> None:
        self.command.communicate("\n")


def children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{parent}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


def toy_scripts(folder: Path, thread: bool = False) -> Path:
    """A folder of scripts with the real server and imitations of the libraries, which load in no time."""
    (folder / "crossalign").mkdir(parents=True)
    for name in ("runtime/errors.py", "__init__.py", "catalog/code_hash.py"):
        (folder / "crossalign" / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts" / "crossalign" / name, folder / "crossalign" / name)
    (folder.parent / "tools").mkdir()
    for file in (ROOT / "tools").glob("warm*.py"):
        shutil.copy(file, folder.parent / "tools")
    for name in ("tokenizers", "safetensors", "scipy", "matplotlib"):
        (folder / f"{name}.py").touch()
    from tools.warm import PROGRAMS

    for name in PROGRAMS:
        (folder / name).write_text("from crossalign import toy\n")
    (folder / "crossalign" / "toy.py").write_text("VALUE = 'old'\n")
    waiter = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    (folder / "torch.py").write_text(TORCH + waiter * thread)
    (folder / "probe.py").write_text(PROBE)
    (folder / "wait.py").write_text(WAIT)
    return folder


@pytest.fixture
def warm(tmp_path):
    server = Warm(toy_scripts(tmp_path / "scripts"))
    yield server
    server.close()


def gone(number: int) -> bool:
    """Whether a process ends within some seconds; one that nobody has waited for yet has ended."""
    for _ in range(200):
        try:
            if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_a_job_sees_what_it_sees_without_the_server(warm):
    found = warm.probe(TMPDIR="/elsewhere")
    assert found.pop("warm")
    assert found == {
        "toy": "old", "argv": ["a", "b c"], "name": "__main__", "path": str(warm.folder), "cwd": str(warm.folder),
        "umask": 0o027, "temporary": "/elsewhere", "stdin": "some input", "PATH": warm.environment["PATH"],
        "group": True, "file": str(warm.folder / "probe.py"),
    }  # fmt: skip
    cold = subprocess.run(
        [sys.executable, "probe.py", "a", "b c"], env=warm.environment | {"TMPDIR": "/elsewhere"}, cwd=warm.folder,
        umask=0o027, input="some input", capture_output=True, text=True, start_new_session=True, check=False,
    )  # fmt: skip
    assert json.loads(cold.stdout) == found | {"warm": False}


@pytest.mark.parametrize(
    ("surroundings", "served"),
    [
        *(({name: "2"}, False) for name in ("OMP_NUM_THREADS", "PYTHONHASHSEED")),
        ({"HOME": "/elsewhere"}, False),
        # What Snakemake sets.
        ({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")} | {"TMP": "/tmp", "SHLVL": "5"}, True),
    ],
)
def test_other_surroundings_run_cold(warm, surroundings, served):
    assert warm.probe(**surroundings)["warm"] == served


# An activated .venv exports the prompt.
@pytest.mark.parametrize("name", ["BASH_FUNC_module%%", "PS1"])
def test_variables_that_shells_drop_make_no_job_cold(tmp_path, name):
    warm = Warm(toy_scripts(tmp_path / "scripts"), **{name: "() { :; }"})
    assert warm.probe()["warm"]
    del warm.environment[name]
    assert warm.probe()["warm"]
    warm.close()


@pytest.mark.parametrize(
    ("thread", "surroundings", "reason"),
    [
        (False, {"HOME": "/secret", "MORE": "1"}, "the environment is another: HOME, MORE"),
        (False, {"OMP_NUM_THREADS": "2"}, "the job wants another number of threads"),
        (True, {}, "a library has started a thread"),
    ],
)
def test_a_cold_job_says_why_if_asked(tmp_path, thread, surroundings, reason):
    warm = Warm(toy_scripts(tmp_path / "scripts", thread), CROSSALIGN_WARM_WHY="1")
    job = warm.start("probe.py", **surroundings)
    assert job.communicate("")[1] == f"started cold: {reason}\nto stderr\n"
    os.kill(warm.server(), signal.SIGKILL)
    job = warm.start("probe.py")
    assert job.communicate("")[1] == "started cold: the server has gone\nto stderr\n"
    warm.close()
    shutil.rmtree(warm.private)


def test_scripts_of_other_folders_and_other_uses_of_python_run_cold(warm, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.py").write_text("import sys; print('torch' in sys.modules)")
    job = warm.start(str(other / "x.py"))
    assert job.communicate()[0] == "False\n"
    job = warm.start("-c", "import sys; print('torch' in sys.modules)")
    assert job.communicate()[0] == "False\n"


def test_code_that_has_changed_is_never_run_in_its_old_state(warm):
    file = warm.folder / "crossalign" / "toy.py"
    before = file.stat()
    assert warm.probe()["toy"] == "old"
    file.write_text("VALUE = 'newer'\n")
    found = warm.probe()
    assert (found["toy"], found["warm"]) == ("newer", False)
    file.write_text("VALUE = 'old'\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert warm.probe()["warm"]
    file.unlink()
    job = warm.start("probe.py")
    assert "cannot import name 'toy'" in job.communicate("")[1]


@pytest.mark.parametrize(
    ("code", "said"),
    [("import sys; sys.exit('a new message')", "a new message\n"), ("1 / 0", "ZeroDivisionError: division by zero\n")],
)
def test_a_changed_script_is_served_as_it_is_now_and_a_traceback_comes_through(warm, code, said):
    assert warm.probe()["warm"]
    (warm.folder / "probe.py").write_text(code)
    job = warm.start("probe.py")
    assert job.communicate()[1].endswith(said) and job.returncode == 1


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_job_and_client_alike(warm, name):
    if signal.getsignal(signal.Signals[name]) is signal.SIG_IGN:
        pytest.skip(f"the tests themselves were started with {name} ignored, as shells do in the background")
    client, number, worker = warm.waiting()
    client.send_signal(signal.Signals[name])
    assert client.wait(10) == -signal.Signals[name]
    assert gone(number)
    os.kill(worker, signal.SIGKILL)


def test_a_job_that_is_killed_looks_killed_and_none_is_left_without_its_client(warm):
    client, number, worker = warm.waiting()
    os.kill(number, signal.SIGKILL)
    assert client.wait(10) == -signal.SIGKILL
    os.kill(worker, signal.SIGKILL)
    client, number, worker = warm.waiting()
    client.kill()
    assert gone(number) and gone(worker)
    assert warm.probe()["warm"]


def test_nothing_is_left_when_the_command_ends_not_even_in_a_folder_with_a_long_name(tmp_path):
    place = tmp_path / ("long" * 20) / ("longer" * 10)
    place.mkdir(parents=True)
    warm = Warm(toy_scripts(tmp_path / "scripts"), TMPDIR=str(place))
    server = warm.server()
    assert warm.private.stat().st_mode & 0o777 == 0o700
    assert warm.probe()["warm"] and not list(place.iterdir())
    warm.close()
    assert warm.command.returncode == 3
    assert gone(server)
    assert not warm.private.exists()


def test_nothing_is_left_when_the_command_is_killed(tmp_path):
    warm = Warm(toy_scripts(tmp_path / "scripts"))
    server = warm.server()
    client, number, worker = warm.waiting("save")
    warm.command.kill()
    for process in (server, number, worker):
        assert gone(process)
    assert not warm.private.exists()
    assert client.wait(10) == 1
    assert "has gone" in client.stderr.read()
    warm.command.communicate()


def test_the_memory_manager_of_pyarrow_starts_no_thread(tmp_path):
    scripts = toy_scripts(tmp_path / "scripts")
    waiter = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    wanted = "os.environ.get('JE_ARROW_MALLOC_CONF') != 'background_thread:false'"
    (scripts / "pandas.py").write_text(f"import os, threading, time\nif {wanted}:\n    {waiter}\n")
    warm = Warm(scripts)
    assert warm.probe()["warm"]
    warm.close()


def test_a_fine_tuning_ends_with_the_same_bits(tmp_path):
    words = [f"{form}\t_\t{tag}" for form, tag in [("the", "DET"), ("dog", "NOUN"), ("of", "ADP"), ("sees", "VERB")]]
    rows = [f"1\t{words[i % 4]}\t_\t_\t0\troot\t_\t_\n2\t{words[i % 3]}\t_\t_\t1\tdep\t_\t_\n\n" for i in range(40)]
    (tmp_path / "train.conllu").write_text("".join(rows))
    (tmp_path / "settings.json").write_text('{"selection": "last", "epochs": 5, "batch": 4}')
    model = ROOT / "resources" / "demo" / "models" / "mbert"

    def options(out: str) -> list[str]:
        return (
            f"--model {model} --task parsing --train {tmp_path}/train.conllu --settings {tmp_path}/settings.json"
            f" --out {tmp_path}/{out} --checkpoints {tmp_path}/checkpoints-{out}"
        ).split()

    warm = Warm(ROOT / "scripts")
    cold = subprocess.run([sys.executable, "finetune.py", *options("cold")], cwd=warm.folder, env=warm.environment)
    assert cold.returncode == 0
    job = warm.start("finetune.py", *options("warm"))
    assert job.stderr.readline().startswith("epoch 1")
    assert len(children(warm.server())) == 1
    job.terminate()
    assert "stopped by SIGTERM" in job.communicate()[1]
    assert job.returncode == 75
    job = warm.start("finetune.py", *options("warm"))
    assert "going on" in job.communicate()[1]
    assert job.returncode == 0
    warm.close()
    results = [(tmp_path / out / "model" / "model.safetensors").read_bytes() for out in ("cold", "warm")]
    assert results[0] == results[1]


def test_the_command_must_be_given(tmp_path):
    program = [sys.executable, ROOT / "tools" / "warm.py"]
    wrong = subprocess.run(program, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "the following arguments are required: command" in wrong.stderr
    told = subprocess.run([*program, "--", "echo", "a", "--", "-b"], capture_output=True, text=True, check=False)
    assert told.stdout == "a -- -b\n"
    absent = subprocess.run([*program, "--", "no-such-program"], capture_output=True, text=True, check=False)
    assert absent.returncode == 1
    assert absent.stderr == "error: no-such-program cannot be started: No such file or directory\n"
