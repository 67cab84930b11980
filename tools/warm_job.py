"""A job of the server behind `tools/warm.py`: how its request is read, and how a fork becomes it."""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import socket
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Job:
    """What a client asks for: its surroundings and its three streams."""

    folder: str
    mask: int
    arguments: list[str]
    environment: dict[str, str]
    streams: list[int]


def receive(client: socket.socket) -> Job:
    """Read a request; `warm_client.py` writes it."""
    head, streams, _, _ = socket.recv_fds(client, 4, 3)
    try:
        size, body = int.from_bytes(head, "big"), b""
        while len(body) < size:
            part = client.recv(size - len(body))
            if not part:
                raise ValueError("the client has gone")
            body += part
        folder, mask, count, *rest = os.fsdecode(body).split("\0")
        if len(streams) != 3 or int(count) < 1:
            raise ValueError("not a request")
        environment = dict(pair.split("=", 1) for pair in rest[int(count) :])
        return Job(folder, int(mask), rest[: int(count)], environment, streams)
    except (OSError, ValueError):
        for stream in streams:
            os.close(stream)
        raise


def _enter(job: Job) -> None:
    """The state in which Python starts a script."""
    for stream, number in zip(job.streams, (0, 1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    # Python decides this when it starts.
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(job.folder)
    os.umask(job.mask)
    os.environ.clear()
    os.environ.update(job.environment)
    tempfile.tempdir = None
    sys.argv = job.arguments


def run(job: Job) -> None:
    """Do what `python ARGUMENTS` does, but end without taking all libraries apart, which takes a third of a second."""
    _enter(job)
    status: object = None
    try:
        runpy.run_path(str(Path(job.arguments[0]).absolute()), run_name="__main__")
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
