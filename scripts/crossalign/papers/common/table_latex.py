r"""A table as LaTeX that compiles as it is, and whose marked middle can be pasted into a paper.

The line of printed numbers under each of ours is a macro, so that `\renewcommand{\printedrow}[1]{}` hides them all.
"""

import re
import unicodedata
from itertools import groupby
from pathlib import Path

from crossalign.papers.common.table import Cell, Row, Table
from crossalign.runtime.files import write_atomic

SPECIAL = {
    **{char: f"\\{char}" for char in "&%#_{}"},
    # The text dollar comes from a font that small installations have not.
    "$": r"$\mathdollar$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "…": r"\dots{}",
    "'": "'",
    '"': "''",
    # A bracket after `\\` would be read as its argument.
    "[": "{[}",
    "]": "{]}",
}

# Grave, acute, circumflex, tilde, macron, breve, dot, diaeresis, ring, double acute, caron, cedilla.
ACCENTS = set("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[PAPER]{geometry}
\usepackage{booktabs,longtable}
\usepackage[table]{xcolor}
\pagestyle{empty}
"""

MACROS = r"""% Needs booktabs, longtable and xcolor with the option `table`. Run LaTeX twice: longtable wants it.
\providecommand{\printedrow}[1]{#1}% hide the paper's numbers: \renewcommand{\printedrow}[1]{}
\providecommand{\printed}[1]{{\scriptsize\itshape\color{black!65}#1}}
\providecommand{\std}[1]{{\tiny$\pm$#1}}
\providecommand{\runs}[1]{{\tiny(#1)}}
\providecommand{\notrun}{{\scriptsize\color{black!55}not run}}
"""


def tex(text: str) -> str:
    """Text with every character that TeX would take for a command made harmless; controls become spaces."""
    clean = re.sub(r"[\x00-\x1f\x7f]+", " ", text)
    return "".join(SPECIAL.get(char, char if drawable(char) else "?") for char in clean)


def drawable(char: str) -> bool:
    """Whether the fonts that every TeX has can show a character: ASCII, and its letters with a common accent."""
    letter, *accents = unicodedata.normalize("NFD", char)
    return letter.isascii() and all(accent in ACCENTS for accent in accents)


def ours(table: Table, cell: Cell | None) -> str:
    """Our content of one cell."""
    if cell is None:
        return ""
    colour = f"\\cellcolor{{{cell.shade}}}" if cell.shade else ""
    if not cell.there and not cell.fact:
        return colour + r"\notrun"
    text = colour + tex(cell.shown)
    if cell.mark:
        text += f"$^{{{cell.mark.replace('*', chr(92) + 'ast ')}}}$"
    if cell.value.std is not None:
        text += f"\\std{{{cell.value.std:.{cell.digits}f}}}"
    if count := table.count_shown(cell):
        text += f"\\runs{{{count}}}"
    return text


def theirs(cell: Cell | None) -> str:
    """The printed content of one cell, in its colour."""
    if cell is None or cell.printed is None:
        return ""
    colour = f"\\cellcolor{{{cell.printed_shade}}}" if cell.printed_shade else ""
    mark = f"$^{{{cell.printed.mark.replace('*', chr(92) + 'ast ')}}}$" if cell.printed.mark else ""
    return f"{colour}\\printed{{{tex(cell.printed_shown or '?')}{mark}}}"


def body_row(table: Table, row: Row) -> list[str]:
    """Our line and, where anything is printed, the paper's."""
    lines = [" & ".join([tex(row.label), *(ours(table, cell) for cell in row.cells)]) + r" \\"]
    if any(cell is not None and cell.printed is not None for cell in row.cells):
        cells = " & ".join([r"\printed{printed}", *(theirs(cell) for cell in row.cells)])
        # Starred: a page may not be broken between ours and theirs.
        lines[0] = lines[0][: -len(r"\\")] + r"\\*"
        lines.append(f"\\printedrow{{{cells} \\\\}}")
    return lines


def heads(table: Table) -> list[str]:
    """The lines of the head."""
    lines = []
    if any(column.group for column in table.columns):
        cells, rules, place = [""], [], 2
        for name, columns in groupby(table.columns, key=lambda column: column.group):
            width = len(list(columns))
            cells.append(f"\\multicolumn{{{width}}}{{c}}{{{tex(name)}}}")
            rules.append(f"\\cmidrule(lr){{{place}-{place + width - 1}}}" if name else "")
            place += width
        lines += [" & ".join(cells) + r" \\", "".join(rules)]
    labels = [f"\\multicolumn{{1}}{{c}}{{{tex(column.label)}}}" for column in table.columns]
    return [line for line in [*lines, " & ".join([tex(table.stub), *labels]) + r" \\"] if line]


def body(table: Table) -> list[str]:
    """All rows, groups under their names."""
    lines: list[str] = []
    width = len(table.columns) + 1
    for place, (name, rows) in enumerate(groupby(table.rows, key=lambda row: row.group)):
        if place:
            lines.append(r"\midrule")
        if name:
            lines.append(f"\\multicolumn{{{width}}}{{@{{}}l}}{{\\textbf{{{tex(name)}}}}} \\\\*")
        for row in rows:
            if row.summary:
                lines.append(f"\\cmidrule{{1-{width}}}")
            lines += body_row(table, row)
    return lines


def legend(table: Table) -> list[str]:
    """Colours, notes and missing runs under the table."""
    lines = []
    if table.shading:
        keys = r"\quad ".join(
            f"\\colorbox{{{shade.name}}}{{\\strut {tex(shade.meaning)}}}" for shade in table.shading.shades
        )
        lines.append(keys)
    lines += [tex(note) for note in table.all_notes]
    if missing := table.missing:
        shown = ", ".join(f"\\texttt{{{tex(address)}}}" for address in missing[:12])
        more = f" and {len(missing) - 12} more" if len(missing) > 12 else ""
        lines.append(f"Not run: {shown}{more}.")
    return lines


def document(table: Table) -> str:
    """The whole file."""
    wide = len(table.columns) > 9
    facts = any(cell.fact for cell in table.cells())
    columns = "l" * (1 + len(table.columns)) if facts else "l" + "r" * len(table.columns)
    paper = "a4paper,landscape,margin=12mm" if wide else "a4paper,margin=12mm"
    size = r"\small" if len(table.columns) <= 5 else r"\footnotesize"
    colours = [
        f"\\definecolor{{{s.name}}}{{HTML}}{{{s.colour}}}" for s in (table.shading.shades if table.shading else [])
    ]
    head = [r"\toprule", *heads(table), r"\midrule"]
    lines = [
        PREAMBLE.replace("PAPER", paper) + r"\begin{document}",
        f"% ---- {table.item}: paste from here",
        MACROS + "\n".join(colours),
        f"{{{size}\\setlength{{\\tabcolsep}}{{4pt}}",
        # No @{} at the right: the colour of a cell would reach beyond the rules.
        f"\\begin{{longtable}}{{@{{}}{columns}}}",
        f"\\caption{{{tex(table.title)}}}\\label{{tab:{tex_label(table.item)}}}\\\\",
        *head,
        r"\endfirsthead",
        *head,
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
        *body(table),
        r"\end{longtable}}",
        *(f"\\par\\noindent{{\\footnotesize {line}\\par}}\\smallskip" for line in legend(table)),
        "% ---- to here",
        r"\end{document}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def tex_label(item: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", item.lower())


def write_tex(table: Table, path: str | Path) -> None:
    """Write the document."""
    with write_atomic(path) as stream:
        stream.write(document(table))
