"""Raw and prepared files line by line: numbered lines, tables, JSON lines, and errors that name file and line."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, TextIO

from crossalign.data.archive import is_archive, open_text
from crossalign.runtime.errors import UserError


class Source:
    """A raw file, or a member of an archive, that can be opened and named in messages."""

    def __init__(self, path: str | Path, member: str | None = None) -> None:
        """`member` counts only when `path` is an archive, so that an unpacked file works in its place."""
        self.path = Path(path)
        self.member = member if is_archive(path) else None
        self.name = f"{path}!{self.member}" if self.member else str(path)

    def open(self) -> AbstractContextManager[TextIO]:
        """A stream of UTF-8 text, whatever the packing."""
        if not self.path.is_file():
            raise UserError(f"{self.path}: no such file")
        return open_text(self.path, self.member)

    def lines(self) -> Iterator[tuple[int, str]]:
        """The numbered lines of the file."""
        with self.open() as stream:
            yield from numbered(stream, self.name)


def numbered(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """Number `lines` from 1 and strip their ends, be they LF or CRLF, and the byte-order mark.

    Text that is not UTF-8 ends in an error with the number of the last good line.
    """
    number, rest = 0, iter(lines)
    try:
        for line in rest:
            number = 1
            yield 1, line.removeprefix("\ufeff").rstrip("\r\n")
            break
        for number, line in enumerate(rest, 2):
            yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _not_text(name, number, error) from None


def blocks(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The runs of lines between blank ones, each with the number of its first line. Line ends as for `numbered`."""
    block: list[str] = []
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\r\n")
            if line:
                block.append(line if number > 1 else line.removeprefix("\ufeff"))
            elif block:
                yield number - len(block), block
                block = []
    except UnicodeDecodeError as error:
        raise _not_text(name, number, error) from None
    if block:
        yield number - len(block) + 1, block


def _not_text(name: str, number: int, error: UnicodeDecodeError) -> UserError:
    return UserError(f"{name}: not UTF-8 after line {number}: {error.reason}; convert the file to UTF-8")


def wrong(name: str, number: int, what: str) -> UserError:
    """The error for a malformed line."""
    return UserError(f"{name}, line {number}: {what}")


def shown(text: str, limit: int = 60) -> str:
    """A piece of a line for a message: quoted, short, control characters visible."""
    quoted = repr(text)
    return quoted if len(quoted) <= limit else quoted[:limit] + "…'"


def read_table(
    lines: Iterable[str], name: str, wanted: Sequence[str | tuple[str, ...]]
) -> Iterator[tuple[int, list[str]]]:
    """The `wanted` columns of every row with its line number, in the order asked for.

    A column may be given as several names, of which the header has one.
    """
    rows = numbered(lines, name)
    _, header_line = next(rows, (0, ""))
    header = header_line.split("\t")
    places = [_place(header, names if isinstance(names, tuple) else (names,), name) for names in wanted]
    width = len(header)
    for number, line in rows:
        fields = line.split("\t")
        if len(fields) != width:
            raise wrong(name, number, f"{len(fields)} fields where the header has {width}: {shown(line)}")
        yield number, [fields[place] for place in places]


def _place(header: list[str], names: tuple[str, ...], name: str) -> int:
    for candidate in names:
        if candidate in header:
            return header.index(candidate)
    raise UserError(f"{name}, line 1: no column {' or '.join(names)}; the header has {shown(' '.join(header), 200)}")


# One encoder for all rows: json.dumps with these settings would build one per call.
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def write_rows(rows: Iterable[dict[str, Any]], stream: IO[str]) -> int:
    """Write one compact JSON object a line; return how many."""
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 (returned)
        try:
            stream.write(_ENCODE(row) + "\n")
        except UnicodeEncodeError:
            raise UserError(f"item {shown(str(row.get('id')))}: half of a surrogate pair, which is no text") from None
    return count


def read_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a stream of JSON lines with their line numbers."""
    for number, line in numbered(lines, name):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise wrong(name, number, f"not JSON ({error}): {shown(line)}") from None
        if not isinstance(row, dict):
            raise wrong(name, number, f"not a JSON object: {shown(line)}")
        yield number, row
