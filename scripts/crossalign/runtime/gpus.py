"""Which GPU a program works on: it takes a slot of one by a lock, and waits until there is one.

A GPU has as many slots as programs share it. A lock is the kernel's own on an open file. It goes when the program ends,
however it ends, so no GPU stays taken by one that was killed, and two workflows on one machine cannot take the same
slot. The locks of a machine lie in a folder of that machine, never on a network file system.

    CROSSALIGN_GPUS          the GPUs to use, such as 0,2,3; all that the driver reports if not set
    CROSSALIGN_GPU_SHARE     how many programs share each GPU; the workflow sets what its profile says (`share`)
    CROSSALIGN_GPU_MPS       off: do not start NVIDIA's MPS
    CROSSALIGN_GPU_LOCKS     the folder of the locks, if not the one for temporary files
"""

import atexit
import contextlib
import fcntl
import itertools
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path

from crossalign.runtime.errors import UserError

log = logging.getLogger(__name__)

SHARE = "CROSSALIGN_GPU_SHARE"
# Set when a program starts itself again because its neighbours left it too little memory.
ALONE = "CROSSALIGN_GPU_ALONE"
OTHER_FOLDER = "CROSSALIGN_GPU_LOCKS names another folder for locks"
# In a job's log; the plan takes these seconds off what the job took (crossalign.plan.costs).
WAITED = "waited %.1f s for a GPU"
# All may add files, and with the sticky bit remove only their own: as in the folder for temporary files.
STICKY = 0o1777
MPS = "CROSSALIGN_GPU_MPS"
CONTROL = "nvidia-cuda-mps-control"
PIPES = "CUDA_MPS_PIPE_DIRECTORY"
LONGEST = 85  # bytes: MPS puts sockets into the folder, and their names are limited


def claim_gpu(alone: bool = False, pause: float = 0.2) -> str:
    """Take a slot of a GPU and choose it by CUDA_VISIBLE_DEVICES; nothing where there is nothing to choose.

    `alone`: all slots of a GPU. Must come before anything that looks for GPUs: what CUDA has seen once stays as it was.
    """
    names = choices(os.environ)
    if not names or Slot.mine:
        return ""
    alone = alone or ALONE in os.environ
    Slot.mine = Slot(lock_folder(os.environ), names, 1 if alone else jobs_per_gpu(os.environ))
    Slot.mine.wait(pause)
    os.environ["CUDA_VISIBLE_DEVICES"] = Slot.mine.gpu
    sys.excepthook = _hook(sys.excepthook)
    return Slot.mine.gpu


def choices(environment: Mapping[str, str]) -> list[str]:
    """The GPUs to choose from: within what a scheduler or the user gave, which outside a workflow is final."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None and not environment.get("SLURM_JOB_ID"):
        return gpus(environment)
    names = visible.split(",") if visible and SHARE in environment else []
    return names if all(map(_is_gpu, names)) else []  # -1 means none


def gpus(environment: Mapping[str, str]) -> list[str]:
    """The GPUs of this machine: those that are named, or all that the driver reports."""
    named = environment.get("CROSSALIGN_GPUS")
    if named is None:
        return ask_driver("--query-gpu=index", "--format=csv,noheader").split()
    found = [name.strip() for name in named.split(",")]
    if len(set(found)) != len(found) or not all(map(_is_gpu, found)):
        raise UserError(f"CROSSALIGN_GPUS={named}: numbers of different GPUs were expected, such as 0,2,3")
    return found


def _is_gpu(name: str) -> bool:
    return name.isdigit() or name.startswith(("GPU-", "MIG-"))


def ask_driver(*question: str) -> str:
    """What nvidia-smi answers; nothing without a driver."""
    try:
        done = subprocess.run(["nvidia-smi", *question], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def unique_name(gpu: str) -> str:
    """The GPU's UUID, which all processes of the machine share; its number where the driver tells none."""
    return ask_driver(f"--id={gpu}", "--query-gpu=uuid", "--format=csv,noheader").strip() or gpu


def jobs_per_gpu(environment: Mapping[str, str]) -> int:
    """How many programs share a GPU."""
    text = environment.get(SHARE, "1")
    if not text.isdigit() or int(text) == 0:
        raise UserError(f"{SHARE}={text}: the number of programs per GPU was expected, such as 2")
    return int(text)


# ---- slots ----------------------------------------------------------------------------------------------------------


class Slot:
    """A program's part of a GPU, from its first look to its end.

    It holds the lock of a numbered slot; who shares with nobody holds the GPU's lock `alone` instead.
    """

    mine: "Slot | None" = None

    def __init__(self, folder: Path, names: list[str], share: int) -> None:
        self.folder, self.share = folder, share
        self.names = [unique_name(name) for name in names]
        self.gpu, self.held = "", -1
        self.before = os.environ.get("CUDA_VISIBLE_DEVICES")

    def wait(self, pause: float) -> None:
        """Until a slot is this program's."""
        began = None
        while not self.attempt():
            if began is None:
                began = time.monotonic()
                log.info("waiting for a GPU (%s): taken, or wanted by a job that needs it alone", ", ".join(self.names))
            time.sleep(pause)
        if began is not None:
            log.info(WAITED, time.monotonic() - began)
        log.info("working on GPU %s%s", self.gpu, f", of {self.share} at most" if self.share > 1 else "")

    def attempt(self) -> bool:
        """Take a slot if there is one, on the emptiest GPU. Where somebody wants the whole of it, nobody else joins."""
        with locked(self.folder):
            if not self.gpu:
                taken = {gpu: self.taken(gpu) for gpu in self.names if not self._is_held(f"{gpu}.alone")}
                gpu = min(taken, key=taken.__getitem__, default=None)
                if gpu is None or 1 < self.share <= taken[gpu]:
                    return False
                places = [f"{gpu}.alone"] if self.share == 1 else (f"{gpu}.{number}" for number in itertools.count())
                self.gpu, self.held = gpu, next(lock for lock in map(self._lock, places) if lock is not None)
            return self.share > 1 or not self.taken(self.gpu)

    def taken(self, gpu: str) -> int:
        """How many slots of a GPU are taken."""
        return sum(self._is_held(file.stem) for file in self.folder.glob(f"{gpu}.[0-9]*.lock"))

    def _is_held(self, name: str) -> bool:
        if (lock := self._lock(name)) is None:
            return True
        os.close(lock)
        return False

    def _lock(self, name: str) -> int | None:
        """An open file with its lock taken; None where somebody else holds it."""
        lock = _open(self.folder / f"{name}.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            os.close(lock)
            return None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Programs look and take one after another."""
    lock = _open(folder / "lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open(file: Path) -> int:
    """A lock file, which any user of the machine may hold. A link that somebody put in its place is not followed."""
    how = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    # Not created where it exists: the kernel may forbid that for files of others.
    for flags in (how, how | os.O_CREAT | os.O_EXCL, how):
        try:
            with _nothing_masked():
                return os.open(file, flags, 0o666)
        except OSError as error:
            if not isinstance(error, FileNotFoundError | FileExistsError):
                raise UserError(f"{file}: cannot be locked ({error.strerror}); {OTHER_FOLDER}") from None
    raise UserError(f"{file}: cannot be locked (a link); {OTHER_FOLDER}")


def lock_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the locks: one for all users of the machine, or within it one for the SLURM job.

    Each user adds locks, none removes those of others. UserError for a folder in which others could replace a lock. Its
    owner could, but gains nothing: whoever is on the machine may use a GPU without asking.
    """
    folder = Path(environment.get("CROSSALIGN_GPU_LOCKS") or Path(tempfile.gettempdir()) / "crossalign-gpus")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), _nothing_masked():
            folder.mkdir(mode=STICKY)
        found = folder.lstat()
    except OSError as error:
        raise UserError(f"{folder}: no folder for locks can be made ({error.strerror}); {OTHER_FOLDER}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{folder}: not a folder, and links are not followed; {OTHER_FOLDER}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        if found.st_uid != os.geteuid():
            raise UserError(f"{folder}: others could replace locks in it (no sticky bit: chmod +t); {OTHER_FOLDER}")
        folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_ISVTX)
    if job := environment.get("SLURM_JOB_ID"):
        folder /= f"slurm-{job}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextlib.contextmanager
def _nothing_masked() -> Iterator[None]:
    """What is made here gets the mode that is asked for at once, so that no other user finds it closed."""
    mask = os.umask(0)
    try:
        yield
    finally:
        os.umask(mask)


# ---- starting again -------------------------------------------------------------------------------------------------


def restart_if_crowded() -> None:
    """After a lack of GPU memory: if others use the GPU too, start this program again, alone on it."""
    mine = Slot.mine
    if mine and mine.share > 1 and mine.taken(mine.gpu) > 1:
        _restart("out of memory beside other jobs: this job starts again and waits for a GPU of its own", {ALONE: "1"})


def restart_without_mps() -> None:
    """CUDA does not start: if MPS is between, try without, once."""
    if Slot.mine and PIPES in os.environ and os.environ.get(MPS) != "off":
        del os.environ[PIPES]
        _restart("CUDA does not start through MPS: this job starts again without", {MPS: "off"})


def _restart(why: str, variables: dict[str, str]) -> None:
    """Become the same program once more; its slot and its memory on the GPU are free by then."""
    log.warning("%s", why)
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, **variables}
    del environment["CUDA_VISIBLE_DEVICES"]
    if Slot.mine.before is not None:
        environment["CUDA_VISIBLE_DEVICES"] = Slot.mine.before
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def _hook(usual: Callable) -> Callable:
    """An excepthook for programs on a GPU."""

    def hook(kind: type, error: BaseException, trace: object) -> None:
        if kind.__name__ == "OutOfMemoryError" or "CUDA error: out of memory" in str(error):
            restart_if_crowded()
        usual(kind, error, trace)

    return hook


# ---- MPS ------------------------------------------------------------------------------------------------------------


def share_by_mps(environment: MutableMapping[str, str]) -> bool:
    """Let the jobs of this process work side by side on a GPU by NVIDIA's MPS; without it they take turns.

    For the process that starts the jobs: a run, under SLURM a submission. The daemon ends with the last run of this
    user that needs it. One that somebody else has started is used and left alone.
    """
    if environment.get(MPS) == "off" or shutil.which(CONTROL) is None:
        return False
    if _ask_mps(environment, "get_server_list"):
        return True
    names = ",".join(map(unique_name, choices(environment)))
    folder = lock_folder(environment)
    place = folder / f"mps-{os.geteuid()}-{zlib.crc32(names.encode()):08x}"
    if len(os.fsencode(place)) > LONGEST:
        return False
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return False
    users = os.open(place / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)  # waits while another run ends the daemon
    variables = {PIPES: str(place), "CUDA_MPS_LOG_DIRECTORY": str(place)}
    served = {**environment, **variables}
    with locked(folder):
        if not _ask_mps(served, "get_server_list"):
            # A daemon that saw other GPUs would put contexts on them, too.
            subprocess.run([CONTROL, "-d"], env={**served, "CUDA_VISIBLE_DEVICES": names}, timeout=60, check=False)
    if not _ask_mps(served, "get_server_list"):
        os.close(users)
        return False
    environment.update(variables)
    atexit.register(_leave_mps, users, served)
    return True


def _leave_mps(users: int, environment: Mapping[str, str]) -> None:
    """End the daemon unless another run uses it."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _ask_mps(environment, "quit")
    os.close(users)


def _ask_mps(environment: Mapping[str, str], request: str) -> bool:
    """Whether a daemon answers a request."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": 60}
    try:
        done = subprocess.run([CONTROL], input=f"{request}\n", env=dict(environment), **how)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "Cannot find" not in done.stdout
