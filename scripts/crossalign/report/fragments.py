"""Tables enter the page through this gate: known elements and attributes pass, all else becomes text.

The fragments are our own (`papers.common.table_html`), but they are read back from files that anybody may have
edited, and a file that is cut off must not swallow the rest of the page.
"""

from html.parser import HTMLParser
from pathlib import Path

from crossalign.report.escape import text
from crossalign.runtime.errors import UserError

ELEMENTS = frozenset(
    (
        *("div", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("p", "span", "sup", "ul", "li", "details", "summary", "code"),
    )
)
ATTRIBUTES = frozenset(("class", "title", "scope", "colspan", "rowspan", "role", "tabindex", "aria-label"))
DATA = frozenset(("data-value", "data-printed", "data-difference", "data-verdict"))
# The page has a frame and a heading of its own.
UNWRAPPED = frozenset(("figure",))
LEFT_OUT = frozenset(("figcaption",))


class _Gate(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.open: list[str] = []
        self.skipping = 0
        self.cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in LEFT_OUT:
            self.skipping += 1
        elif self.skipping or tag in UNWRAPPED:
            return
        elif tag not in ELEMENTS:
            self.out.append(text(self.get_starttag_text() or ""))
        else:
            kept = (f' {name}="{text(value or "")}"' for name, value in attrs if name in ATTRIBUTES or name in DATA)
            self.out.append(f"<{tag}{''.join(kept)}>")
            self.open.append(tag)
            self.cells += tag == "td"

    def handle_endtag(self, tag: str) -> None:
        if tag in LEFT_OUT:
            self.skipping = max(0, self.skipping - 1)
        elif tag in self.open:
            self.close_until(tag)

    def handle_data(self, data: str) -> None:
        if not self.skipping:
            self.out.append(text(data))

    def close_until(self, tag: str | None) -> None:
        """Close what is open, down to `tag`, or all of it."""
        while self.open:
            last = self.open.pop()
            self.out.append(f"</{last}>")
            if last == tag:
                return


def clean(fragment: str) -> str:
    """The fragment with known elements only, all of them closed."""
    gate = _Gate()
    gate.feed(fragment)
    gate.close()
    gate.close_until(None)
    return "".join(gate.out)


def read_fragment(path: Path) -> str:
    """The table of a file, fit for the page."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no table that can be read ({error}); make the item again") from None
    if "<table" not in content:
        raise UserError(f"{path}: there is no table in this file; delete it and make the item again")
    return clean(content)
