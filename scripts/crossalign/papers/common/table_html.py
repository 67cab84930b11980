"""A table as people see it: as data (JSON), from which the page shows it, and as an HTML file by the same template.

Every text enters a template as text: autoescape is on, and nothing of a result is ever taken for markup.
"""

import re
from functools import cache
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from crossalign.papers.common.table import Cell, Table, plain
from crossalign.results.verdict import STAND_INS
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

TEMPLATES = Path(__file__).resolve().parents[4] / "resources" / "report"
NUMERAL = re.compile(r"[+−]?[\d,.]+|–")  # a fact that stands in a column like a number


@cache
def environment() -> Environment:
    """The templates of tables and page; a name that a template misses is an error."""
    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    return made


def render(template: str, **context: object) -> str:
    """A template filled in."""
    try:
        return environment().get_template(template).render(context)
    except TemplateNotFound as error:
        raise UserError(f"{TEMPLATES / str(error.name)}: a part of the page cannot be read") from None


def layout(table: Table) -> dict:
    """All that is shown of a table, in texts: what its JSON file holds and its template shows."""
    groups = [[name, len(list(columns))] for name, columns in groupby(table.columns, key=lambda column: column.group)]
    return {
        "item": table.item,
        "title": table.title,
        "stub": table.stub,
        "groups": groups if any(name for name, _ in groups) else [],
        "columns": [column.label for column in table.columns],
        "bodies": [
            {
                "name": name,
                "rows": [
                    {
                        "label": row.label,
                        "summary": row.summary,
                        "cells": [cell and shown(cell, table.count_shown(cell)) for cell in row.cells],
                    }
                    for row in rows
                ],
            }
            for name, rows in groupby(table.rows, key=lambda row: row.group)
        ],
        "legend": [[shade.name, shade.meaning] for shade in table.shading.shades] if table.shading else [],
        "notes": table.all_notes,
        "missing": table.missing,
    }


def shown(cell: Cell, count: str) -> dict:
    """One cell: ours, its spread, its count where unusual, the printed value, and what a page sorts by or tells."""
    kind = "fact" if cell.fact else "number" if cell.there else "notrun"
    numeral = "numeral" if cell.fact and NUMERAL.fullmatch(cell.shown) else ""
    shade = f"shade-{cell.shade}" if cell.shade else ""
    # `not-judged` for all its kinds.
    verdict = cell.verdict.label and f"verdict-{cell.verdict.label.partition(' (')[0].replace(' ', '-')}"
    printed = cell.printed and {
        "class": f"printed shade-{cell.printed_shade}" if cell.printed_shade else "printed",
        "text": cell.printed_shown or "?",
        "mark": cell.printed.mark,
    }
    return {
        "class": " ".join(filter(None, (kind, numeral, shade, verdict))),
        "data": {
            "value": plain(cell.value.mean),
            "printed": cell.printed.text if cell.printed else "",
            "difference": plain(cell.difference),
            "verdict": cell.verdict.label,
        },
        "hint": hint(cell),
        "ours": cell.shown,
        "mark": cell.mark,
        "std": "" if cell.value.std is None else f"±{cell.value.std:.{cell.digits}f}",
        "count": count,
        "printed": printed,
    }


def hint(cell: Cell) -> str:
    """What a cell says when asked."""
    parts = []
    if cell.value.wanted:
        parts.append(f"{cell.value.n} of {cell.value.wanted} runs")
    if cell.printed is not None:
        parts.append(f"printed {cell.printed_shown or 'unreadable'}{cell.printed.mark}")
    if cell.verdict.label:
        parts.append(": ".join(filter(None, (cell.verdict.label, cell.verdict.reason))))
    return "; ".join(parts)


def html_page(table: Table) -> str:
    """A small page: caption, table, legend of colours, notes, and what was not run."""
    labels = [cell.verdict.label for cell in table.cells() if cell.printed]
    # It may be opened far from the page, whose banner says whether languages or models are the papers'.
    apart = next((label for label in STAND_INS if label in labels), None)
    return render("table_file.html", table=layout(table), printed=bool(labels), apart=apart)


def write_html(table: Table, path: str | Path) -> None:
    """Write the small page."""
    with write_atomic(path) as stream:
        stream.write(html_page(table))


def write_data(table: Table, path: str | Path) -> None:
    """Write what the page shows of the table."""
    write_json(path, layout(table), indent=1, ensure_ascii=False)
