"""Where and when: the commit, the kind of machine (never its name), and the time that the result files carry."""

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

UNKNOWN = "unknown"


def commit(root: Path) -> str:
    """The commit of the code at `root`, marked where files differ from it; `unknown` outside a repository."""
    # Optional locks off: a report must not get in the way of somebody who commits.
    git = ["git", "--no-optional-locks", "-C", str(root)]
    told = {"capture_output": True, "text": True, "check": True, "timeout": 20, "env": os.environ | {"LC_ALL": "C"}}
    try:
        head = subprocess.run([*git, "rev-parse", "--show-toplevel", "HEAD"], **told).stdout.splitlines()
        # A copy without history that lies inside another repository has no commit of its own.
        if len(head) != 2 or Path(head[0]).resolve() != root.resolve():
            return UNKNOWN
        changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], **told).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return f"{head[1]} with changes" if changed else head[1]


def machine() -> str:
    """The kind of machine that this program runs on: processor, cores, system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = [f"model name: {platform.processor()}"]
    # Arm processors do not tell a name there.
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    model = next(names, "") or platform.machine() or "processor unknown"
    cores = os.cpu_count() or 1
    return f"{model}, {cores} {'core' if cores == 1 else 'cores'}, {platform.system()} {platform.machine()}".strip()


def period(files: Iterable[Path]) -> tuple[str, str] | None:
    """When the first and the last of some files were written, in UTC."""
    times = [datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M") for path in files]
    return (min(times), max(times)) if times else None
