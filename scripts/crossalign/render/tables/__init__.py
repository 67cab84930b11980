"""Every table, each made by its own declaration: a function from the context to a Table."""

from collections.abc import Callable

from crossalign.errors import UserError
from crossalign.render.context import Context
from crossalign.render.table import Table
from crossalign.render.tables import adjust, align_predict, anc, talk

TABLES: dict[str, Callable[[Context], Table]] = {
    f"{module.PAPER}/{name}": declaration
    for module in (align_predict, anc, adjust, talk)
    for name, declaration in module.TABLES.items()
}


def make(item: str, context: Context) -> Table:
    """The table called `item`."""
    if item not in TABLES:
        raise UserError(f"'{item}' is no table; tables are {', '.join(TABLES)}")
    return TABLES[item](context)
