"""Make tables: CSV, LaTeX, HTML and JSON of one item, or of many in one go; what was not run says so."""

from crossalign.papers import all_of, make
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.command import chosen, context_of, destinations, parser
from crossalign.papers.common.table import write_csv
from crossalign.papers.common.table_html import write_data, write_html
from crossalign.papers.common.table_latex import write_tex
from crossalign.runtime.errors import run_main

WRITERS = {"csv": write_csv, "tex": write_tex, "html": write_html, "json": write_data}


def main() -> None:
    """Read the results once, then write every table."""
    args = parser(__doc__, WRITERS).parse_args()
    context = context_of(args)
    items = chosen(args, catalog_of(context.config).items, all_of("tables"))
    for item in items:
        paths = destinations(args, item, len(items) > 1 or args.all, WRITERS)
        table = make(item, context)
        for form, path in paths.items():
            WRITERS[form](table, path)
        print(f"{item}: {len(table.rows)} rows, {len(table.missing)} models not run")


if __name__ == "__main__":
    run_main(main)
