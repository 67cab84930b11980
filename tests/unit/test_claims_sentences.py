"""The sentences beside the claims are the papers' own words."""

import re

import pytest

from crossalign.papers.all_claims import read_claims
from crossalign.results.published import PAPERS

# The slides come in two extractions.
SOURCES = {"align-predict": "003_*.txt", "anc": "002_*.txt", "adjust": "004_*.txt", "talk": "00[01]_*.txt"}
LONGEST = 260


def letters(text: str) -> str:
    """Letters alone: the texts come from PDF files with line numbers, broken words and marks of formatting."""
    return re.sub("[^a-z]", "", text.lower())


def stands(part: str, text: str) -> bool:
    """Whether some words stand in a text, whole or broken once by a table, a footnote or a formula."""
    return part in text or any(part[:cut] in text and part[cut:] in text for cut in range(15, len(part) - 15))


@pytest.mark.parametrize("paper", SOURCES)
def test_sentences_stand_in_the_papers(paper, shared):
    texts = [letters(path.read_text(encoding="utf-8")) for path in (shared / "papers/sources").glob(SOURCES[paper])]
    for row in read_claims(PAPERS / paper / "claims.csv"):
        parts = [letters(part) for part in row["sentence"].split("[…]") if letters(part)]
        assert all(any(stands(part, text) for text in texts) for part in parts), row["id"]
        assert parts or row["note"].startswith("shown only in "), row["id"]
        assert len(row["sentence"]) <= LONGEST and row["where"]
