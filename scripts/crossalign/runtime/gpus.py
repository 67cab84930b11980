"""Which GPU a program works on, and who works beside it: each takes a free GPU, or a place on one, by a lock.

A lock is the kernel's own on an open file. It goes when the program ends, however it ends, so no GPU stays taken by
one that was killed, and two workflows on one machine cannot take the same GPU. The locks of a machine lie in a folder
of that machine, never on a network file system. In its lock a program notes what it takes of the GPU.

Below a workflow jobs share a GPU by themselves (crossalign.runtime.sharing): the first job of a kind has a GPU to
itself and is measured, and from then on as many work at a time as fit.

    CROSSALIGN_GPUS          the GPUs to use, such as 0,2,3; all that the driver reports if not set
    CROSSALIGN_GPU_SHARE     how many programs may work on one GPU at the same time, instead of what was measured
    CROSSALIGN_GPU_MPS       off: do not start NVIDIA's MPS
    CROSSALIGN_GPU_RECORDS   the folder of what jobs took; the workflow sets it; without it programs do not share
    CROSSALIGN_GPU_LOCKS     the folder of the locks, if not the one for temporary files
"""

import contextlib
import fcntl
import json
import logging
import math
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from crossalign.runtime import mps
from crossalign.runtime.errors import AT_GOOD_END, UserError
from crossalign.runtime.sharing import (
    SPARE,
    Gpu,
    Room,
    Use,
    Watch,
    ask_driver,
    look_at,
    mps_installed,
    obstacle,
    read_use,
    sentence,
    write_use,
)

log = logging.getLogger(__name__)

# All may add files, and with the sticky bit remove only their own: as in the folder for temporary files.
SHARED = 0o1777
OTHER_FOLDER = "CROSSALIGN_GPU_LOCKS names another folder for locks"
RECORDS = "CROSSALIGN_GPU_RECORDS"
# Set when a program starts itself again because its neighbours left it too little memory.
ALONE = "CROSSALIGN_GPU_ALONE"
CONTEXT = 1024.0  # MB that a program holds beside its tensors
BACK_OFF = 5.0  # seconds
NOT_SHARED = "taken, or wanted by a job that has it to itself"
# In a job's log; the plan takes these seconds off what the job took (crossalign.plan.costs).
WAITED = "waited %.1f s for a GPU"


def claim_gpus(kind: str = "", pause: float = 0.5) -> list[str]:
    """Choose a GPU for this program by CUDA_VISIBLE_DEVICES and wait for it; none where there is nothing to choose.

    Must come before anything that looks for GPUs: what CUDA has seen once stays as it was. `kind` names jobs that take
    about the same.
    """
    names = choices(os.environ)
    if not names or Claim.mine:
        return []
    claim = Claim(lock_folder(os.environ), names, wish(os.environ, kind), kind)
    claim.wait(pause)
    claim.settle_in()
    Claim.mine = claim
    return list(claim.held)


def keep_mps() -> None:
    """Serve the jobs that this process will start: theirs would end with the step of SLURM that has started it."""
    for name in choices(os.environ) if mps_installed() else ():
        if gpu := look_at(name):
            mps.join(mps_place(lock_folder(os.environ), name), gpu.uuid, os.environ)


def mps_place(folder: Path, name: str) -> Path:
    return folder / f"mps-{os.geteuid()}-{name}"


def choices(environment: Mapping[str, str]) -> list[str]:
    """The GPUs to choose from. A choice that a scheduler or the user has made is final, unless the workflow shares."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None and not environment.get("SLURM_JOB_ID"):
        return gpus(environment)
    names = visible.split(",") if visible and RECORDS in environment else []
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


def jobs_per_gpu(environment: Mapping[str, str]) -> int:
    """How many programs may share a GPU, where the user says so."""
    text = environment.get("CROSSALIGN_GPU_SHARE", "1")
    if not text.isdigit() or int(text) == 0:
        raise UserError(f"CROSSALIGN_GPU_SHARE={text}: the number of programs per GPU was expected, such as 2")
    return int(text)


def wish(environment: Mapping[str, str], kind: str) -> Callable[[], Use | None]:
    """What a program will take of a GPU, as far as it is known now; None asks for a whole GPU."""
    if ALONE not in environment:
        if "CROSSALIGN_GPU_SHARE" in environment:
            share = jobs_per_gpu(environment)
            return lambda: Use(0.0, 1 / share) if share > 1 else None
        if kind and RECORDS in environment:
            return lambda: read_use(environment[RECORDS], kind)
    return lambda: None


def lock_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the locks: the machine's, or within it one for the SLURM job, which numbers its GPUs by itself."""
    folder = _machine_folder(environment)
    if job := environment.get("SLURM_JOB_ID"):
        folder /= f"slurm-{job}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _machine_folder(environment: Mapping[str, str]) -> Path:
    """A folder that is the same for all users of the machine: each adds locks, none removes those of others.

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


@dataclass(frozen=True)
class Note:
    """What a program writes into its lock; `use` is None as long as it wants the GPU to itself."""

    use: Use | None = None
    memory: float = math.inf
    mps: bool = False


class Claim:
    """A program's claim to a GPU, from its first look to its end."""

    mine: "Claim | None" = None

    def __init__(self, folder: Path, names: Sequence[str], wish: Callable[[], Use | None], kind: str = "") -> None:
        self.folder, self.names, self.wish, self.kind = folder, names, wish, kind
        # By GPU, and held open until the program ends; closing it frees the GPU.
        self.held: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.others: list[Note] = []
        self.why, self.not_before = NOT_SHARED, 0.0
        self.use: Use | None = None
        self.before = os.environ.get("CUDA_VISIBLE_DEVICES")
        self.served: dict[str, str] = {}
        self.mps = False

    def wait(self, pause: float = 0.5) -> None:
        """Until a GPU is this program's, or a place on one."""
        began = None
        while not self.attempt():
            if began is None:
                began = time.monotonic()
                log.info("waiting for a GPU (%s): %s", ", ".join(self.names), self.why)
            time.sleep(pause)
        if began is not None:
            log.info(WAITED, time.monotonic() - began)

    def attempt(self) -> bool:
        """Take what is wanted if it is there. Empty GPUs come first."""
        self.use = self.wish()
        with self._one_at_a_time():
            present = {name: self._present(name) for name in self.names}
            # Who wants a whole GPU reserves it, else small jobs would come and go on it for ever.
            open_to_me = [name for name in self.names if name in self.reserved or not self._is_held(f"{name}.next")]
            order = sorted(open_to_me, key=lambda name: len(present[name]))
            free = next((name for name in order if not self._obstacle(name, present)), None)
            if free is not None:
                self.others = present[free]
                self.held = {free: self._take(free)}
            elif self.use is None and order and not self.reserved:
                self.reserved = {order[0]: self._lock(f"{order[0]}.next")}
            if self.held or self.use is not None:
                for lock in self.reserved.values():
                    os.close(lock)
                self.reserved = {}
        return bool(self.held)

    def _obstacle(self, name: str, present: dict[str, list[Note]]) -> str:
        """Why this program must not go onto a GPU now."""
        if not (there := present[name]):
            return ""
        uses = [note.use for note in there]
        if self.use is None or None in uses:
            self.why = NOT_SHARED
            return self.why
        room = Room(min(note.memory for note in there), cores(), any(note.mps for note in there))
        elsewhere = sum(note.use.cores for other in present if other != name for note in present[other] if note.use)
        self.why = obstacle(room, uses, self.use, elsewhere)
        if not self.why and self._crowded(name):
            self.why = "memory, which other programs use"
        return self.why

    def _crowded(self, name: str) -> bool:
        """Whether programs that do not ask have left too little memory; the driver is not asked all the time."""
        if self.use.memory and time.monotonic() > self.not_before:
            gpu = look_at(name)
            if gpu and gpu.total - gpu.used < self.use.memory:
                self.not_before = time.monotonic() + BACK_OFF
        return time.monotonic() < self.not_before

    def settle_in(self) -> None:
        """Join MPS, tell the neighbours what this program takes, and measure it if nobody knows."""
        (name,) = self.held
        gpu = None
        measured = self.kind and RECORDS in os.environ and "CROSSALIGN_GPU_SHARE" not in os.environ
        if self.use is not None or measured:
            gpu = look_at(name)
        if gpu and mps_installed():
            self._join_mps(name, gpu)
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu.uuid if gpu and self.served else name
        if gpu is None and self.use and self.use.memory:
            self.use = None  # nobody knows what is free
        self.note = Note(self.use, self._memory(gpu), self.mps)
        self._write(self.note)
        beside = f", beside {len(self.others)} other{'s' * (len(self.others) > 1)}" if self.others else ""
        log.info("working on GPU %s%s%s", name, beside, " through MPS" * self.mps)
        sys.excepthook = _hook(sys.excepthook)
        if gpu and self.use is None:
            self.watch = Watch(name, then=self._measured).__enter__()
            AT_GOOD_END.append(self._end_watch)
        elif self.use and self.use.memory:
            log.info("%s", sentence(self.kind, Room(self.note.memory, cores(), self.mps), self.use))

    def _memory(self, gpu: Gpu | None) -> float:
        """MB that our programs may use together: what others had before the first of ours came is not among it."""
        if self.others:
            return min(note.memory for note in self.others)
        return SPARE * gpu.total - gpu.used if gpu else math.inf

    def _join_mps(self, name: str, gpu: Gpu) -> None:
        found = mps.join(mps_place(self.folder, name), gpu.uuid, os.environ)
        if found is None:
            log.info("NVIDIA's MPS does not start: jobs on this GPU take turns")
        else:
            self.served, self.mps_lock = found
            self.mps = True
            os.environ.update(self.served)

    def _end_watch(self) -> None:
        self.watch.__exit__()
        if self.note.use is None and (use := self.watch.use()):
            self._measured(use)

    def _measured(self, use: Use) -> None:
        """Let others in: it is known now what jobs of this kind take."""
        with contextlib.suppress(OSError, UserError):  # no reason for a job to fail
            write_use(os.environ[RECORDS], self.kind, use)
        log.info("%s", sentence(self.kind, Room(self.note.memory, cores(), self.note.mps), use))
        if ALONE not in os.environ:
            self.note = replace(self.note, use=use)
            self._write(self.note)

    # ---- locks --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Programs look and take one after another."""
        lock = _open(self.folder / "lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _lock(self, name: str) -> int | None:
        return mps.take(_open(self.folder / f"{name}.lock"))

    def _is_held(self, name: str) -> bool:
        if (lock := self._lock(name)) is None:
            return True
        os.close(lock)
        return False

    def _present(self, name: str) -> list[Note]:
        """The notes of the programs on a GPU."""
        return [_read(file) for file in sorted(self.folder.glob(f"{name}.[0-9]*.lock")) if self._is_held(file.stem)]

    def _take(self, name: str) -> int:
        """The lowest free place on a GPU."""
        place = 0
        while (lock := self._lock(f"{name}.{place}")) is None:
            place += 1
        os.ftruncate(lock, 0)
        return lock

    def _write(self, note: Note) -> None:
        text = json.dumps(asdict(note)).encode()
        with self._one_at_a_time():
            for lock in self.held.values():
                os.ftruncate(lock, 0)
                os.pwrite(lock, text, 0)


def _read(file: Path) -> Note:
    """The note in a lock; one that cannot be read is of a program that wants the GPU to itself."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Note(Use(**found["use"]) if found["use"] else None, found["memory"], found["mps"])
    except (OSError, ValueError, LookupError, TypeError):
        return Note()


def cores() -> int:
    """The cores that this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- starting again -------------------------------------------------------------------------------------------------


def restart_if_crowded() -> None:
    """After a lack of GPU memory: if others use the GPU too, start this program again, alone on it, once."""
    mine = Claim.mine
    if mine is None or ALONE in os.environ or not (gpu := look_at(next(iter(mine.held)))):
        return
    torch = sys.modules.get("torch")
    others = gpu.used - (torch.cuda.memory_reserved() / 2**20 if torch else 0.0) - CONTEXT
    if others > 0:
        told = f"out of memory beside others that use {others / 1024:.1f} of the {gpu.total / 1024:.0f} GB of the GPU"
        _restart(f"{told}: this job starts again and waits for a GPU of its own", {ALONE: "1"})


def restart_without_mps() -> None:
    """CUDA does not start: if MPS is between, try without."""
    if Claim.mine and Claim.mine.served:
        _restart("CUDA does not start through MPS: this job starts again without", {"CROSSALIGN_GPU_MPS": "off"})


def _restart(why: str, variables: dict[str, str]) -> None:
    """Become the same program once more; its locks and its memory on the GPU are free by then."""
    log.warning("%s", why)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {name: value for name, value in os.environ.items() if name not in Claim.mine.served}
    kept.pop("CUDA_VISIBLE_DEVICES")
    if Claim.mine.before is not None:
        kept["CUDA_VISIBLE_DEVICES"] = Claim.mine.before
    os.execve(sys.executable, [sys.executable, *sys.argv], kept | variables)


def _hook(usual: Callable) -> Callable:
    """An excepthook for programs on a GPU."""

    def hook(kind: type, error: BaseException, trace: object) -> None:
        if kind.__name__ == "OutOfMemoryError" or "CUDA error: out of memory" in str(error):
            restart_if_crowded()
        usual(kind, error, trace)

    return hook


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
