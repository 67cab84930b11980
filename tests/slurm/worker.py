"""A job of the miniature workflow: writes down when and where it runs, and works until it is allowed to end.

Like training, at SIGTERM it saves a checkpoint, which may take some seconds, and ends with status 75; each line tells
whether there was one. Two that work on the same name at the same time are written down too. In a submission that
shares its GPU it takes a place on it, as training does.
"""

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from crossalign.runtime.gpus import SHARE, claim_gpu

name, output, seconds = sys.argv[1:]
checkpoint = Path(f"{name}.checkpoint")


def note(event: str) -> None:
    """Add a line; lines of several processes do not mix, as each is one short write."""
    where = {"node": os.environ.get("SLURMD_NODENAME"), "cards": os.environ.get("CUDA_VISIBLE_DEVICES")}
    line = {"name": name, "event": event, "job": os.environ.get("SLURM_JOB_ID"), "process": os.getpid(), **where}
    line |= {"parent": os.getppid(), "checkpoint": checkpoint.exists()}
    with Path("journal").open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def stop(*_: object) -> None:
    """Save, say so and ask to be started again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(float(seconds))
    checkpoint.touch()
    note("stopped")
    sys.exit(75)


signal.signal(signal.SIGTERM, stop)
with Path(f"{name}.lock").open("w") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note("twice at once")
        raise
    if SHARE in os.environ:
        claim_gpu(pause=0.1)
    note("start")
    while not (Path("go").exists() or Path(f"{name}.go").exists()):
        time.sleep(0.1)
    temporary = Path(f"{output}.part")
    temporary.write_text(name)
    temporary.replace(output)
    note("end")
