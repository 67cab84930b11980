"""Captions of Snakemake's own report: which table or figure it is, of which paper.

Programs do not import this, so that a new caption makes nothing again.
"""

import re
from typing import Any, NamedTuple

from crossalign.catalog.papers import papers
from crossalign.papers.all_items import ITEMS

# The report sorts categories by name. Short names: the list of categories takes the width that the longest one needs.
PAGE = "1. All on one page"


class Caption(NamedTuple):
    """What the templates in resources/captions fill in."""

    name: str
    title: str
    paper: str
    source: str


def name_of(item: str) -> str:
    """`anc/table1` is Table 1."""
    kind, number = re.fullmatch(r".+/(table|figure)(\d+)", item).groups()
    return f"{kind.capitalize()} {number}"


def item_of(wildcards: Any) -> str:
    """The item behind an address: `tables/anc/table1` is `anc/table1`."""
    return wildcards.address.partition("/")[2]


def caption_of(item: str) -> Caption:
    """All that a caption says, safe to stand in reStructuredText."""
    study = papers()[item.partition("/")[0]]
    return Caption(name_of(item), *map(plain, (ITEMS[item].title, study.title, study.source)))


def labels_of(item: str) -> dict[str, str]:
    """The columns of the report's lists, which it orders by name."""
    return {"item": name_of(item), "paper": item.partition("/")[0], "title": ITEMS[item].title}


def category_of(item: str) -> str:
    """A study's heading, in the order of the studies."""
    paper = item.partition("/")[0]
    return f"{list(papers()).index(paper) + 2}. {paper}"


def plain(text: str) -> str:
    """Text in which reStructuredText sees no markup."""
    return re.sub(r"([\\*`_|<>\[\]])", r"\\\1", text)
