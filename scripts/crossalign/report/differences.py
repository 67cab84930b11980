"""What differs from the papers by design, as docs/differences.md has it: its tables become tables of the page."""

import re
from pathlib import Path

from crossalign.report.escape import text

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`([^`]*)`")


def inline(markdown: str) -> str:
    """A cell: code stays code, a link keeps its words alone, because the page travels without the other files."""
    return _CODE.sub(r"<code>\1</code>", text(_LINK.sub(r"\1", markdown.strip())))


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [inline(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def differences(path: Path) -> str:
    """One fold for each section that has a table; empty where there is no such file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ""
    folds, title = [], ""
    rows: list[list[str]] = []
    for line in [*lines, "## "]:
        if line.startswith("|"):
            if not re.fullmatch(r"[|:\s-]+", line):
                rows.append(cells(line))
        elif line.startswith("## "):
            if rows:
                folds.append(fold(title, rows))
            title, rows = inline(line.removeprefix("## ")), []
    return "\n".join(folds)


def fold(title: str, rows: list[list[str]]) -> str:
    """The table of a section; its first row is the head."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
    label = re.sub(r"<[^>]*>", "", title)
    return (
        f'<details class="fold"><summary>{title} ({len(rows) - 1})</summary>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table class="plain">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )
