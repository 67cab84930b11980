"""Take running text out of files as they are published: one sentence or paragraph a line, in their order.

A reader turns the text of one file into lines; what is left of white space and markup goes. The readers are forgiving,
because published files are not always well formed. Imported while the workflow is planned: the standard library only.
"""

import html
import json
import re
import struct
import unicodedata
from collections.abc import Callable, Iterator

# No line of prose is as long in files that are wrapped by hand or by mail programs.
WRAPPED = 120


def read(data: bytes, reader: str, option: str = "", encoding: str = "utf-8-sig") -> Iterator[str]:
    """The lines that a reader finds in a file, tidy; those that are not in the encoding are left out."""
    text = data if reader == "gettext" else re.sub("\r\n?", "\n", data.decode(encoding, errors="replace"))
    for line in READERS[reader](text, option):
        line = unicodedata.normalize("NFC", " ".join(line.split()))
        if "\ufffd" not in line and any(map(str.isalpha, line)):
            yield line


def plain(text: str, option: str) -> Iterator[str]:
    """One sentence or paragraph a line; lines that are a tag or a heading of a wiki are not text."""
    return (line for line in text.split("\n") if not re.fullmatch(r"\s*(<[^>]*>|=+.*=+)\s*", line))


def paragraphs(text: str, option: str) -> Iterator[str]:
    """Wrapped lines: a paragraph ends at a blank line or where the next line is indented."""
    lines = text.expandtabs().split("\n")
    if max(map(len, lines)) > WRAPPED:
        yield from plain(text, option)
        return
    held: list[str] = []
    for line in lines:
        if not line.strip() or line[0] == " ":
            yield " ".join(held)
            held = []
        held.append(line)
    yield " ".join(held)


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


def tagged(text: str, option: str) -> Iterator[str]:
    """Words with tags, a sentence a line; the option is the character before the tag, by default `/`."""
    mark = option or "/"
    for line in text.split("\n"):
        yield _spaced(" ".join(token.rpartition(mark)[0] for token in line.split()))


def gettext(data: bytes, option: str) -> Iterator[str]:
    """The translations of a compiled catalogue (.mo); the option `source` gives the texts that were translated.

    Texts with variables are left out: a sentence with a gap is none.
    """
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(data[:4])
    if order is None:
        raise ValueError("not a catalogue of messages (.mo)")
    count, originals, translations = struct.unpack_from(f"{order}8x3I", data)
    for number in range(count):
        # The first entry, whose original is empty, describes the catalogue.
        if struct.unpack_from(f"{order}I", data, originals + 8 * number)[0]:
            table = originals if option == "source" else translations
            length, start = struct.unpack_from(f"{order}2I", data, table + 8 * number)
            # A context ends with 4; singular and plural are parted by 0.
            message = data[start : start + length].decode("utf-8", errors="replace").rpartition("\x04")[2]
            text = re.sub(r"</?[a-z]+[^>]*>", "", message.partition("\0")[0])
            if not re.search(r"\$\w|%[\d$]*[sd]|\{\w", text):
                yield from text.split("\n")


def openiti(text: str, option: str) -> Iterator[str]:
    """Books in the markup of OpenITI: a paragraph begins with `# `, a further line of it with `~~`."""
    body = re.sub(r"\n~~", " ", text.partition("#META#Header#End#")[2])
    body = re.sub(r"PageV\w+P\w+|ms\d+", "", body)
    return (line[2:] for line in body.split("\n") if line.startswith("# ") and not line.startswith("# |"))


def aozora(text: str, option: str) -> Iterator[str]:
    """Works of Aozora Bunko without ruby and editors' notes; those in old spelling are left out."""
    head, *rest = re.split(r"^-{20,}\n", text, flags=re.MULTILINE)
    body = re.split(r"^底本：", rest[-1] if rest else head, flags=re.MULTILINE)[0]
    if re.search("[ゐゑ]", body):
        return
    for line in re.sub(r"《[^》]*》|［＃[^］]*］|｜|※", "", body).split("\n"):
        yield line.strip("\u3000")


READERS: dict[str, Callable[[str, str], Iterator[str]]] = {
    "lines": plain,
    "paragraphs": paragraphs,
    "markdown": markdown,
    "elements": elements,
    "comments": comments,
    "values": values,
    "column": column,
    "tagged": tagged,
    "gettext": gettext,
    "openiti": openiti,
    "aozora": aozora,
}
