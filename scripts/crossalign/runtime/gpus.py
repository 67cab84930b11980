"""Which GPU a program works on, where no scheduler says so: each takes a free GPU, or a free part of one, by a lock.

A lock is the kernel's own on an open file. It goes when the program ends, however it ends, so no GPU stays taken by
one that was killed, and two workflows on one machine cannot take the same GPU. The locks of a machine lie in a folder
of that machine, never on a network file system.

    CROSSALIGN_GPUS        the GPUs to use, such as 0,2,3; all that the driver reports if not set
    CROSSALIGN_GPU_SHARE   how many programs may work on one GPU at the same time; 1 if not set
    CROSSALIGN_GPU_LOCKS   the folder of the locks, if not the one for temporary files
"""

import contextlib
import fcntl
import logging
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from crossalign.runtime.errors import UserError

log = logging.getLogger(__name__)

# All may add files, and with the sticky bit remove only their own: as in the folder for temporary files.
SHARED = 0o1777
RENAMED = {
    "CROSSALIGN_CARDS": "CROSSALIGN_GPUS",
    "CROSSALIGN_CARD_SHARE": "CROSSALIGN_GPU_SHARE",
    "CROSSALIGN_CARD_LOCKS": "CROSSALIGN_GPU_LOCKS",
}
OTHER_FOLDER = "CROSSALIGN_GPU_LOCKS names another folder for locks"
# Held open until the program ends; closing one frees its GPU.
_held: list[int] = []


def claim_gpus(count: int = 1, pause: float = 0.5) -> list[str]:
    """Choose GPUs for this program by CUDA_VISIBLE_DEVICES and wait for them; none where there is nothing to choose.

    Must come before anything that looks for GPUs: what CUDA has seen once stays as it was.
    """
    if old := [name for name in RENAMED if name in os.environ]:
        raise UserError(f"{old[0]} is called {RENAMED[old[0]]} now")
    if assigned(os.environ):
        return []
    names = gpus(os.environ)
    if not names:
        return []
    taken = take_gpus(lock_folder(os.environ), names, jobs_per_gpu(os.environ), count, pause)
    _held.extend(taken.values())
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
    log.info("working on GPU %s", ", ".join(taken))
    return list(taken)


def hand_on() -> None:
    """Let a program that takes this one's place, and all that it starts, hold the GPUs until the last of them ends."""
    for lock in _held:
        os.set_inheritable(lock, True)


def assigned(environment: Mapping[str, str]) -> bool:
    """Whether the choice is made: by a scheduler, by the user, or by this program before."""
    return bool(environment.get("SLURM_JOB_ID")) or "CUDA_VISIBLE_DEVICES" in environment


def gpus(environment: Mapping[str, str]) -> list[str]:
    """The GPUs of this machine: those that are named, or all that the driver reports."""
    named = environment.get("CROSSALIGN_GPUS")
    if named is None:
        return _ask_driver().split()
    found = [name.strip() for name in named.split(",")]
    if len(set(found)) != len(found) or not all(name.isdigit() or name.startswith(("GPU-", "MIG-")) for name in found):
        raise UserError(f"CROSSALIGN_GPUS={named}: numbers of different GPUs were expected, such as 0,2,3")
    return found


def _ask_driver() -> str:
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def jobs_per_gpu(environment: Mapping[str, str]) -> int:
    """How many programs may share a GPU."""
    text = environment.get("CROSSALIGN_GPU_SHARE", "1")
    if not text.isdigit() or int(text) == 0:
        raise UserError(f"CROSSALIGN_GPU_SHARE={text}: the number of programs per GPU was expected, such as 2")
    return int(text)


def lock_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the locks, the same for all users of the machine: each adds locks, none removes those of others.

    UserError for a folder in which others could replace a lock. Its owner could, but gains nothing: whoever is on the
    machine may use a GPU without asking, and what lies in place of a lock is never followed (see `_open`).
    """
    folder = Path(environment.get("CROSSALIGN_GPU_LOCKS") or Path(tempfile.gettempdir()) / "crossalign-gpus")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), _nothing_masked():
            folder.mkdir(mode=SHARED)
        found = folder.lstat()
    except OSError as error:
        raise UserError(f"{folder}: no folder for locks can be made ({error.strerror}); {OTHER_FOLDER}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{folder}: not a folder, and links are not followed; {OTHER_FOLDER}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        # Made by an earlier version, which set no sticky bit, or by the user.
        if found.st_uid != os.geteuid():
            raise UserError(f"{folder}: others could replace locks in it (no sticky bit: chmod +t); {OTHER_FOLDER}")
        folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_ISVTX)
    return folder


@contextlib.contextmanager
def _nothing_masked() -> Iterator[None]:
    """What is made here gets the mode that is asked for at once, so that no other user finds it closed."""
    mask = os.umask(0)
    try:
        yield
    finally:
        os.umask(mask)


def take_gpus(folder: Path, names: Sequence[str], share: int = 1, count: int = 1, pause: float = 0.5) -> dict[str, int]:
    """GPUs and the open files that hold them; waits while fewer are free."""
    if count > len(names):
        raise UserError(f"{count} GPUs are needed, and this machine has {len(names)} ({', '.join(names)})")
    waited = False
    while not (taken := try_gpus(folder, names, share, count)):
        if not waited:
            log.info("all GPUs (%s) are taken, %d at a time on each: waiting", ", ".join(names), share)
        waited = True
        time.sleep(pause)
    return taken


def try_gpus(folder: Path, names: Sequence[str], share: int = 1, count: int = 1) -> dict[str, int]:
    """Different GPUs and the open files that hold them, or none while fewer are free. Empty GPUs come first."""
    taken: dict[str, int] = {}
    for place in range(share):
        for name in names:
            if len(taken) < count and name not in taken:
                lock = _open(folder / f"{name}.{place}.lock")
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    taken[name] = lock
                except BlockingIOError:
                    os.close(lock)
    if len(taken) == count:
        return taken
    # All or nothing: two programs that each keep a part of what both need would wait for each other.
    for lock in taken.values():
        os.close(lock)
    return {}


def _open(file: Path) -> int:
    """The lock file, which any user of the machine may hold."""
    # A link that somebody put in its place would make or open a file elsewhere; a pipe or a device is no lock.
    how = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        try:
            # Not created where it exists: the kernel may forbid that for files of others.
            lock = os.open(file, how)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError), _nothing_masked():
                return os.open(file, how | os.O_CREAT | os.O_EXCL, 0o666)
            lock = os.open(file, how)  # another program was quicker
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            os.close(lock)
            raise UserError(f"{file}: cannot be locked (not a file); {OTHER_FOLDER}")
        return lock
    except OSError as error:
        raise UserError(f"{file}: cannot be locked ({error.strerror}); {OTHER_FOLDER}") from None
