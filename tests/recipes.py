"""The recipes of docs/extend: taking the blocks from the pages, applying them to a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# "Append to `FILE`", "Create `FILE`" and "Change `FILE`" say what the next block is for; a block of bash is run, and
# the block of text after it is what it plans.
STEP = re.compile(r"\b(Append to|Create|Change) `([^`]+)`")

# Stands in for Python in the jobs of a workflow: leaves the files that each program would, and does nothing else.
STAND_IN = """#!/usr/bin/env bash
set -eu
program=$(basename "$1"); shift
make() { mkdir -p "$(dirname "$1")"; echo made > "$1"; }
downloads= path=
while [ $# -gt 0 ]; do
    case "$program $1" in
        *" --downloads") downloads=$2 ;;
        "download_file.py --path") path=$2 ;;
        "download_model.py --name") path=models/$2/complete.json ;;
        "embed_sentences.py --out") mkdir -p "$2" ;;
        "finetune.py --out") make "$2/model/model.safetensors"; make "$2/model/config.json"; make "$2/training.json" ;;
        "gather_results.py --out") for file in {scores,similarity,distances}.{csv,parquet}; do make "$2/$file"; done ;;
        "make_findings.py --results") make "$2/findings.csv"; make "$2/findings.json" ;;
        "make_report.py --out") make "$2"; make "$(dirname "$2")/provenance.json" ;;
        *" --out"|*" --out-"*|*" --report"|*" --predictions") make "$2" ;;
    esac
    shift
done
if [ -n "$path" ]; then make "$downloads/$path"; fi
"""


@dataclass(frozen=True)
class Block:
    """One block of a recipe: `do` is append, create, change, run or plan."""

    do: str
    file: str
    text: str


def recipes_of(root: Path) -> dict[str, list[Block]]:
    """The recipes of a repository; what goes before them all is under 'Try it on a small run first'."""
    names = ("README", "language", "data-set", "model", "task", "table", "finding", "paper")
    return recipes("".join((root / f"docs/extend/{name}.md").read_text(encoding="utf-8") for name in names))


def recipes(page: str) -> dict[str, list[Block]]:
    """The blocks of a page under each heading of the first and second level; what precedes these is under ''."""
    found: dict[str, list[Block]] = {"": []}
    heading, wanted, fence, lines = "", None, None, []
    for line in page.splitlines():
        if fence is None and line.startswith("```"):
            fence, lines = line[3:].strip(), []
        elif fence is not None and line == "```":
            found[heading].append(block(fence, wanted, "".join(f"{text}\n" for text in lines)))
            fence = wanted = None
        elif fence is not None:
            lines.append(line)
        elif line.startswith(("# ", "## ")):
            heading = line.lstrip("# ")
            found[heading] = []
        elif step := STEP.search(line):
            assert wanted is None, f"nothing follows '{wanted[0]} {wanted[1]}'"
            wanted = step.groups()
    assert fence is None and wanted is None, "the page ends within a step"
    return found


def block(fence: str, wanted: tuple[str, str] | None, text: str) -> Block:
    """What a block is for, by the sentence before it and its language."""
    if fence in ("bash", "text"):
        assert wanted is None, f"a block of {fence} follows '{wanted[0]} {wanted[1]}'"
        return Block({"bash": "run", "text": "plan"}[fence], "", text)
    assert wanted is not None, f"no sentence says what this block is for:\n{text}"
    assert (wanted[0] == "Change") == (fence == "diff"), f"{wanted[0]} {wanted[1]}: a block of {fence}"
    return Block(wanted[0].split()[0].lower(), wanted[1], text)


def apply(blocks: list[Block], root: Path) -> None:
    """Do everything to the files of `root` that the blocks ask for; run nothing."""
    for step in blocks:
        file = root / step.file
        if step.do == "append":
            before = file.read_text(encoding="utf-8")
            assert before.endswith("\n"), f"{step.file} has no end of line at its end"
            file.write_text(before + step.text, encoding="utf-8")
        elif step.do == "create":
            assert not file.exists(), f"{step.file} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step.text, encoding="utf-8")
        elif step.do == "change":
            file.write_text(changed(file.read_text(encoding="utf-8"), step), encoding="utf-8")


def changed(text: str, step: Block) -> str:
    """The text with the lines of a diff taken out and put in; they must stand there exactly once."""
    lines = step.text.splitlines()
    assert all(line[:1] in (" ", "-", "+") for line in lines), f"{step.file}: no diff:\n{step.text}"
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
    new = "".join(f"{line[1:]}\n" for line in lines if line[0] != "-")
    # Whole lines only: the first may not be the end of another.
    places = [found.start() for found in re.finditer(rf"^{re.escape(old)}", text, flags=re.MULTILINE)]
    assert len(places) == 1, f"{step.file} has these lines {len(places)} times:\n{old}"
    return text[: places[0]] + new + text[places[0] + len(old) :]


def commands(blocks: list[Block]) -> list[str]:
    """The bash of a recipe."""
    return [step.text for step in blocks if step.do == "run"]


def plan(blocks: list[Block]) -> dict[str, int]:
    """Jobs by rule, as the page states them."""
    (stated,) = [step.text for step in blocks if step.do == "plan"]
    return {rule: int(count) for rule, count in (line.split() for line in stated.splitlines())}


def copy_repository(root: Path, folder: Path) -> Path:
    """Every file of the repository that git tracks or would track, as it is now."""
    listed = subprocess.run(
        # Wherever the repository lies and whoever owns it: it is only read.
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in sorted({os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}):
        # A file may be deleted and not yet committed.
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, folder / name)
    return folder


def run(command: str, folder: Path, stand_in: bool = False) -> subprocess.CompletedProcess:
    """Run bash in `folder` with the programs of this Python; with `stand_in`, jobs only leave the files they would."""
    path = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if stand_in:
        program = folder / "stand-in" / "python"
        program.parent.mkdir(exist_ok=True)
        program.write_text(STAND_IN, encoding="utf-8")
        program.chmod(0o755)
        path.insert(0, str(program.parent))
    environment = os.environ | {"PATH": os.pathsep.join(path), "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True)
