"""Captions of Snakemake's own report: which table or figure it is, of which paper, and which claims hold.

Programs do not import this, so that a new caption makes nothing again.
"""

import csv
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from crossalign.catalog.papers import papers
from crossalign.papers.all_items import ITEMS

# The report sorts categories by name. Short names: the list of categories takes the width that the longest one needs.
PAGE = "1. All on one page"
# As results.claims.claim has them, whose imports would slow down every plan.
HOLDS = "holds"
JUDGED = (HOLDS, "does not hold", "unclear")


class Verdict(NamedTuple):
    """A claim of the paper and what this run says of it."""

    claim: str
    verdict: str
    measured: str


class Caption(NamedTuple):
    """What the templates in resources/captions fill in."""

    name: str
    title: str
    paper: str
    source: str
    claims: list[Verdict]


def name_of(item: str) -> str:
    """`anc/table1` is Table 1."""
    kind, number = re.fullmatch(r".+/(table|figure)(\d+)", item).groups()
    return f"{kind.capitalize()} {number}"


def judged(item: str, claims: Path) -> list[Verdict]:
    """The claims about an item that claims.csv of a run has judged; none where there is no such file yet.

    Every plan asks this: a file that cannot be read must not stop a run, least of all the one that would mend it.
    """
    try:
        with claims.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row.get("item") == item]
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    verdicts = [Verdict(*(row.get(field) or "" for field in Verdict._fields)) for row in rows]
    return [each for each in verdicts if each.verdict in JUDGED]


def caption_of(item: str, claims: Path) -> Caption:
    """All that a caption says, safe to stand in reStructuredText."""
    verdicts = [Verdict(*map(plain, each)) for each in judged(item, claims)]
    study = papers()[item.partition("/")[0]]
    return Caption(name_of(item), plain(ITEMS[item].title), plain(study.title), plain(study.source), verdicts)


def labels_of(item: str, claims: Path) -> dict[str, str]:
    """The columns of the report's lists, which it orders by name."""
    counts = Counter(each.verdict for each in judged(item, claims))
    verdicts = f"{counts[HOLDS]} of {counts.total()} claims hold" if counts else "no claim judged"
    return {"item": name_of(item), "paper": item.partition("/")[0], "title": ITEMS[item].title, "verdicts": verdicts}


def category_of(paper: str) -> str:
    """A study's heading, in the order of the studies."""
    return f"{list(papers()).index(paper) + 2}. {paper}"


def plain(text: str) -> str:
    """Text in which reStructuredText sees no markup."""
    return re.sub(r"([\\*`_|<>\[\]])", r"\\\1", text)
