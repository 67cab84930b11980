"""Running Snakemake on the test cluster with the repository's own profile, and looking at what its jobs do."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml
from tests.slurm.cluster import Cluster
from tests.slurm.settings import ACCOUNT, PARTITION

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = Path(__file__).with_name("launch.py")


def fill_in(folder: Path, accounting: bool = True) -> Path:
    """The SLURM profile as a user would fill it in, and faster: a test has no network file system and little time."""
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    resources = profile["default-resources"]
    resources |= {"slurm_account": ACCOUNT, "slurm_partition": PARTITION, "slurm_extra": "'--signal=TERM@10'"}
    if not accounting:
        # Without accounting there are no accounts, and the executor refuses any that is named.
        del resources["slurm_account"], profile["slurm-efficiency-report"]
    profile |= {"latency-wait": 5, "slurm-init-seconds-before-status-checks": 1, "max-status-checks-per-second": 2}
    target = folder / "profile"
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.yaml").write_text(yaml.safe_dump(profile, sort_keys=False), encoding="utf-8")
    return target


class Run:
    """One Snakemake at work."""

    def __init__(self, cluster: Cluster, folder: Path, *arguments: str, snakefile: Path | None = None) -> None:
        self.cluster, self.folder, self.log = cluster, folder, folder / f"snakemake-{time.monotonic_ns()}.log"
        command = [
            *(sys.executable, str(LAUNCH), "--snakefile", str(snakefile or folder / "Snakefile")),
            *("--directory", str(folder), "--profile", str(fill_in(folder, cluster.accounting)), *arguments),
        ]
        # Programs of the rules must be this Python's; the first folder of PATH is the executor's business.
        path = f"{Path(sys.executable).parent}{os.pathsep}{cluster.environment['PATH']}"
        environment = cluster.environment | {
            "PATH": path,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(command, env=environment, cwd=folder, stdout=stream, stderr=stream)

    def finish(self, seconds: float = 240) -> str:
        """Wait for its good end; returns what it said."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"not finished after {seconds} s{self.account()}") from None
        assert status == 0, self.account()
        return self.said()

    def kill(self) -> None:
        """End it as the kernel does when memory is short: it cannot say goodbye to its jobs."""
        self.process.kill()
        self.process.wait()

    def wait(self, condition, what: str, seconds: float = 150) -> None:
        """Wait until a condition holds, while Snakemake is alive."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"ended before {what}{self.account()}"
            assert time.monotonic() < end, f"waited {seconds} s for {what}{self.account()}"
            time.sleep(0.1)

    def said(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8")

    def account(self) -> str:
        """All that helps to understand a failure."""
        logs = [file for file in self.folder.rglob("*.log") if "slurm-logs" in file.parts or "logs" in file.parts]
        text = "".join(f"\n--- {file}\n{file.read_text(encoding='utf-8')[-1500:]}" for file in sorted(logs))
        queue = self.cluster.ask("squeue", "--states=all", "--format=%i %T %M %R %k")
        return f"\n{self.said()[-6000:]}{text}\n--- queue\n{queue}{self.cluster.logs()}"


def trainings(folder: Path) -> list[int]:
    """The processes of fine-tunings in `folder` that are ready for SIGTERM."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_text().split("\0")
            if str(folder / "scripts" / "finetune.py") in words and "python" in Path(words[0]).name:
                found += [int(entry.name)] if handled(int(entry.name)) & 1 << (signal.SIGTERM - 1) else []
        except (OSError, UnicodeDecodeError):
            continue
    return found


def training(folder: Path) -> int | None:
    """The process of a fine-tuning in `folder` that is ready for SIGTERM, if there is one."""
    return next(iter(trainings(folder)), None)


def job_of(process: int) -> str:
    """The number of the SLURM job that a process belongs to."""
    variables = Path(f"/proc/{process}/environ").read_text().split("\0")
    return next(text for text in variables if text.startswith("SLURM_JOB_ID=")).partition("=")[2]


def handled(process: int) -> int:
    """The signals that a process handles itself, as bits."""
    return signals(process, "SigCgt")


def pending(process: int) -> int:
    """The signals that wait for a process to run again, as bits."""
    return signals(process, "ShdPnd")


def signals(process: int, kind: str) -> int:
    """Some signals of a process, as the system tells them."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{kind}:")).split()[1], 16)


def journal(folder: Path) -> list[dict]:
    """What the workers of the miniature workflow have written down."""
    file = folder / "journal"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
