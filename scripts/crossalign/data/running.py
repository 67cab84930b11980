"""Take running text out of files as they are published: one sentence or paragraph a line, in their order.

A reader turns the text of one file into lines; what is left of white space and markup goes. The readers are forgiving,
because published files are not always well formed. Imported while the workflow is planned: the standard library only.
"""

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterator


def read(data: bytes, reader: str, option: str = "") -> Iterator[str]:
    """The lines that a reader finds in a file, tidy; those that are not UTF-8 are left out."""
    text = re.sub("\r\n?", "\n", data.decode("utf-8-sig", errors="replace"))
    for line in READERS[reader](text, option):
        line = unicodedata.normalize("NFC", " ".join(line.split()))
        if "\ufffd" not in line and any(map(str.isalpha, line)):
            yield line


def plain(text: str, option: str) -> Iterator[str]:
    """One sentence or paragraph a line; lines that are a tag or a heading of a wiki are not text."""
    return (line for line in text.split("\n") if not re.fullmatch(r"\s*(<[^>]*>|=+.*=+)\s*", line))


_MARKDOWN_OFF = re.compile(
    r"""\A---\n.*?\n---\n         # front matter
    |<!--.*?-->
    |^[ ]*(```+|~~~+).*?^[ ]*\1   # fenced code
    |^[^\n]+\n[=-]{3,}[ ]*$       # a heading by its underline
    |^[ ]*\#.*?$
    |^[ ]*\|.*?$                  # tables
    |^[ ]*\[[^\]]+\]:.*?$         # addresses of links
    |\{\{.*?\}\}|\{%.*?%\}|\{[:\#][^}]*\}
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_MARKDOWN_INLINE = (
    (re.compile(r"!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])"), ""),  # pictures
    (re.compile(r"\[\^[^\]]*\]"), ""),  # notes
    (re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^>]*>|<https?:[^>]*>"), ""),
    (re.compile(r"(?<!\\)[*`]+|(?<!\w)_+|_+(?!\w)|~~"), ""),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)]|>)\s+")


def markdown(text: str, option: str) -> Iterator[str]:
    """Paragraphs and items of lists, without markup; no headings, code or tables."""
    held: list[str] = []
    # A blank line in place of what goes, so that what stands around it stays apart.
    for line in [*_MARKDOWN_OFF.sub("\n", text).split("\n"), ""]:
        item = _ITEM.match(line)
        if item or not line.strip():
            paragraph = "\n".join(held)
            for pattern, replacement in _MARKDOWN_INLINE:
                paragraph = pattern.sub(replacement, paragraph)
            yield html.unescape(paragraph)
            held = []
        held.append(line[item.end() :] if item else line)


def _spaced(words: str) -> str:
    """Tokens as running text: no space before marks."""
    words = re.sub(r"``|''", '"', " ".join(words.split()))
    return re.sub(r" (?=[.,;:!?%)])|(?<=\() ", "", words)


_TAGS = re.compile(r"<!--.*?-->|<[!?][^>]*>|<(/?)([a-z][\w:.-]*)[^>]*?(/?)>", re.IGNORECASE | re.DOTALL)
# Headings are `head` in TEI and h1 to h6 in HTML, whose `head` is not text either.
_SKIPPED = frozenset(
    ("script", "style", "pre", "table", "nav", "footer", "head", "h1", "h2", "h3", "h4", "h5", "h6")
    + ("note", "teiheader", "speaker", "stage")
)


def elements(text: str, option: str) -> Iterator[str]:
    """The text of some elements of HTML or XML, an inner one apart from the outer one; the option names them: `p,li`.

    Not a parser: novels in TEI have wrong tags, and HTML may leave the end of a paragraph out.
    """
    wanted, opened, skipped, held, end = option.split(","), [], [], [], 0
    # Words of a treebank are elements that white space parts, also from marks.
    finish = _spaced if "<w " in text else str
    for match in _TAGS.finditer(text):
        if opened and not skipped:
            held.append(text[end : match.start()])
        end, closing, name = match.end(), match[1], (match[2] or "").lower()
        if name in ("br", "lb"):
            held.append(" ")
        elif match[3]:
            continue
        elif name in _SKIPPED:
            _follow(skipped, name, closing)
        elif name in wanted and not skipped:
            yield finish(html.unescape("".join(held)))
            held = []
            if name == "p" and opened[-1:] == ["p"] and not closing:
                opened.pop()
            _follow(opened, name, closing)


def _follow(opened: list[str], name: str, closing: str) -> None:
    """Open an element, or close it and what was left open in it."""
    if not closing:
        opened.append(name)
    elif name in opened:
        while opened.pop() != name:
            pass


def comments(text: str, option: str) -> Iterator[str]:
    """A comment of the sentences of a treebank in CoNLL-U; the option is its name: `text`."""
    return (match[1] for match in re.finditer(rf"^# {re.escape(option)} = (.*)$", text, re.MULTILINE))


def values(text: str, option: str) -> Iterator[str]:
    """All strings under one key of a JSON file or of JSON lines, their lines apart; the option is the key."""

    def under(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == option and isinstance(inner, str):
                    yield from _unwrapped(inner)
                else:
                    yield from under(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from under(inner)

    try:
        yield from under(json.loads(text))
    except json.JSONDecodeError:
        for line in filter(str.strip, text.split("\n")):
            yield from under(json.loads(line))


def _unwrapped(text: str) -> Iterator[str]:
    """The lines of a text; one that goes on with a small letter belongs to the line before it."""
    held = ""
    for line in text.split("\n"):
        if line[:1].islower() and held and held[-1] not in ".;:":
            held = f"{held} {line}"
        else:
            yield held
            held = line
    yield held


def column(text: str, option: str) -> Iterator[str]:
    """A column of a tab-separated table with a header; the option is its name."""
    rows = [line.split("\t") for line in text.split("\n")]
    place = rows[0].index(option)
    return (row[place] for row in rows[1:] if len(row) > place)


READERS: dict[str, Callable[[str, str], Iterator[str]]] = {
    "lines": plain,
    "markdown": markdown,
    "elements": elements,
    "comments": comments,
    "values": values,
    "column": column,
}
