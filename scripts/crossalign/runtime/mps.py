"""NVIDIA's MPS for a GPU that programs share: started by the first of them, ended after the last.

One daemon serves one GPU for one user, with a folder of its own. A keeper, which no program waits for, starts it and
ends it when no program has used it for a while. Programs hold a shared lock as long as they live, so it does not matter
how they end. If the keeper is killed, the next program starts another, which takes the daemon over. A daemon that
somebody else runs is used and left alone.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from crossalign.runtime.sharing import MPS_CONTROL

LINGER = 20.0  # seconds: the next job may be about to start
PATIENCE = 20.0  # seconds that a daemon may take to start
AGAIN = 600.0  # seconds until a daemon that could not be started is tried again
LONGEST = 80  # bytes: MPS puts sockets into the folder, and their names are limited


def variables(place: Path) -> dict[str, str]:
    """What leads a program to the daemon of this place."""
    return {"CUDA_MPS_PIPE_DIRECTORY": str(place / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(place / "log")}


def ask(environment: Mapping[str, str], request: str) -> bool:
    """Whether a daemon answers a request."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": 60}
    try:
        done = subprocess.run([MPS_CONTROL], input=f"{request}\n", env=dict(environment), **how)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "Cannot find" not in done.stdout


def running(environment: Mapping[str, str]) -> bool:
    return ask(environment, "get_server_list")


def join(place: Path, uuid: str, environment: Mapping[str, str]) -> tuple[dict[str, str], int | None] | None:
    """Variables that lead to a daemon, and the lock to hold while it is used; None if there is none.

    Both are empty for a daemon of somebody else, which programs find by themselves.
    """
    if running(environment):
        return {}, None
    if len(os.fsencode(place / "pipe")) > LONGEST:
        return None
    end = time.monotonic() + PATIENCE
    lock = enter(place)
    while lock is not None and time.monotonic() < end and not failed(place):
        if not ours(place, lock):
            os.close(lock)
            lock = enter(place)
        elif not kept(place):
            start_keeper(place, uuid, environment)
        elif running({**environment, **variables(place)}):
            return variables(place), lock
        else:
            time.sleep(0.1)
    if lock is not None:
        os.close(lock)
    return None


def enter(place: Path) -> int | None:
    """A shared lock in the folder of a daemon, which is made if need be; None if the folder is somebody else's."""
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return None
    lock = _open(place / "users")
    fcntl.flock(lock, fcntl.LOCK_SH)  # waits while a keeper ends
    return lock


def ours(place: Path, lock: int) -> bool:
    """Whether a lock is on the file that the keeper looks at, not on one that an earlier keeper has removed."""
    with contextlib.suppress(OSError):
        return (place / "users").stat().st_ino == os.fstat(lock).st_ino
    return False


def start_keeper(place: Path, uuid: str, environment: Mapping[str, str]) -> None:
    """A process in a session of its own. Of two the second gives up."""
    # The daemon must see this GPU alone, else it would put contexts on all.
    alone = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "CUDA_VISIBLE_DEVICES": uuid} | variables(place)
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command = [sys.executable, "-m", "crossalign.runtime.mps", str(place), str(LINGER)]
    keeper = subprocess.Popen(command, env={**environment, **alone}, cwd="/", start_new_session=True, **quiet)
    while keeper.poll() is None and not kept(place):
        time.sleep(0.02)


def kept(place: Path) -> bool:
    """Whether a keeper is at work."""
    if (lock := lock_alone(place / "keeper")) is not None:
        os.close(lock)
    return lock is None


def lock_alone(file: Path) -> int | None:
    """A lock that nobody else holds on a file, or None."""
    with contextlib.suppress(OSError):
        return take(_open(file))
    return None


def take(lock: int) -> int | None:
    """An open file with its lock taken; closed, and None, where somebody else holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    except BlockingIOError:
        os.close(lock)
        return None


def failed(place: Path) -> bool:
    """Whether the daemon could not be started a short while ago."""
    with contextlib.suppress(OSError):
        return time.time() - (place / "failed").stat().st_mtime < AGAIN
    return False


def _open(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def keep(place: Path, linger: float) -> None:
    """Run the daemon until nobody has used it for so many seconds."""
    if lock_alone(place / "keeper") is None:
        return
    if not running(os.environ):
        for folder in map(Path, variables(place).values()):
            shutil.rmtree(folder, ignore_errors=True)  # of a daemon that is dead
            folder.mkdir(mode=0o700)
        if subprocess.run([MPS_CONTROL, "-d"], timeout=PATIENCE).returncode:
            (place / "failed").touch()
            return
    sweep(place)
    used = time.monotonic()
    while True:
        time.sleep(min(1.0, linger / 4))
        if (users := lock_alone(place / "users")) is None:
            used = time.monotonic()
        elif time.monotonic() - used > linger:
            break  # and keep the lock
        else:
            os.close(users)
    remove(place)


def remove(place: Path) -> None:
    """End a daemon that nobody uses. Those who come meanwhile wait for the lock, then make the folder again."""
    ask({**os.environ, **variables(place)}, "quit")
    shutil.rmtree(place, ignore_errors=True)


def sweep(place: Path) -> None:
    """End the daemons of this user whose keepers were killed and which nobody uses any more."""
    for other in place.parent.glob(f"mps-{os.geteuid()}-*"):
        if other != place and (keeper := lock_alone(other / "keeper")) is not None:
            if lock_alone(other / "users") is not None:
                remove(other)
            os.close(keeper)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), float(sys.argv[2]))
