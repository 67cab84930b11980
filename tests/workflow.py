"""Running the workflow in tests: Snakemake in a folder of its own, and what it did or would do."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

# What a copy of the workflow is made of.
PARTS = [
    "Snakefile",
    "rules",
    "scripts",
    "tools",
    "resources",
    "envs",
    "profiles",
    "config.yaml",
    "config.demo.yaml",
    "config.study.yaml",
    "docs",
]
TARGETS = ("all", "align_predict", "anc", "adjust", "talk", "study", "grid", "data", "download")


def snakemake(
    root: Path, folder: Path, *arguments: str, config: dict | None = None, warm: bool = False
) -> subprocess.CompletedProcess:
    """Run the workflow of `root` with `folder` as working folder; `config` is merged over the other config files.

    `warm`: jobs start from a process that has the libraries loaded, as in the demo.
    """
    start = [sys.executable, str(root / "tools" / "warm.py"), "--"] if warm else []
    command = [
        *start,
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(root / "Snakefile"),
        "--directory",
        str(folder),
    ]
    if config is not None:
        file = folder / "config.test.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        command += ["--configfile", str(file)]
    # Programs of the rules must be this Python's, and caches of the user's must not matter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, cwd=root)


def planned(done: subprocess.CompletedProcess) -> dict[str, int]:
    """Jobs by rule, from the table that a dry run prints; the targets themselves are left out."""
    assert done.returncode == 0, done.stdout + done.stderr
    table = re.findall(r"^(\w+)\s+(\d+)\s*$", done.stdout + done.stderr, flags=re.MULTILINE)
    return {rule: int(count) for rule, count in table if rule not in (*TARGETS, "total")}
