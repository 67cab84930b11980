"""Run a command, such as snakemake, with a warm start for the programs in this folder.

Importing torch takes longer than many a job of the demo. So a server imports it once, and each `python scripts/X.py`
below the command becomes a fork of it: same files, same bits, seconds sooner. The command is not told: a `python` that
knows the server (warm_client.py) comes first on its PATH. A job is served only if the result is sure to be that of a
fresh Python: no project file changed since it was imported, the environment is the server's own, one thread. All else
runs as if nothing of this existed; with CROSSALIGN_WARM_WHY=1 in the environment such a job says why.

Example:
    python tools/warm.py -- snakemake --profile profiles/demo all
"""

import argparse
import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.warm_client import PASSED

TOOLS = Path(__file__).resolve().parent
SCRIPTS = TOOLS.parent / "scripts"
# Programs whose modules are imported beforehand, and libraries that they import late.
PROGRAMS = (
    "finetune.py", "evaluate.py", "adjust.py", "train_bilstm.py", "embed_sentences.py", "embed_words.py", "compare.py",
    "measure_distances.py", "make_table.py", "make_figure.py",
)  # fmt: skip
LIBRARIES = (
    "torch", "tokenizers", "safetensors.torch", "scipy.linalg", "scipy.stats", "pandas", "matplotlib.figure",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg",
)  # fmt: skip
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


def main() -> None:
    """Start the server if it can be of use, then become the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="+", help="what to run, with its arguments")
    command = parser.parse_args().command
    # Forks of large libraries are safe on Linux only; and the server must be the Python that jobs would get.
    usual, this = Path(shutil.which("python") or "/"), Path(sys.executable)
    if sys.platform == "linux" and (usual.parent, usual.resolve()) == (this.parent, this.resolve()):
        start()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ignored by Python, and that would be inherited
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"error: {command[0]} cannot be started: {error.strerror}")


def start() -> None:
    """Put the client on the PATH and fork the server, where this does not return."""
    # In /tmp, because names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="crossalign-", dir="/tmp"))
    shim = folder / "bin" / "python"
    shim.parent.mkdir()
    places = [str(TOOLS / "warm_client.py"), str(folder / "socket"), str(shim.parent)]
    shim.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-I", "-S", *places])} "$@"\n')
    shim.chmod(0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / "socket"))
    listener.listen(64)  # from now on jobs wait for the server's imports, which cost them less than their own
    command = os.getpid()
    if os.fork():
        os.environ["PATH"] = os.pathsep.join([str(shim.parent), os.environ.get("PATH", os.defpath)])
        return
    server, job = Server(command, listener), None
    with contextlib.suppress(BaseException):
        server.load()
        job = server.serve()
    if job:
        job()
    for child in server.jobs:
        os.killpg(child, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


class Server:
    """Has the large libraries imported, becomes the jobs, and tells clients how they ended."""

    def __init__(self, command: int, listener: socket.socket) -> None:
        self.command, self.listener = command, listener
        self.jobs: dict[int, socket.socket] = {}  # clients by process number
        self.environment, self.trouble = compared(os.environ), ""
        # A terminal's signals are the command's, and so are its streams.
        os.setsid()
        for stream in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), stream)
        # The server goes when the command does, even if a scheduler asks all to go: jobs may have something to save. A
        # fork gets its first signals when it is ready for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)

    def load(self) -> None:
        """Import everything, and remember the project's files as they are now."""
        os.environ.update(THREADS | NO_THREAD)
        sys.path[:2] = [str(SCRIPTS)]  # as for a script in that folder
        from crossalign.catalog.code_hash import closure

        files = set().union(*(closure(SCRIPTS / program) for program in PROGRAMS))
        parts = [file.relative_to(SCRIPTS).with_suffix("").parts for file in files if file.parent != SCRIPTS]
        for name in (*LIBRARIES, *sorted(map(".".join, parts))):
            with contextlib.suppress(ImportError):  # what a program needs and lacks is for the program to tell
                importlib.import_module(name)
        gc.collect()
        gc.freeze()  # the collector of a fork would copy all that the forks share
        if len(list(Path("/proc/self/task").iterdir())) > 1:
            # A fork has one thread only, and would wait for the others for ever.
            self.trouble = "a library has started a thread"
        loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        self.files = {file: state(file) for file in loaded if file and Path(file).is_relative_to(SCRIPTS)}

    def serve(self) -> Callable[[], NoReturn] | None:
        """Take jobs until the command ends. In forks: return what they are to do."""
        while os.getppid() == self.command:
            for ready in select.select([self.listener, *self.jobs.values()], [], [], 0.02)[0]:
                if ready is not self.listener:  # a client says nothing more: it has gone
                    os.killpg(next(child for child, client in self.jobs.items() if client is ready), signal.SIGKILL)
                elif job := self.take(self.listener.accept()[0]):
                    return job
            while self.jobs and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self.jobs.pop(ended[0]) as client, contextlib.suppress(OSError):
                    client.send(str(ended[1]).encode())
        return None

    def take(self, client: socket.socket) -> Callable[[], NoReturn] | None:
        """Fork for a job, or say why not. In the fork: return what it is to do."""
        streams, child, server = [], 0, os.getpid()
        with contextlib.suppress(OSError, ValueError):
            client.settimeout(5)
            request, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
            folder, mask, count, *rest = os.fsdecode(request).split("\0")
            arguments, variables = rest[: int(count)], rest[int(count) :]
            environment = dict(variable.split("=", 1) for variable in variables)
            if reason := self.refusal(folder, arguments, environment):
                client.send(os.fsencode(reason))
            elif child := os.fork():
                self.jobs[child] = client
                os.setpgid(child, child)  # it does so itself, but may have to be killed before
                client.send(str(child).encode())
            else:
                return partial(run, server, streams, folder, int(mask), arguments, environment)
        for stream in streams:
            os.close(stream)
        if child not in self.jobs:
            client.close()
        return None

    def refusal(self, folder: str, arguments: list[str], environment: dict[str, str]) -> str:
        """Why a fork would not do exactly what a fresh Python does; empty if it would."""
        if Path(folder, arguments[0]).resolve().parent != SCRIPTS:
            return f"{arguments[0]} is not one of the project's programs"
        # Their values may be secret.
        if others := {name for name, _ in compared(environment) ^ self.environment}:
            return f"the environment is another: {', '.join(sorted(others))}"
        threads = {name: value for name, value in environment.items() if name in THREADS}
        if "OMP_NUM_THREADS" not in threads or not threads.items() <= THREADS.items():
            return "the job wants another number of threads"
        changed = [file for file, known in self.files.items() if state(file) != known]
        return f"{changed[0]} has changed" if changed else self.trouble


def compared(environment: Mapping[str, str]) -> set[tuple[str, str]]:
    """What must be the same for a job as for the server.

    Shells drop variables whose names they cannot write, such as bash's exported functions, which clusters are full of.
    """
    free = FREE | THREADS.keys()
    return {(name, value) for name, value in environment.items() if name not in free and name.isidentifier()}


def state(file: str) -> tuple[int, int]:
    """What changes when a file does."""
    with contextlib.suppress(OSError):
        found = Path(file).stat()
        return found.st_mtime_ns, found.st_size
    return 0, 0


def run(
    server: int, streams: list[int], folder: str, mask: int, arguments: list[str], environment: dict[str, str]
) -> NoReturn:
    """Do what `python ARGUMENTS` does, but end without taking all libraries apart, which takes a third of a second."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a job ends with the server
    if os.getppid() != server:
        os._exit(1)
    os.setpgid(0, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Python decides this when it starts.
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(folder)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv = arguments
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
    status: object = None
    try:
        runpy.run_path(str(Path(arguments[0]).absolute()), run_name="__main__")
    except SystemExit as wish:
        status = wish.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit((status or 0) & 0xFF)


if __name__ == "__main__":
    main()
