"""Whose lock is it? Snakemake's lock files name files only, so each run leaves a note of its process beside them.

After a hard crash the lock stays. It is removed here if no process of the run can be alive: the note is of this
machine, and neither its process nor a job that it started is there. What cannot be known is left to the user.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import itertools
import json
import os
import platform
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from crossalign.runtime.files import write_json

LOCKS = Path(".snakemake") / "locks"
NOTES = Path(".snakemake") / "crossalign"
LOGS = Path(".snakemake") / "log"
PROC = Path("/proc")
# In the environment of a run, and so of all its jobs.
TOKEN = "CROSSALIGN_RUN"
# Seconds that jobs of a killed run may take to notice and end; those of the warm start do.
PATIENCE = 5.0


@dataclass(frozen=True)
class Holder:
    """A run: where it was started, and as which process. `allocation` is the SLURM job that it is part of, if any."""

    host: str
    machine: str
    boot: str
    space: str
    user: int
    pid: int
    ticks: str
    since: str
    token: str
    allocation: str

    @property
    def file(self) -> Path:
        return NOTES / f"{self.host}-{self.pid}.json"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, started {self.since}"


@dataclass(frozen=True)
class Verdict:
    """`free`: no lock. `dead`: nobody holds it. `alive`, `jobs` (of a dead run), `unknown`: it must stay."""

    state: str
    told: str = ""


def read(path: Path) -> str:
    """A small file of the system; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def start_ticks(pid: int) -> str:
    """When a process started, in the kernel's ticks since boot; nothing if it is gone."""
    # The name, in brackets, may hold anything; after it come the state and, as the twentieth field, the start.
    fields = read(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def link(path: Path) -> str:
    """What a link in /proc points to, which need not be a path."""
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def this_process() -> Holder:
    """A note of this process. It becomes the run: number and start stay the same when it executes Snakemake."""
    return Holder(
        host=platform.node(),
        machine=read(Path("/etc/machine-id")),
        boot=read(PROC / "sys" / "kernel" / "random" / "boot_id"),
        # Numbers of processes mean something within one such space only: containers have their own.
        space=link(PROC / "self" / "ns" / "pid"),
        user=os.getuid(),
        pid=os.getpid(),
        ticks=start_ticks(os.getpid()),
        since=datetime.datetime.now().isoformat(sep=" ", timespec="seconds"),
        token=uuid.uuid4().hex,
        allocation=os.environ.get("SLURM_JOB_ID", ""),
    )


def enter(folder: Path, patience: float = PATIENCE) -> tuple[Holder, Verdict]:
    """Unlock `folder` if the lock is a dead run's, and leave a note of this one; what was found is told."""
    mine = this_process()
    (folder / NOTES).mkdir(parents=True, exist_ok=True)
    with alone(folder / NOTES / "lock") as sure:
        found = judge(folder, patience)
        if found.state == "dead" and not sure:
            found = Verdict("unknown", f"{found.told} But the file system has no locks, so two runs might unlock it.")
        elif found.state == "dead":
            # All that --unlock does, after it has planned the whole workflow.
            for lock in (folder / LOCKS).glob("*.lock"):
                lock.unlink(missing_ok=True)
        for holder in notes(folder):
            if holder and state_of(holder, mine).state == "dead":
                (folder / holder.file).unlink(missing_ok=True)
        write_json(folder / mine.file, asdict(mine))
    return mine, found


def leave(folder: Path) -> None:
    """The note of this process goes when the run ends by itself."""
    (folder / NOTES / f"{platform.node()}-{os.getpid()}.json").unlink(missing_ok=True)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[bool]:
    """One process at a time in the block; False where the file system cannot promise it."""
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True


def notes(folder: Path) -> list[Holder | None]:
    """The notes of the other runs in a folder, oldest first; None for each that cannot be read."""
    found: list[Holder | None] = []
    for file in (folder / NOTES).glob("*.json"):
        try:
            holder = Holder(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            found.append(None)
            continue
        if (holder.pid, holder.ticks) != (os.getpid(), start_ticks(os.getpid())):
            found.append(holder)
    return sorted(found, key=lambda holder: holder.since if holder else "")


def judge(folder: Path, patience: float = 0.0) -> Verdict:
    """Whether anybody can still hold the lock of `folder`."""
    if not any((folder / LOCKS).glob("*.lock")):
        return Verdict("free")
    if not PROC.is_dir():
        return Verdict("unknown", "The folder is locked, and this system does not tell which processes work in it.")
    end = time.monotonic() + patience
    while (found := look(folder)).state == "jobs" and time.monotonic() < end:
        time.sleep(0.2)
    return found


def look(folder: Path) -> Verdict:
    """One look at all who may hold the lock: what speaks most against unlocking counts."""
    mine, there = this_process(), notes(folder)
    busy = at_work_in(folder)
    found = [Verdict("alive", f"Another Snakemake works in this folder: {processes(busy)}.")] if busy else []
    found += [state_of(holder, mine) for holder in there if holder]
    hosts, owners = locked_by(folder)
    if strange := sorted(hosts - {mine.host, ""}):
        found.append(Verdict("unknown", f"The folder was locked by a run on {strange[0]}, and this is {mine.host}."))
    if mine.user and owners - {mine.user}:
        found.append(Verdict("unknown", "The folder was locked by a run of another user."))
    if None in there or ("" in hosts and not found):
        found.append(Verdict("unknown", "The folder is locked, and nothing says by which run."))
    for state in ("alive", "jobs", "unknown"):
        if told := [each for each in found if each.state == state]:
            return told[-1]
    which = f" ({there[-1]})" if there else ""
    return Verdict("dead", f"The run before this one{which} was killed, and none of its processes is alive.")


def state_of(holder: Holder, mine: Holder) -> Verdict:
    """What can be known from here of the run behind a note."""
    if (holder.host, holder.machine) != (mine.host, mine.machine):
        told = f"A run on another machine may hold the lock: {holder}; this is {mine.host}."
        return Verdict("unknown", f"{told} Look there: ps -p {holder.pid}")
    if holder.boot != mine.boot:
        return Verdict("dead")
    if holder.space != mine.space or (mine.user and holder.user != mine.user):
        return Verdict("unknown", f"A run of another user or in another container may hold the lock: {holder}.")
    if holder.ticks and start_ticks(holder.pid) == holder.ticks:
        return Verdict("alive", f"Another run works in this folder: {holder}.")
    if jobs := started_by(holder):
        told = f"The run before this one was killed, but jobs of it are still at work: {processes(jobs)}."
        return Verdict("jobs", told)
    return Verdict("dead")


def processes(numbers: list[int]) -> str:
    return f"process{'es' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def running() -> Iterator[tuple[int, Path]]:
    """The other processes of this machine."""
    for path in PROC.iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid() and start_ticks(int(path.name)):
            yield int(path.name), path


def started_by(holder: Holder) -> list[int]:
    """The jobs of a run, also those that have outlived it: its token is in their environment.

    What it has sent to SLURM is not among them: those jobs are cancelled when the next run starts.
    """
    token, allocation = f"{TOKEN}={holder.token}", f"SLURM_JOB_ID={holder.allocation}"
    found = []
    for number, path in running():
        with contextlib.suppress(OSError):
            words = os.fsdecode((path / "environ").read_bytes()).split("\0")
            elsewhere = any(word.startswith("SLURM_JOB_ID=") and word != allocation for word in words)
            if token in words and not elsewhere:
                found.append(number)
    return sorted(found)


def at_work_in(folder: Path) -> list[int]:
    """Snakemakes that work in a folder, whoever has started them; not those that run a single job of another."""
    found = []
    for number, path in running():
        with contextlib.suppress(OSError):
            words = os.fsdecode((path / "cmdline").read_bytes()).split("\0")
            # `python …/bin/snakemake`, `python -m snakemake`
            names = {Path(word).name for word in words[:3]}
            if "snakemake" in names and "--mode" not in words and link(path / "cwd") == str(folder.resolve()):
                found.append(number)
    return sorted(found)


def locked_by(folder: Path) -> tuple[set[str], set[int]]:
    """Hosts (empty if not known) and users of the runs that made the locks."""
    hosts, owners = set(), set()
    for lock in (folder / LOCKS).glob("*.lock"):
        with contextlib.suppress(FileNotFoundError):
            made = lock.stat()
            owners.add(made.st_uid)
            hosts.add(log_host(folder, made.st_mtime))
    return hosts, owners


def log_host(folder: Path, when: float) -> str:
    """The host that Snakemake's log of a run names: logs are called by their first moment, just before the lock's."""
    name = datetime.datetime.fromtimestamp(when + 1).isoformat().replace(":", "")
    logs = [log for log in (folder / LOGS).glob("*.snakemake.log") if log.name <= name]
    with contextlib.suppress(OSError, ValueError), max(logs).open(encoding="utf-8", errors="replace") as stream:
        for line in itertools.islice(stream, 50):
            if line.startswith("  Host: "):
                return line.partition(":")[2].strip()
    return ""
