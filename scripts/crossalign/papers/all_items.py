"""Every table and figure of all papers, each declared once: its name, its title and what it needs."""

from crossalign.catalog.items import Item
from crossalign.catalog.runs import Catalog
from crossalign.papers import PAPERS as NAMES
from crossalign.papers import declared

PAPERS: dict[str, list[Item]] = {paper: declared(paper, "items") for paper in NAMES}

ITEMS: dict[str, Item] = {f"{paper}/{item.id}": item for paper, items in PAPERS.items() for item in items}


def catalog_of(config: dict) -> Catalog:
    """The catalog of a checked config, with the items of all papers."""
    return Catalog(config, ITEMS)
