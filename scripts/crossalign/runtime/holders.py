"""Notes of which process a run is, by which another run sees whether it is alive."""

import datetime
import os
import platform
from pathlib import Path
from typing import Any

PROC = Path("/proc")


def born(pid: int) -> str:
    """When a process of this machine began: the boot, and the kernel's ticks since then; nothing if it is gone."""
    try:
        # The name, in brackets, may hold anything; after it come the state and, as the twentieth field, the start.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else f"{boot} {fields[19]}"


def here() -> list[str]:
    """The machine, the container and the user; from elsewhere a process cannot be seen."""
    space = PROC / "self" / "ns" / "pid"
    return [platform.node(), str(space.readlink()) if space.is_symlink() else "", str(os.getuid())]


def this_process() -> dict[str, Any]:
    """The note. It stays true when this process executes another program."""
    since = datetime.datetime.now().isoformat(sep=" ", timespec="seconds")
    return {"place": here(), "pid": os.getpid(), "born": born(os.getpid()), "since": since}


def state(note: dict[str, Any]) -> str:
    """`alive` or `dead`; `unknown` where that cannot be seen from here."""
    if note["place"] != here() or not note["born"]:
        return "unknown"
    return "alive" if born(note["pid"]) == note["born"] else "dead"


def told(note: dict[str, Any]) -> str:
    """The process, for people."""
    return f"process {note['pid']} on {note['place'][0]}, started {note['since']}"
