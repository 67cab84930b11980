"""The server behind `tools/warm.py`: has the large libraries imported and becomes, fork by fork, the jobs.

A job is served only if the result is sure to be that of a fresh Python: no project file changed since it was imported,
the environment is the server's own, one thread, no GPU looked at. Everything else is left to the client, which then
runs cold.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import re
import selectors
import shutil
import signal
import socket
import sys
from pathlib import Path

from tools.warm_client import PASSED, TAKEN
from tools.warm_job import Job, receive, run

from crossalign.catalog.code_hash import closure

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
# Programs whose modules are imported beforehand, and libraries that they import late.
PROGRAMS = (
    "finetune.py", "evaluate.py", "adjust.py", "train_bilstm.py", "embed_sentences.py", "embed_words.py", "compare.py",
    "measure_distances.py", "make_table.py", "make_figure.py",
)  # fmt: skip
LIBRARIES = (
    "torch", "tokenizers", "safetensors.torch", "scipy.linalg", "scipy.stats", "pandas", "matplotlib.figure",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg",
)  # fmt: skip
GPUS = ("/dev/nvidia", "/dev/kfd", "/dev/dri")
# Libraries count their threads when they are loaded, so a job must want what the server has.
THREADS = {
    f"{name}_THREADS": "1"
    for name in ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
}
# pyarrow's memory manager for x86 starts a thread when it is imported, unless it is told not to.
NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
# What shells and Snakemake change for every job, and no library looks at while it is imported.
# The prompts are exported by an activated .venv, and scripts of bash drop them.
FREE = {
    *("PWD", "OLDPWD", "SHLVL", "_", "PS1", "PS2", "TMPDIR", "TMP", "TEMPDIR", "TEMP"),
    *("CROSSALIGN_GPU_SHARE", "CROSSALIGN_SLOTS"),
}


# Shells drop variables whose names they cannot write, such as bash's exported functions, which clusters are full of.
WRITABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def become_server(listener: socket.socket, ended: int, folder: Path) -> None:
    """Serve until the pipe `ended` closes, and remove `folder`. In a fork: run the job. Never returns."""
    surroundings = dict(os.environ)
    # A terminal's signals are the command's, and so are its streams.
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    os.environ.update(THREADS | NO_THREAD)
    server = Server(listener, ended, folder, surroundings)
    try:
        job = server.run()
    except BaseException:
        server.stop()
    server.leave()
    run(job)


def load() -> dict[str, tuple[int, int]] | str:
    """Import everything; the project's files with their times and sizes, or why jobs must not be forks."""
    files = set().union(*(closure(SCRIPTS / program) for program in PROGRAMS))
    modules = (".".join(file.relative_to(SCRIPTS).with_suffix("").parts) for file in files if file.parent != SCRIPTS)
    for name in (*LIBRARIES, *sorted(modules)):
        with contextlib.suppress(ImportError):  # what a program needs and lacks is for the program to tell
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # the collector of a fork would copy all that the forks share
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        # A fork has one thread only, and would wait for the others for ever.
        return "a library has started a thread"
    if opened(GPUS):
        # A GPU that was looked at before a fork cannot be used after it; mere imports look at none.
        return "a library has looked at a GPU"
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {file: state(file) for file in files if file and Path(file).is_relative_to(SCRIPTS)}


def compared(environment: dict[str, str]) -> set[tuple[str, str]]:
    """What must be the same for a job as for the server."""
    free = FREE | THREADS.keys()
    return {(name, value) for name, value in environment.items() if name not in free and WRITABLE.fullmatch(name)}


def opened(prefixes: tuple[str, ...]) -> bool:
    """Whether a file whose name begins so is open in this process."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one by which the folder itself is read is closed again
            if str(link.readlink()).startswith(prefixes):
                return True
    return False


def state(file: str) -> tuple[int, int]:
    """What changes when a file does."""
    with contextlib.suppress(OSError):
        found = Path(file).stat()
        return found.st_mtime_ns, found.st_size
    return 0, 0


def kill(child: int) -> None:
    """End a job and what it has started."""
    for send in (os.killpg, os.kill):  # a very young one has no group yet
        with contextlib.suppress(OSError):
            send(child, signal.SIGKILL)


class Server:
    """Accepts jobs, forks, passes signals on, tells clients how their jobs ended."""

    def __init__(self, listener: socket.socket, ended: int, folder: Path, surroundings: dict[str, str]) -> None:
        self.listener, self.ended, self.folder, self.surroundings = listener, ended, folder, surroundings
        self.clients: dict[int, socket.socket] = {}  # by process number of the job
        # The end of a child interrupts nothing by itself; it puts a byte into this pipe.
        self.woken, self.waker = os.pipe()
        for end in (self.woken, self.waker):
            os.set_blocking(end, False)

    def run(self) -> Job:
        """Serve. Returns in forks only, with what they are to do."""
        self.files = load()
        signal.set_wakeup_fd(self.waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The server goes when the command does, even if a scheduler asks all to go: jobs may have something to save. A
        # fork gets its first signals when it is ready for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)
        with selectors.DefaultSelector() as self.waiting:
            for source in (self.listener, self.ended, self.woken):
                self.waiting.register(source, selectors.EVENT_READ)
            while True:
                for key, _ in self.waiting.select():
                    if key.fileobj is self.listener:
                        job = self.accept()
                        if job is not None:
                            return job
                    elif key.fileobj == self.ended:
                        self.stop()
                    elif key.fileobj == self.woken:
                        self.reap()
                    elif key.data in self.clients:
                        self.hear(key.data)

    def accept(self) -> Job | None:
        """Take a job, or say why not and hang up; the job itself only in the fork."""
        client, _ = self.listener.accept()
        job = None
        try:
            client.settimeout(5)
            job = receive(client)
            if reason := self.refusal(job):
                client.sendall(os.fsencode(reason))
                raise OSError(reason)
            client.sendall(TAKEN)
        except (OSError, ValueError):
            client.close()
        else:
            server = os.getpid()
            child = os.fork()
            self.clients[child] = client
            if not child:
                self.parent = server
                return job
            self.waiting.register(client, selectors.EVENT_READ, child)
        for stream in job.streams if job else ():
            os.close(stream)
        return None

    def refusal(self, job: Job) -> str:
        """Why a fork would not do exactly what a fresh Python does; empty if it would."""
        if isinstance(self.files, str):
            return self.files
        if Path(job.folder, job.arguments[0]).resolve().parent != SCRIPTS:
            return f"{job.arguments[0]} is not one of the project's programs"
        # Their values may be secret.
        if others := sorted(name for name, _ in compared(job.environment) ^ compared(self.surroundings)):
            return f"the environment is another: {', '.join(dict.fromkeys(others))}"
        threads = {name: value for name, value in job.environment.items() if name in THREADS}
        if "OMP_NUM_THREADS" not in threads or not threads.items() <= THREADS.items():
            return "the job wants another number of threads"
        changed = [file for file, known in self.files.items() if state(file) != known]
        return f"{changed[0]} has changed" if changed else ""

    def leave(self) -> None:
        """In a fork: away with all that is the server's, and die with it."""
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != self.parent:
            os._exit(1)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
        for connection in (self.listener, *self.clients.values()):
            connection.close()
        for end in (self.ended, self.woken, self.waker):
            os.close(end)

    def hear(self, child: int) -> None:
        """Pass signals on to a job; if its client has gone, the job goes too."""
        try:
            numbers = self.clients[child].recv(64)
        except OSError:
            numbers = b""
        for number in numbers:
            os.kill(child, number)
        if not numbers:
            self.waiting.unregister(self.clients[child])
            kill(child)

    def reap(self) -> None:
        """Tell clients how their jobs ended."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 4096)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                client = self.clients.pop(ended[0])
                with contextlib.suppress(OSError):
                    client.sendall(ended[1].to_bytes(4, "big"))
                with contextlib.suppress(KeyError):
                    self.waiting.unregister(client)
                client.close()

    def stop(self) -> None:
        """The command has ended: leave nothing behind."""
        for child in self.clients:
            kill(child)
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)
