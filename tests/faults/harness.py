"""A tiny project to be hurt, Snakemake at work in it, and the processes below it."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.workflow import copy_project

# Few jobs, all kinds of them: data, a model that is kept and one that is not, scores, similarities, table and figure.
SMALL = {
    "items": ["align-predict/table8", "align-predict/figure2"],
    "align-predict": {"languages": ["en", "ru"], "extra_targets": [], "sources": ["en"], "layer_pairs": ["1-2"]}
    | {"layer_sets": ["1-2"], "own_treebanks": {}, "similarity_languages": ["ru"]},
}
SPLITS = {"train": 160, "dev": 6, "test": 6}
SIZES = SPLITS | {"extra": 2}
# The sources have sizes of their own.
WIKIANN = {"large": SIZES, "small": SIZES, "counts": {"en": SPLITS, "ru": SPLITS}}
TARGETS = ("align_predict", "results/demo/verdicts.csv")
# What tells of times and interruptions, and nothing else, may differ between two runs.
ACCOUNTS = ("logs", "benchmarks", "checkpoints", "tokens")
TIMES = ("seconds", "seconds_in_all", "resumed")
MARK = "CROSSALIGN_TEST_RUN"
NUMBERS = itertools.count()


def make_project(root: Path, folder: Path) -> None:
    """A copy of the workflow, with a tiny world and with checkpoints every tenth of a second instead of 5 minutes."""
    copy_project(root, folder, wikiann=WIKIANN)
    (folder / "config.small.json").write_text(json.dumps(SMALL), encoding="utf-8")
    module = folder / "scripts" / "crossalign" / "engine" / "checkpoints.py"
    text = module.read_text(encoding="utf-8")
    assert "seconds: float = 300.0" in text
    module.write_text(text.replace("seconds: float = 300.0", "seconds: float = 0.1"), encoding="utf-8")


def content(folder: Path) -> dict[str, object]:
    """All results of a project, byte for byte, without what tells of times."""
    results = folder / "results" / "demo"
    found: dict[str, object] = {}
    for path in sorted(results.rglob("*")):
        name = path.relative_to(results)
        if path.is_file() and name.parts[0] not in ACCOUNTS:
            found[str(name)] = path.read_bytes()
            if name.name == "training.json":
                report = json.loads(path.read_bytes())
                found[str(name)] = {key: value for key, value in report.items() if key not in TIMES}
    return found


def differing(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """The files that two runs do not share, bit for bit."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def left_halves(folder: Path) -> list[str]:
    """Temporary files that nobody will finish."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.part"))


def forget(folder: Path) -> None:
    """Delete all results but the data, so that there is work again."""
    for name in ("tuned", "similarity", "tables", "figures"):
        shutil.rmtree(folder / "results" / "demo" / name, ignore_errors=True)
    for name in ("verdicts.csv", "findings.csv", "findings.json"):
        (folder / "results" / "demo" / name).unlink(missing_ok=True)


class Process(NamedTuple):
    """A process of a run."""

    number: int
    parent: int
    command: str


class Run:
    """Snakemake at work in a project, and everything that it has started."""

    def __init__(self, folder: Path, *arguments: str, targets: tuple[str, ...] = TARGETS) -> None:
        self.folder, self.mark = folder, f"{os.getpid()}-{next(NUMBERS)}"
        self.log = folder / f"snakemake-{self.mark}.log"
        configs = [str(folder / name) for name in ("config/demo.yaml", "config.small.json")]
        command = [
            *(sys.executable, "-m", "snakemake", "--snakefile", str(folder / "Snakefile")),
            *("--directory", str(folder), "--cores", "2", "--scheduler", "greedy", "--rerun-incomplete"),
            *("--show-failed-logs", *arguments, "--configfile", *configs, "--", *targets),
        ]
        temporary = folder / "tmp"  # what a killed run leaves here is not the user's
        temporary.mkdir(exist_ok=True)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(temporary)}
        self.started = time.time()
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(
                command, stdout=stream, stderr=subprocess.STDOUT, env=environment | {MARK: self.mark}, cwd=folder
            )

    def family(self) -> list[Process]:
        """Snakemake and all its descendants, whoever adopted them; known by their environment."""
        found = []
        for place in Path("/proc").iterdir():
            try:
                if place.name.isdigit() and f"{MARK}={self.mark}\0".encode() in (place / "environ").read_bytes():
                    parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                    command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(Process(int(place.name), parent, command))
            except OSError:  # gone meanwhile, or another user's
                continue
        return sorted(found)

    def jobs(self) -> list[Process]:
        """The programs at work."""
        return [each for each in self.family() if "/scripts/" in each.command and "bash" not in each.command]

    def wait(self, happened: Callable[[], object], seconds: float = 120) -> bool:
        """Wait for something; whether it happened before the run ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            if happened():
                return True
            time.sleep(0.02)
        raise AssertionError(f"nothing happened for {seconds} seconds:\n{self.said()}")

    def touched(self, folder: str) -> int:
        """How many files below a folder of the results are newer than the run."""
        found = 0
        for path in _files(self.folder / "results" / "demo" / folder):
            # A job that is tried again loses its log first, maybe between the listing and the look.
            with contextlib.suppress(FileNotFoundError):
                found += path.stat().st_mtime > self.started
        return found

    def end(self, seconds: float = 240) -> int:
        """Wait until nothing of the run is left; its exit status."""
        status = self.process.wait(seconds)
        end = time.monotonic() + 60
        while self.family():
            assert time.monotonic() < end, f"left behind: {self.family()}"
            time.sleep(0.05)
        return status

    def said(self) -> str:
        """What Snakemake printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def strike(self, way: str, random: Random) -> str:
        """Kill something; what it was, as there may be no job at the moment."""
        jobs = self.jobs()
        if way in ("job", "stop", "stop and kill") and jobs:
            _send(random.choice(jobs), signal.SIGKILL if way == "job" else signal.SIGTERM)
            if way != "stop and kill":
                return way
            time.sleep(random.uniform(0, 0.08))  # meets the checkpoint while it is written
        elif way == "snakemake":
            self.process.kill()
            return way
        while family := self.family():
            for process in family:
                _send(process, signal.SIGKILL)
            self.process.poll()
        return "everything" if way != "stop and kill" or not jobs else way


def _files(place: Path) -> list[Path]:
    """The files below a folder in which others are at work: one may be gone when it is looked at."""
    return [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else []


def _send(process: Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.number, number)
