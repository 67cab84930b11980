"""What the tests of partial re-runs share: a project and its runs."""

import base64
import json
import os
import re
import time
from pathlib import Path

from tests.recipes import copy_repository
from tests.workflow import planned, snakemake


def run(folder: Path, *arguments: str, changes: dict | None = None, warm: bool = False):
    """Run the workflow of a project; `changes` come on top of its config."""
    (folder / "changes.json").write_text(json.dumps(changes or {}), encoding="utf-8")
    files = [str(folder / name) for name in ("own.json", "changes.json")]
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--configfile", *files]
    return snakemake(folder, folder, *settings, *arguments, "--", "all", warm=warm)


def would_run(folder: Path, *arguments: str, changes: dict | None = None) -> dict[str, int]:
    return planned(run(folder, "--dry-run", *arguments, changes=changes))


def project(root: Path, folder: Path, config: dict) -> Path:
    """A copy of the repository with a config of its own."""
    folder.mkdir()
    copy_repository(root, folder)
    (folder / "own.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def make_outputs(folder: Path, gone: re.Pattern | None = None) -> None:
    """Empty files, all of one time, for the outputs of jobs on record, except those that are gone after a run."""
    records, now = folder / ".snakemake" / "metadata", time.time()
    for record in (file for file in records.rglob("*") if file.is_file()):
        # A long name is spread over folders that begin with @.
        key = record.relative_to(records).as_posix().replace("@", "").replace("/", "")
        output = folder / base64.urlsafe_b64decode(key).decode()
        if gone is None or not gone.search(output.as_posix()):
            output.parent.mkdir(parents=True, exist_ok=True)
            output.touch()
            os.utime(output, (now, now))
