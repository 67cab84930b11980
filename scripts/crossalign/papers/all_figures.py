"""Every figure, each made by its own declaration: a function from the context to a Figure."""

from collections.abc import Callable
from dataclasses import replace

from crossalign.papers.adjust import figures as adjust
from crossalign.papers.align_predict import figures as align_predict
from crossalign.papers.anc import figures as anc
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Figure
from crossalign.papers.talk import figures as talk
from crossalign.runtime.errors import UserError

FIGURES: dict[str, Callable[[Context], Figure]] = {
    f"{module.PAPER}/{name}": declaration
    for module in (align_predict, anc, adjust, talk)
    for name, declaration in module.FIGURES.items()
}


def make(item: str, context: Context) -> Figure:
    """The figure called `item`."""
    if item not in FIGURES:
        raise UserError(f"'{item}' is no figure; figures are {', '.join(FIGURES)}")
    figure = FIGURES[item](context)
    return replace(figure, control="length") if context.config["similarity"].get("draw_control") else figure
