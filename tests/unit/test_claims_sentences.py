"""The sentences beside the claims are the papers' own words."""

import re

import pytest

from crossalign.claims.write import read_claims
from crossalign.render.published import PAPERS

SOURCES = {"anc": "002_*.txt", "adjust": "004_*.txt"}
LONGEST = 260


def letters(text: str) -> str:
    """Letters alone: the texts come from PDF files with line numbers, broken words and marks of formatting."""
    return re.sub("[^a-z]", "", text.lower())


def stands(part: str, text: str) -> bool:
    """Whether some words stand in a text, whole or broken once by a table, a footnote or a formula."""
    return part in text or any(part[:cut] in text and part[cut:] in text for cut in range(15, len(part) - 15))


@pytest.mark.parametrize("paper", SOURCES)
def test_sentences_stand_in_the_papers(paper, shared):
    [path] = sorted((shared / "papers/sources").glob(SOURCES[paper]))
    text = letters(path.read_text(encoding="utf-8"))
    for row in read_claims(PAPERS / paper / "claims.csv"):
        parts = [letters(part) for part in row["sentence"].split("[…]") if letters(part)]
        assert parts and all(stands(part, text) for part in parts), row["id"]
        assert len(row["sentence"]) <= LONGEST and row["where"]
