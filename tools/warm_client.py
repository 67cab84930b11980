"""What runs instead of `python` below `tools/warm.py`: hands the job to the server, or else to the real Python.

Called as `python -IS warm_client.py SOCKET FOLDER SCRIPT ARGUMENTS`, once per job, so it imports next to nothing.
FOLDER is where this `python` was found. Whatever is in doubt runs cold; with CROSSALIGN_WARM_WHY in the environment the
job then says why.
"""

import contextlib
import os
import signal
import socket
import sys

# Sent on to the job: it has a process group of its own, so that no signal reaches it twice.
PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
# The server's answer to a job that it takes.
TAKEN = b"\1"


def hand_over(address: str, arguments: list[str], environment: dict[str, str]) -> socket.socket | None:
    """A connection over which the job's end will be told; None if the server does not take the job."""
    mask = os.umask(0)
    os.umask(mask)
    here = os.getcwd()  # noqa: PTH109 (pathlib takes longer than all the rest)
    fields = [here, str(mask), str(len(arguments)), *arguments, *map("=".join, environment.items())]
    # None of these can hold a NUL.
    body = os.fsencode("\0".join(fields))
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
        socket.send_fds(server, [len(body).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(body)
        answer = server.recv(1)
        if answer == TAKEN:
            return server
        while part := server.recv(4096):
            answer += part
    except OSError:
        answer = b""
    if "CROSSALIGN_WARM_WHY" in environment:
        print("started cold:", os.fsdecode(answer) or "the server has gone", file=sys.stderr, flush=True)
    return None


def follow(server: socket.socket) -> None:
    """Pass signals on, wait for the job's end and end in the same way."""

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(OSError):
            server.send(bytes([number]))

    for number in PASSED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
    answer = b""
    while len(answer) < 4:
        part = b""
        with contextlib.suppress(OSError):
            part = server.recv(4 - len(answer))
        if not part:
            sys.exit("error: the server of tools/warm.py has gone, and this job with it")
        answer += part
    code = os.waitstatus_to_exitcode(int.from_bytes(answer, "big"))
    if code < 0:
        # Killed; a process that only exits with a number would look as if it had decided so itself.
        with contextlib.suppress(OSError):  # SIGKILL has no handler to remove
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def main(address: str, folder: str, *arguments: str) -> None:
    """Run `python ARGUMENTS`."""
    environment = dict(os.environ)
    path = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(part for part in path if part != folder)
    if arguments and arguments[0].endswith(".py"):
        # A signal must not find a job that nobody follows yet.
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)
        server = hand_over(address, list(arguments), environment)
        if server is not None:
            follow(server)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
    os.execvpe("python", ["python", *arguments], environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
