"""What the tests of partial re-runs share: the table of docs/use/partial-reruns.md, changes to a project, its runs."""

import base64
import json
import os
import re
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.recipes import copy_repository
from tests.workflow import planned, snakemake

PAGE = Path(__file__).resolve().parents[1] / "docs" / "use" / "partial-reruns.md"

# How the files of the tables are edited: a text that stands there, and what it becomes.
CODE = (r"(?m)\n\n\n(?=@|def |class )", "\n\n\nADDED = 1\n\n\n")
EDITS = {
    "a comment": (r"(?m)\n\n\n(?=@|def |class )", "\n\n\n# Why not?\n"),
    "a help text": ('help="', 'help="that is: '),
    "a log message": ('log.info("', 'log.info("so: '),
    "a file's checksum": (r"(?m)^(ud/ru_pud/test\.conllu(?:\t[^\t]*){4}\t)[^\t]*", rf"\1sha256:{'0' * 64}"),
    "a figure's colour": ("#0072B2", "#0073B2"),
    "a finding's bound": ("highest_layer > 0.5", "highest_layer > 0.6"),
    "a printed number": (",74.20,", ",74.30,"),
    "the page's style": ("{", "{ /* plain */"),
}


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of the page: what changes, where, and what runs again."""
    part = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines]
    assert rows[0] == ["change", "where", "runs again"]
    return rows[1:]


def cases(rows: list) -> list:
    """Rows of what changes, where, and what runs again, as parameters of a test."""
    return [pytest.param(*row, id=row[0]) for row in rows]


def stated(cell: str) -> dict[str, int]:
    """Jobs by rule, from a cell like: 23 `make_table`, 1 `make_report`."""
    if cell == "nothing":
        return {}
    jobs = re.findall(r"([\d,]+) `(\w+)`", cell)
    assert ", ".join(f"{count} `{rule}`" for count, rule in jobs) == cell, f"no list of jobs: {cell}"
    return {rule: int(count.replace(",", "")) for count, rule in jobs}


def edit(file: Path, change: str) -> None:
    """Make a change of a table in a file."""
    old, new = EDITS.get(change, CODE)
    pattern = old if old.startswith("(?m)") else re.escape(old)
    text = file.read_text(encoding="utf-8")
    edited = re.sub(pattern, new, text, count=1)
    assert edited != text, f"{file.name} has nothing like {old}"
    file.write_text(edited, encoding="utf-8")


@contextmanager
def as_before(*files: Path):
    """Whatever happens to these files inside, afterwards they are as they were, and as old."""
    saved = [(file, file.read_bytes(), file.stat()) for file in files]
    try:
        yield
    finally:
        for file, content, status in saved:
            file.write_bytes(content)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def run(folder: Path, *arguments: str, changes: dict | None = None):
    """Run the workflow of a project; `changes` come on top of its config."""
    (folder / "changes.json").write_text(json.dumps(changes or {}), encoding="utf-8")
    files = [str(folder / name) for name in ("own.json", "changes.json")]
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--configfile", *files]
    return snakemake(folder, folder, *settings, *arguments, "--", "all")


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
