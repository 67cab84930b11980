"""The words of the project: spelling everywhere, and in the documents for readers short sentences."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# config/README.md is made from the settings.
READERS = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!n]*/*.md")})
LONGEST = 40  # words of a sentence
NOTES = sorted(ROOT.glob("docs/notes/**/*.md"))
RESULTS = sorted(ROOT.glob("docs/results/*/*.md"))
MOST_OF_A_NOTE = 1_000  # words
MOST = 20_000  # words of all pages: who adds some cuts others


def prose(text):
    """Paragraphs and items of lists: no code, tables, headings or addresses of links."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    lines = [
        "" if line.startswith(("#", "|", "    ")) else re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", line)
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def sentences(text):
    for part in re.split(r"\n\s*\n", prose(text)):
        yield from re.split(r"(?<=[.!?:;])\s+(?=[A-Z0-9`*\"'(])", " ".join(part.split()))


def too_long(text):
    return [each for each in sentences(text) if len(each.split()) > LONGEST]


def test_the_documents_and_their_sentences_stay_short():
    texts = [page.read_text(encoding="utf-8") for page in READERS]
    assert [long for text in texts for long in too_long(text)] == []
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in [*READERS, *NOTES, *RESULTS]}
    assert [page.name for page in NOTES if words[page] > MOST_OF_A_NOTE] == []
    assert sum(words.values()) <= MOST
    assert too_long("Words " + "and " * 40 + "more words.")
    assert not too_long("Words " + "and " * 18 + "a stop. " + "Words " + "and " * 18 + "another.")


def test_spelling():
    """By codespell, with the exceptions of pyproject.toml."""
    program = Path(sys.executable).with_name("codespell")
    if not program.exists():
        pytest.skip("codespell is not installed (make dev-environment)")
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    names = [
        name for name in listed.stdout.split("\0") if re.search(r"\.(md|py|smk|ya?ml|rst|toml|cff|def)$|file$", name)
    ]
    found = subprocess.run([program, *names], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
