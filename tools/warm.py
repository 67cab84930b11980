"""Run a command, such as snakemake, with a warm start for the programs in this folder.

Importing torch takes longer than many a job of the demo. So a server imports it once, and each `python scripts/X.py`
below the command becomes a fork of it: same files, same bits, seconds sooner. The command is not told: a `python` that
knows the server comes first on its PATH. Whatever cannot be served exactly runs as if nothing of this existed;
with CROSSALIGN_WARM_WHY=1 in the environment such a job says why.

Example:
    python tools/warm.py -- snakemake --profile profiles/demo all
"""

import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import UserError, run_main

USAGE = "usage: python tools/warm.py -- COMMAND [ARGUMENT ...]"
SOCKET_NAME = 108  # bytes, with one for the end: Linux's limit
CLIENT = Path(__file__).resolve().parent / "warm_client.py"


def main() -> None:
    """Start the server if it can be of use, then become the command."""
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(f"{USAGE}\n\n{__doc__}")
        return
    if sys.argv[1:2] != ["--"] or not sys.argv[2:]:
        raise UserError(f"'--' and a command are needed; {USAGE}")
    # Forks of large libraries are safe on Linux only; and the server must be the Python that jobs would get.
    usual, this = Path(shutil.which("python") or "/"), Path(sys.executable)
    if sys.platform == "linux" and (usual.parent, usual.resolve()) == (this.parent, this.resolve()):
        start()
    command = sys.argv[2:]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ignored by Python, and that would be inherited
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}") from None


def private_folder() -> Path | None:
    """A temporary folder for this user's eyes only, in which a socket may lie: those must have short names."""
    for place in (None, "/tmp"):
        folder = Path(tempfile.mkdtemp(prefix="crossalign-", dir=place))
        if len(os.fsencode(folder / "socket")) < SOCKET_NAME:
            return folder
        folder.rmdir()
    return None


def start() -> None:
    """Fork the server and put its client on the PATH."""
    folder = private_folder()
    if folder is None:
        return
    shim = folder / "bin" / "python"
    shim.parent.mkdir()
    client = shlex.join([sys.executable, "-I", "-S", str(CLIENT), str(folder / "socket"), str(shim.parent)])
    shim.write_text(f'#!/bin/sh\nexec {client} "$@"\n')
    shim.chmod(0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(64)  # from now on jobs wait for the server's imports, which cost them less than their own
    # The command holds one end of a pipe; however it ends, the server sees the pipe close. Programs started by Python
    # do not inherit it, and whatever else does is still part of the command.
    ended, held = os.pipe()
    os.set_inheritable(held, True)
    if os.fork():
        os.close(ended)
        os.environ["PATH"] = os.pathsep.join([str(shim.parent), os.environ.get("PATH", os.defpath)])
    else:
        os.close(held)
        from tools.warm_server import become_server

        become_server(listener, ended, folder)


if __name__ == "__main__":
    run_main(main)
