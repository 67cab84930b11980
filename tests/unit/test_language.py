"""The words of the project: spelling everywhere, and in the documents for readers short sentences and plain phrases."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Notes are dated and stay as they were written; config/README.md is made from the settings.
READERS = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!n]*/*.md")})
LONGEST = 40  # words of a sentence
MOST = 18_500  # words of all these pages: who adds some cuts others
# What reads as translated, and what to write instead.
PHRASES = {
    r"one's own|of (?:our|your|their|its) own making": "say whose it is: your model, models trained here",
    r"\bgoes on (?:from|where)\b|\bgo on where\b": "continues",
    r"\bthe card\b|\bcards\b": "GPU",
    r"\bwhoever\b|\bwherefrom\b|\bthereof\b|\bwherein\b": "an ordinary clause",
    r"\bis to be\b|\bare to be\b": "must be, or what happens",
    r"\bin all but\b|\bnone of its business\b|\bwithout end\b(?! \|)": "a plain statement",
    r"\b(?:is|are) told by\b|\btells of\b": "the page shows, the message says",
    r"\bso many that\b(?! a submission)": "enough to",
}


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


def check(text):
    """What is wrong with a text."""
    wrong = [f"more than {LONGEST} words: {each}" for each in sentences(text) if len(each.split()) > LONGEST]
    for phrase, better in PHRASES.items():
        wrong += [f"'{found[0]}': better {better}" for found in re.finditer(phrase, prose(text), re.IGNORECASE)]
    return wrong


@pytest.mark.parametrize("page", READERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short_and_phrases_plain(page):
    assert not check(page.read_text(encoding="utf-8"))


def test_the_documents_stay_short():
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in READERS) <= MOST


def test_a_long_sentence_and_a_translated_phrase_are_noticed():
    assert check("Words " + "and " * 40 + "more words.")
    assert not check("Words " + "and " * 18 + "a stop. " + "Words " + "and " * 18 + "another.")
    assert check("A model of one's own.") and not check("```\nA model of one's own.\n```\n")


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


def test_a_misspelling_is_noticed(tmp_path):
    program = shutil.which("codespell", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("codespell is not installed (make dev-environment)")
    (tmp_path / "page.md").write_text("This sentense is wrong.\n", encoding="utf-8")
    assert subprocess.run([program, tmp_path / "page.md"], cwd=ROOT, capture_output=True).returncode != 0
