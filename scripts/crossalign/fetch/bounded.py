"""Streams and names that cannot do harm: bounded in length, closed with what they stand on, inside their folder."""

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol

from crossalign.runtime.errors import UserError

# No text or table that people make shrinks to a two-hundredth; below the floor, nobody is hurt.
LARGEST_RATIO = 200
RATIO_FLOOR = 64 << 20
HARD_CAP = 256 << 30
BLOCK = 1 << 20
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError)


class Closable(Protocol):
    """Anything with a close method."""

    def close(self) -> None:
        """Let go of it."""


class Bounded(io.RawIOBase):
    """A stream that gives no more than `limit` bytes, tells of damage, and closes what it stands on."""

    def __init__(
        self,
        source: BinaryIO,
        limit: int,
        where: str,
        below: Iterable[Closable] = (),
        at_end: Callable[[], None] = lambda: None,
    ):
        self._source, self._limit, self._left, self._where = source, limit, limit, where
        self._below, self._at_end = (source, *below), at_end

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer; called by the buffered reader around this stream."""
        try:
            data = self._source.read(len(buffer))
            if not data:
                self._at_end()
        except BROKEN as error:
            raise damaged(self._where, error) from error
        self._left -= len(data)
        if self._left < 0:
            raise UserError(f"{self._where}: more than {self._limit} bytes come out of it; refused")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close this and everything below."""
        if not self.closed:
            super().close()
            for stream in self._below:
                stream.close()


def buffered(stream: Bounded) -> BinaryIO:
    """The stream with all the methods that readers like."""
    return io.BufferedReader(stream, BLOCK)


def ratio_limit(packed: int) -> int:
    """How many bytes may come out of so many packed ones."""
    return min(max(RATIO_FLOOR, LARGEST_RATIO * packed), HARD_CAP)


def damaged(where: str, error: Exception) -> UserError:
    """The error for an archive that is cut or altered."""
    reason = str(error) or type(error).__name__
    return UserError(f"{where}: damaged or incomplete archive ({reason}); delete the file and download it again")


def plain_name(name: str) -> str:
    """A member's name in the form in which members are asked for."""
    return name.removeprefix("./")


def safe_name(name: str, where: str) -> str:
    """A member's name, refused if it could lead out of a folder."""
    plain = plain_name(name)
    unsafe = plain.startswith("/") or ".." in plain.split("/") or plain[1:2] == ":"
    if unsafe or any(character in plain for character in "\\\0"):
        raise UserError(f"{where}: the member name {name!r} leads out of its folder; refused")
    if not plain or str(PurePosixPath(plain)) != plain:
        raise UserError(f"{where}: {name!r} is not the name of a file in an archive")
    return plain


def no_member(where: str, name: str, names: Iterable[str]) -> UserError:
    """The error for a member that is not there, with those that have a similar name."""
    names = sorted(set(names))
    same = [other for other in names if PurePosixPath(other).name == PurePosixPath(name).name]
    near = list(dict.fromkeys([*same, *get_close_matches(name, names, n=5, cutoff=0.5)]))[:5]
    hint = f"; near: {', '.join(near)}" if near else f"; it holds {len(names)} others"
    return UserError(f"{where}: no member {name!r}{hint}")


def under_link(name: str, links: Iterable[str]) -> str | None:
    """The link of the archive through which a member would be written, if any."""
    parents = {str(parent) for parent in PurePosixPath(name).parents}
    return next((link for link in links if link.rstrip("/") in parents), None)
