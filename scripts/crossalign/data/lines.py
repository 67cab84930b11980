"""Lines of raw files with their numbers, and errors that name file and line."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from lzma import LZMAError
from pathlib import Path
from typing import TextIO

from crossalign.fetch.archive import open_text
from crossalign.runtime.errors import UserError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")

BROKEN = (UnicodeDecodeError, EOFError, OSError, zlib.error, LZMAError)


class Source:
    """A raw file, or a member of an archive, that can be opened and named in messages."""

    def __init__(self, path: str | Path, member: str | None = None) -> None:
        """`member` counts only when `path` is an archive, so that an unpacked file works in its place."""
        self.path = Path(path)
        self.member = member if self.path.name.endswith(ARCHIVES) else None
        if self.path.name.endswith(ARCHIVES) and not member:
            raise UserError(f"{path}: an archive, but this format is a plain file")
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

    Text that is not UTF-8 or cannot be unpacked ends in an error with the number of the last good line.
    """
    number, rest = 0, iter(lines)
    try:
        for line in rest:
            number = 1
            yield 1, line.removeprefix("\ufeff").rstrip("\r\n")
            break
        for number, line in enumerate(rest, 2):
            yield number, line.rstrip("\r\n")
    except BROKEN as error:
        raise _broken(name, number, error) from None


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
    except BROKEN as error:
        raise _broken(name, number, error) from None
    if block:
        yield number - len(block) + 1, block


def _broken(name: str, number: int, error: Exception) -> UserError:
    if isinstance(error, UnicodeDecodeError):
        return UserError(f"{name}: not UTF-8 after line {number}: {error.reason}; convert the file to UTF-8")
    return UserError(f"{name}: broken after line {number}: {error}; download it again")


def wrong(name: str, number: int, what: str) -> UserError:
    """The error for a malformed line."""
    return UserError(f"{name}, line {number}: {what}")


def shown(text: str, limit: int = 60) -> str:
    """A piece of a line for a message: quoted, short, control characters visible."""
    quoted = repr(text)
    return quoted if len(quoted) <= limit else quoted[:limit] + "…'"
