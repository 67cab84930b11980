"""Every table and figure of all papers, each declared once: its name, its title and what it needs."""

from collections.abc import Iterator

from crossalign.catalog.config import refuse, suggestion
from crossalign.catalog.items import Item
from crossalign.catalog.runs import Catalog
from crossalign.papers import PAPERS as NAMES
from crossalign.papers import declared

PAPERS: dict[str, list[Item]] = {paper: declared(paper, "items") for paper in NAMES}

ITEMS: dict[str, Item] = {f"{paper}/{item.id}": item for paper, items in PAPERS.items() for item in items}


def catalog_of(config: dict) -> Catalog:
    """The catalog of a checked config, with the items of all papers. Raises a UserError for items that do not exist."""
    refuse(list(unknown_items(config)))
    return Catalog(config, ITEMS)


def unknown_items(config: dict) -> Iterator[str]:
    chosen, left_out = config["items"], config.get("skip") or {}
    for place, item in enumerate(chosen if chosen != "all" else []):
        paper = item.partition("/")[0]
        if item not in ITEMS:
            yield f"items[{place}]: unknown item '{item}'{suggestion(item, sorted(ITEMS))}"
        elif paper not in config["papers"]:
            yield f"items[{place}]: '{item}' belongs to '{paper}', which is not among papers"
    for item in left_out:
        if item not in ITEMS:
            yield f"skip: unknown item '{item}'{suggestion(item, sorted(ITEMS))}"
        elif chosen != "all" and item in chosen:
            yield f"skip: '{item}' stands among items too; one of the two must go"
