"""One folder per paper: its items, tables, figures and claims.

A paper is registered by its name in PAPERS. Its folder has the same name, with `_` for `-`, and holds items.py (ITEMS),
tables.py (TABLES), figures.py (FIGURES) and claims.py (CLAIMS).
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from crossalign.papers.common.context import Context
    from crossalign.papers.common.figure import Figure
    from crossalign.papers.common.table import Table

# In the order of the page.
PAPERS = ("align-predict", "anc", "adjust", "talk")


def file_of(paper: str, part: str) -> str:
    """A module of a paper below `scripts/`: its code is not imported by name, so a rule has to name it."""
    return f"crossalign/papers/{paper.replace('-', '_')}/{part}.py"


def declared(paper: str, part: str) -> Any:
    """What a paper declares in one of its modules: its ITEMS, TABLES, FIGURES or CLAIMS."""
    module = import_module(f"crossalign.papers.{paper.replace('-', '_')}.{part}")
    return getattr(module, part.upper())


def all_of(part: str) -> dict[str, Callable[["Context"], Any]]:
    """Every table (`tables`) or figure (`figures`) by name, `align-predict/table1`."""
    return {f"{paper}/{name}": each for paper in PAPERS for name, each in declared(paper, part).items()}


def make(item: str, context: "Context") -> "Table | Figure":
    """The table or figure called `item`, from the results that are there."""
    paper, _, name = item.partition("/")
    part = "figures" if name.startswith("figure") else "tables"
    if item not in all_of(part):
        raise UserError(f"'{item}' is no {part[:-1]}; {part} are {', '.join(all_of(part))}")
    context = context.of(item)
    context.results.read_scores(context.catalog.needs(item).runs)
    made = declared(paper, part)[name](context)
    (title,) = [each.title for each in declared(paper, "items") if each.id == name]
    # A table may add to its title.
    made = replace(made, item=item, title=f"{title} {made.title}".strip())
    if part == "tables":
        return replace(made, published=context.printed)
    return replace(made, control="length") if context.config["similarity"].get("draw_control") else made
