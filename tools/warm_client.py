"""What runs instead of `python` below `tools/warm.py`: hands the job to the server, or else to the real Python.

Called as `python -IS warm_client.py SOCKET FOLDER SCRIPT ARGUMENTS`, once per job, so it imports next to nothing.
FOLDER is where this `python` was found.
"""

import contextlib
import os
import signal
import socket
import sys

# Sent on to the job: it has a process group of its own, so that no signal reaches it twice.
PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def follow(server: socket.socket, job: int) -> None:
    """Pass signals on, wait for the job's end and end in the same way."""

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(OSError):
            os.kill(job, number)

    for number in PASSED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
    answer = b""
    with contextlib.suppress(OSError):
        answer = server.recv(64)
    if not answer:
        sys.exit("error: the server of tools/warm.py has gone, and this job with it")
    code = os.waitstatus_to_exitcode(int(answer))
    if code < 0:
        # Killed; a process that only exits with a number would look as if it had decided so itself.
        with contextlib.suppress(OSError):  # SIGKILL has no handler to remove
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def main(address: str, folder: str, *arguments: str) -> None:
    """Run `python ARGUMENTS`."""
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join(part for part in environment["PATH"].split(os.pathsep) if part != folder)
    if arguments and arguments[0].endswith(".py"):
        os.umask(mask := os.umask(0))
        here = os.getcwd()  # noqa: PTH109 (pathlib takes longer than all the rest)
        # None of these can hold a NUL.
        fields = [here, str(mask), str(len(arguments)), *arguments, *map("=".join, environment.items())]
        server, answer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), b""
        # A signal must not find a job that nobody follows yet.
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)
        with contextlib.suppress(OSError):
            server.connect(address)
            socket.send_fds(server, [os.fsencode("\0".join(fields))], [0, 1, 2])
            answer = server.recv(4096)
        if answer.isdigit():
            follow(server, int(answer))
        if "CROSSALIGN_WARM_WHY" in environment:
            print("started cold:", os.fsdecode(answer) or "the server has gone", file=sys.stderr, flush=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
    os.execvpe("python", ["python", *arguments], environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
