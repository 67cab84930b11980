"""Every message that docs/use/troubleshooting.md quotes is said by our code, by Snakemake, or by the system."""

import ast
import errno
import os
import re
from functools import cache
from pathlib import Path

import pytest
import snakemake

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "use" / "troubleshooting.md"
GAP = "…"


def rows():
    """(section, message) of every row."""
    section, found = "", []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("|") and not line.startswith(("| message |", "|---")):
            found.append((section, line))
    return found


def plain(text):
    return re.sub(r"\s+", " ", text)


def literal(node):
    """A string as it stands in the source, with a gap for what is put in; None for what is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # Messages of the logging module are filled in later.
        return re.sub(r"%(\.\d+)?[sdgf]", GAP, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or GAP if isinstance(part, ast.Constant) else GAP for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = literal(node.left), literal(node.right)
        return None if sides == (None, None) else "".join(GAP if side is None else side for side in sides)
    return None


@cache
def said(*folders):
    """All strings of some Python files, or of those in some folders."""
    files = [file for folder in folders for file in (sorted(folder.rglob("*.py")) if folder.is_dir() else [folder])]
    texts = (literal(node) for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    return tuple({plain(text) for text in texts if text and len(text) > 10})


def ours():
    # Rules are not quite Python; their messages stand on one line. So do the Makefile's.
    others = [*sorted((ROOT / "rules").glob("*.smk")), ROOT / "Makefile"]
    lines = [line for file in others for line in file.read_text(encoding="utf-8").splitlines()]
    # Not all tests: those that quote a message would prove nothing.
    skipping = [ROOT / "tests" / name for name in ("conftest.py", "browser/conftest.py", "slurm/conftest.py")]
    found = said(ROOT / "scripts", ROOT / "demo_world", ROOT / "tools", *skipping)
    return [*found, *(plain(re.sub(r"\{[^}]*\}", GAP, line)) for line in lines)]


def is_said(message, texts):
    """Whether the fixed parts of a message stand in one text, in this order."""
    parts = [re.escape(part.strip()) for part in message.split(GAP) if part.strip()]
    form = re.compile(r".*".join(parts), flags=re.DOTALL)
    return any(form.search(text) for text in texts)


def test_the_page_has_many_messages_each_with_cause_and_fix():
    assert len(rows()) > 25
    messages = [line.split("`")[1] for _, line in rows()]
    assert len(messages) == len(set(messages))
    for _, line in rows():
        assert len(re.split(r" \| ", line.strip("| "))) == 3, line


def test_a_message_that_nobody_says_is_noticed():
    assert not is_said("the moon is … made of cheese", ours())
    assert not is_said("are free … are needed, but only", ours())


@pytest.mark.parametrize(("section", "line"), rows())
def test_the_message_is_said(section, line):
    message = plain(line.split("`")[1])
    assert len(message.replace(GAP, "").strip()) >= 6
    if section == "The system's messages":
        known = {os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)}
        assert message in known | {"Killed"}
    elif section == "Snakemake's own messages":
        assert is_said(message, said(Path(snakemake.__file__).parent))
    else:
        assert is_said(message, ours())


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8")):
        name, _, heading = target.partition("#")
        text = (PAGE.parent / (name or PAGE.name)).read_text(encoding="utf-8")
        headings = {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()}
        assert not heading or heading in headings, target
