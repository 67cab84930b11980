"""What Snakemake's own report says of a table or figure: which one it is, of which paper, and which claims hold.

Programs do not import this, so that a new caption makes nothing again.
"""

import csv
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from crossalign.papers.all_items import ITEMS

# As the page has them, in crossalign.report.summary_html, whose imports would slow down every plan.
STUDIES = {
    "align-predict": (
        "First Align, then Predict: Understanding the Cross-Lingual Ability of Multilingual BERT",
        "Muller, Elazar, Sagot and Seddah, EACL 2021",
    ),
    "anc": (
        "Cross-lingual Similarity of Multilingual Representations Revisited",
        "Del and Fishel, AACL-IJCNLP 2022",
    ),
    "adjust": (
        "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
        "Efimov, Boytsov, Arslanova and Braslavski, ECIR 2023",
    ),
    "talk": ("Cross Lingual Transfer with Multilingual Language Models", "Muller, seminar talk, 2022"),
}
# The report sorts categories by name. Short names: the list of categories takes the width that the longest one needs.
PAGE = "1. All on one page"
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


def verdicts_on(item: str, claims: Path) -> list[Verdict]:
    """The claims that claims.csv of a run ties to an item; none before the claims are judged.

    Every plan asks this: a file that cannot be read must not stop a run, least of all the one that would mend it.
    """
    try:
        with claims.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row.get("item") == item]
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    return [Verdict(*(row.get(field) or "" for field in Verdict._fields)) for row in rows]


def caption_of(item: str, claims: Path) -> Caption:
    """All that a caption says, safe to stand in reStructuredText."""
    paper, source = STUDIES[item.partition("/")[0]]
    judged = [verdict for verdict in verdicts_on(item, claims) if verdict.verdict in JUDGED]
    verdicts = [Verdict(*map(plain, verdict)) for verdict in judged]
    return Caption(name_of(item), plain(ITEMS[item].title), plain(paper), plain(source), verdicts)


def labels_of(item: str, claims: Path) -> dict[str, str]:
    """The columns of the report's lists, which it orders by name."""
    counted = Counter(verdict.verdict for verdict in verdicts_on(item, claims))
    judged = sum(counted[verdict] for verdict in JUDGED)
    told = f"{counted[HOLDS]} of {judged} claims hold" if judged else "no claim judged"
    return {"item": name_of(item), "paper": item.partition("/")[0], "title": ITEMS[item].title, "verdicts": told}


def category_of(paper: str) -> str:
    """A study's heading, in the order of the studies."""
    return f"{list(STUDIES).index(paper) + 2}. {paper}"


def plain(text: str) -> str:
    """Text in which reStructuredText sees no markup."""
    return re.sub(r"([\\*`_|<>\[\]])", r"\\\1", text)
