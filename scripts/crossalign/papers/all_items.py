"""Every table and figure of the four papers, each declared once: its name, its title and what it needs."""

from crossalign.catalog.items import Item
from crossalign.catalog.runs import Catalog
from crossalign.papers.adjust import items as adjust
from crossalign.papers.align_predict import items as align_predict
from crossalign.papers.anc import items as anc
from crossalign.papers.talk import items as talk

PAPERS: dict[str, list[Item]] = {
    "align-predict": align_predict.ITEMS,
    "anc": anc.ITEMS,
    "adjust": adjust.ITEMS,
    "talk": talk.ITEMS,
}

ITEMS: dict[str, Item] = {f"{paper}/{item.id}": item for paper, items in PAPERS.items() for item in items}


def catalog_of(config: dict) -> Catalog:
    """The catalog of a checked config, with the items of all papers."""
    return Catalog(config, ITEMS)
