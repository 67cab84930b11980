"""Every table and figure of the four papers, each declared once: its name, its title and what it needs."""

from crossalign.items import adjust, align_predict, anc, talk
from crossalign.items.needs import Item

PAPERS: dict[str, list[Item]] = {
    "align-predict": align_predict.ITEMS,
    "anc": anc.ITEMS,
    "adjust": adjust.ITEMS,
    "talk": talk.ITEMS,
}

ITEMS: dict[str, Item] = {f"{paper}/{item.id}": item for paper, items in PAPERS.items() for item in items}
