"""Every figure, each made by its own declaration: a function from the context to a Figure."""

from collections.abc import Callable
from dataclasses import replace

from crossalign.errors import UserError
from crossalign.render.context import Context
from crossalign.render.figure import Figure
from crossalign.render.figures import adjust, align_predict, anc, talk

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
