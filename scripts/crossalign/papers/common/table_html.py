"""A table as an HTML fragment: every name is escaped; what a page may show or sort by stands in attributes."""

from html import escape
from itertools import groupby
from pathlib import Path

from crossalign.papers.common.table import PAIRS, Cell, Row, Table, plain
from crossalign.results.verdict import Verdict
from crossalign.runtime.files import write_atomic


def css_class(label: str) -> str:
    """A verdict's label as a class: `not-judged` for all its kinds."""
    return label.partition(" (")[0].replace(" ", "-")


def attributes(cell: Cell) -> str:
    """Numbers and verdict of a cell, for sorting, filtering and tool tips."""
    found = {
        "class": " ".join(
            part
            for part in (
                "fact" if cell.fact else "number" if cell.there else "notrun",
                cell.shade and f"shade-{cell.shade}",
                cell.verdict.label and f"verdict-{css_class(cell.verdict.label)}",
            )
            if part
        ),
        "data-value": plain(cell.value.mean),
        "data-printed": cell.printed.text if cell.printed else "",
        "data-difference": plain(cell.difference),
        "data-verdict": cell.verdict.label,
        "title": hint(cell),
    }
    return "".join(f' {name}="{escape(value)}"' for name, value in found.items() if value)


def hint(cell: Cell) -> str:
    """What a cell says when asked."""
    parts = []
    if cell.value.wanted:
        parts.append(f"{cell.value.n} of {cell.value.wanted} runs")
    if cell.printed is not None:
        parts.append(f"printed {cell.printed_shown or 'unreadable'}{cell.printed.mark}")
    if cell.verdict.label:
        parts.append(tell(cell.verdict))
    return "; ".join(parts)


def tell(verdict: Verdict) -> str:
    """A verdict in words."""
    return f"{verdict.label}: {verdict.reason}" if verdict.reason else verdict.label


def content(cell: Cell, count: str) -> str:
    """What stands in a cell: ours, its spread, its count where unusual, and the printed value."""
    text = f'<span class="ours">{escape(cell.shown)}'
    text += f'<sup class="mark">{escape(cell.mark)}</sup>' if cell.mark else ""
    text += "</span>"
    if cell.value.std is not None:
        text += f'<span class="std">±{cell.value.std:.{cell.digits}f}</span>'
    if count:
        text += f'<span class="n">n={count}</span>'
    if cell.printed is not None:
        kind = f"printed shade-{cell.printed_shade}" if cell.printed_shade else "printed"
        # The space keeps the numbers apart where no style does: in Snakemake's report, and for screen readers.
        text += f' <span class="{kind}">{escape(cell.printed_shown or "?")}'
        text += f"<sup>{escape(cell.printed.mark)}</sup>" if cell.printed.mark else ""
        text += "</span>"
    return text


def body_row(table: Table, row: Row) -> str:
    """One line of the body."""
    cells = "".join(
        f"<td{attributes(cell)}>{content(cell, table.count_shown(cell))}</td>"
        if cell is not None
        else '<td class="none"></td>'
        for cell in row.cells
    )
    kind = ' class="summary"' if row.summary else ""
    return f'<tr{kind}><th scope="row">{escape(row.label)}</th>{cells}</tr>'


def head(table: Table) -> str:
    """The head: groups of columns above their labels, where there are groups."""
    labels = "".join(f'<th scope="col">{escape(column.label)}</th>' for column in table.columns)
    if not any(column.group for column in table.columns):
        return f'<thead><tr><th scope="col">{escape(table.stub)}</th>{labels}</tr></thead>'
    groups = ""
    for name, columns in groupby(table.columns, key=lambda column: column.group):
        groups += f'<th scope="colgroup" colspan="{len(list(columns))}">{escape(name)}</th>'
    return f'<thead><tr><th scope="col" rowspan="2">{escape(table.stub)}</th>{groups}</tr><tr>{labels}</tr></thead>'


def fragment(table: Table) -> str:
    """The whole fragment: a `figure` with caption, table, legend of colours, notes, and what was not run."""
    lines = [
        f'<figure class="item table" id="{escape(table.item.replace("/", "-"))}" data-item="{escape(table.item)}">',
        f"<figcaption>{escape(table.title)}</figcaption>",
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}"><table>',
        f'<caption class="visually-hidden">{escape(table.title)}</caption>',
        head(table),
    ]
    for name, rows in groupby(table.rows, key=lambda row: row.group):
        lines.append("<tbody>")
        if name:
            span = len(table.columns) + 1
            lines.append(f'<tr class="group"><th scope="rowgroup" colspan="{span}">{escape(name)}</th></tr>')
        lines += [body_row(table, row) for row in rows]
        lines.append("</tbody>")
    lines.append("</table></div>")
    if table.shading:
        keys = "".join(
            f'<li><span class="swatch shade-{shade.name}"></span>{escape(shade.meaning)}</li>'
            for shade in table.shading.shades
        )
        lines.append(f'<ul class="legend">{keys}</ul>')
    if table.all_notes:
        lines.append('<ul class="notes">' + "".join(f"<li>{escape(note)}</li>" for note in table.all_notes) + "</ul>")
    if missing := table.missing:
        listed = "".join(f"<li><code>{escape(address)}</code></li>" for address in missing)
        lines.append(f'<details class="missing"><summary>Not run: {len(missing)}</summary><ul>{listed}</ul></details>')
    return "\n".join([*lines, "</figure>"]) + "\n"


def stylesheet() -> str:
    """The style that fragments count on, for a page to put into its head; dark pages override the variables."""
    shades = PAIRS.shades
    variables = "".join(f"--shade-{shade.name}:#{shade.colour};" for shade in shades)
    classes = "".join(
        f".shade-{shade.name}{{background:var(--shade-{shade.name});color:var(--shade-text)}}" for shade in shades
    )
    return (
        f":root{{--shade-text:#1a1a1a;{variables}}}{classes}"
        ".item table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
        ".item th,.item td{padding:.2em .5em;text-align:right;white-space:nowrap}"
        ".item th[scope=row],.item th[scope=rowgroup],.item td.fact{text-align:left}"
        ".item thead th{border-bottom:1px solid;text-align:center}"
        ".item tbody{border-bottom:1px solid}"
        ".item .std,.item .n{font-size:.72em;margin-left:.2em}"
        ".item .printed{display:block;font-size:.8em;font-style:italic}"
        ".item .notrun{font-style:italic;opacity:.75}"
        ".item .swatch{display:inline-block;width:1em;height:1em;margin-right:.3em;vertical-align:-.1em}"
        ".item .scroll{overflow-x:auto}"
        ".visually-hidden{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}"
    )


def write_html(table: Table, path: str | Path) -> None:
    """Write the fragment."""
    with write_atomic(path) as stream:
        stream.write(fragment(table))
