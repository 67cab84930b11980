"""Make figures: SVG, PDF, PNG and the data of one item, or of many in one go; what was not run says so."""

from crossalign.papers import all_of, make
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.command import chosen, context_of, destinations, parser
from crossalign.papers.common.figure_files import write_figure
from crossalign.runtime.errors import run_main

FORMATS = ("svg", "pdf", "png", "csv")


def main() -> None:
    """Read the results once, then draw every figure."""
    args = parser(__doc__, FORMATS).parse_args()
    context = context_of(args)
    items = chosen(args, catalog_of(context.config).items, all_of("figures"))
    for item in items:
        figure = make(item, context)
        write_figure(figure, destinations(args, item, len(items) > 1 or args.all, FORMATS))
        print(f"{item}: {len(figure.panels)} panels, {len(figure.missing)} models not run")


if __name__ == "__main__":
    run_main(main)
