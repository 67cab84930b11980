"""Read text files and members of zip and tar archives as streams; nothing is unpacked to disk, and sizes are bounded.

A member of an archive inside an archive is written `inner.tar.gz!member`.
"""

import contextlib
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, TextIO

from crossalign.runtime.errors import UserError

# No text or table that people make shrinks to a two-hundredth; below the floor, nobody is hurt.
LARGEST_RATIO = 200
RATIO_FLOOR = 64 << 20
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError)
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")


class Refused(Exception):
    """What is asked of an archive is not there, or too large."""


@contextlib.contextmanager
def open_text(path: str | Path, member: str | None = None) -> Iterator[TextIO]:
    """Open UTF-8 text: a plain file, a .gz or .xz file, or a member of an archive.

    Lines end at line feeds only, so a stray carriage return in the data does not break a line in two.
    """
    path = Path(path)
    if is_archive(path) != (member is not None):
        raise UserError(f"{path}: {'an archive; name the member to read' if is_archive(path) else 'no archive'}")
    with ExitStack() as opened, _told(f"{path}!{member}" if member else str(path)):
        stream, name, packed = opened.enter_context(path.open("rb")), path.name.lower(), path.stat().st_size
        for wanted in member.split("!") if member else ():
            packed, stream = _member(stream, name, packed, wanted, opened)
            name = wanted
        if name.endswith((".gz", ".xz")):
            opener = gzip.open if name.endswith(".gz") else lzma.open
            stream = opened.enter_context(opener(stream))
        bounded = io.BufferedReader(_Bounded(stream, _limit(packed)), 1 << 20)
        yield opened.enter_context(io.TextIOWrapper(bounded, encoding="utf-8", newline="\n"))


def members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The plain files of an archive whose names are wanted, in its order, with their content."""
    with ExitStack() as opened, _told(str(path)):
        stream = opened.enter_context(path.open("rb"))
        for name, length, content in _files(stream, path.name.lower(), opened):
            if wanted(name):
                yield name, _checked(length, content, path.stat().st_size).read()


def is_archive(path: str | Path) -> bool:
    """Whether a file has members, by its name."""
    return Path(path).name.lower().endswith(ARCHIVES)


def _member(stream: BinaryIO, archive: str, packed: int, wanted: str, opened: ExitStack) -> tuple[int, BinaryIO]:
    """Length and stream of one member."""
    names = []
    for name, length, content in _files(stream, archive, opened):
        if name == wanted:
            return length, opened.enter_context(_checked(length, content, packed))
        names.append(name)
    raise Refused(f"no member '{wanted}'; it has {', '.join(names[:5])}{' …' if len(names) > 5 else ''}")


def _files(stream: BinaryIO, archive: str, opened: ExitStack) -> Iterator[tuple[str, int, Callable[[], BinaryIO]]]:
    """Name, length and opener of each plain file of an archive, in its order."""
    if archive.endswith(".zip"):
        packed = opened.enter_context(zipfile.ZipFile(stream))
        for info in packed.infolist():
            if not info.is_dir():
                yield info.filename.removeprefix("./"), info.file_size, lambda info=info: packed.open(info)
        return
    tar = opened.enter_context(tarfile.open(fileobj=stream, mode="r|*", bufsize=1 << 20))  # noqa: SIM115
    for info in tar:
        if info.isreg():
            # The filter refuses what would lead out of a folder.
            opener = lambda info=info: tar.extractfile(tarfile.data_filter(info, "."))  # noqa: E731
            yield info.name.removeprefix("./"), info.size, opener


def _checked(length: int, content: Callable[[], BinaryIO], packed: int) -> BinaryIO:
    if length > _limit(packed):
        raise Refused(f"{packed} bytes are said to become {length}: a bomb; refused")
    return content()


def _limit(packed: int) -> int:
    """How many bytes may come out of so many packed ones."""
    return max(RATIO_FLOOR, LARGEST_RATIO * packed)


class _Bounded(io.RawIOBase):
    """A stream that gives no more than so many bytes."""

    def __init__(self, source: BinaryIO, limit: int) -> None:
        self._source, self._limit = source, limit

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer; called by the buffered reader around this stream."""
        count = self._source.readinto(buffer)
        if self._source.tell() > self._limit:
            raise Refused(f"more than {self._limit} bytes come out of it: a bomb; refused")
        return count


@contextlib.contextmanager
def _told(where: str) -> Iterator[None]:
    """Name the file in errors on its packing or text."""
    try:
        yield
    except Refused as error:
        raise UserError(f"{where}: {error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8: {error.reason} ({error.object[error.start :][:8]!r})") from error
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        raise UserError(f"{where}: damaged or incomplete ({reason}); delete the file and download it again") from error
