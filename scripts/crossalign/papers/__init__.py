"""One folder per paper: its items, tables, figures and findings.

A folder has the name of its paper, with `_` for `-`, and holds items.py (ITEMS), tables.py (TABLES), figures.py
(FIGURES) and findings.py (by a decorator), as far as it has such; `catalog.papers` finds it.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from crossalign.catalog.papers import papers
from crossalign.runtime.errors import UserError

PAPERS = tuple(papers())


def declared(paper: str, part: str) -> Any:
    """What a paper declares in one of its modules: its ITEMS, TABLES or FIGURES; nothing without a module."""
    name = f"crossalign.papers.{paper.replace('-', '_')}.{part}"
    return getattr(import_module(name), part.upper()) if find_spec(name) else {}


def all_of(part: str) -> dict[str, Callable[[Any], Any]]:
    """Every table (`tables`) or figure (`figures`) by name, `align-predict/table1`."""
    return {f"{paper}/{name}": each for paper in PAPERS for name, each in declared(paper, part).items()}


def make(item: str, context: Any) -> Any:
    """The table or figure called `item`, from the results that the context has."""
    # Neither the context's nor the result's type is imported: all that make tables would depend on figures.
    paper, _, name = item.partition("/")
    part = "figures" if name.startswith("figure") else "tables"
    if item not in all_of(part):
        raise UserError(f"'{item}' is no {part[:-1]}; {part} are {', '.join(all_of(part))}")
    (declaration,) = [each for each in declared(paper, "items") if each.id == name]
    context = context.of(item)
    context.results.read_scores(declaration.needs(context.config).runs)
    made = declared(paper, part)[name](context)
    # A table may add to its title.
    made = replace(made, item=item, title=f"{declaration.title} {made.title}".strip())
    if part == "tables":
        return replace(made, published=context.printed)
    return replace(made, control="length") if context.config["similarity"].get("draw_control") else made
