"""Every table, each made by its own declaration: a function from the context to a Table."""

from collections.abc import Callable

from crossalign.papers.adjust import tables as adjust
from crossalign.papers.align_predict import tables as align_predict
from crossalign.papers.anc import tables as anc
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Table
from crossalign.papers.talk import tables as talk
from crossalign.runtime.errors import UserError

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
