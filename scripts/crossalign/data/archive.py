"""Read text files and members of zip and tar archives as streams, trusting nothing that they say.

A member of an archive inside an archive is written `inner.tar.gz!member`. Nothing is ever unpacked to disk. Names that
leave their folder, links, devices, duplicates and bombs are refused. Only members that are asked for are judged.
"""

import contextlib
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TextIO

from crossalign.runtime.errors import UserError

# No text or table that people make shrinks to a two-hundredth; below the floor, nobody is hurt.
LARGEST_RATIO = 200
RATIO_FLOOR = 64 << 20
HARD_CAP = 256 << 30
BLOCK = 1 << 20
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError)
GZ = (".gz", ".tgz")
XZ = (".xz", ".txz")
TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
ARCHIVES = (".zip", *TAR)
PACKED = (*ARCHIVES, ".deb")
# `members` holds one file in memory at a time.
LARGEST_MEMBER = 1 << 30


@contextlib.contextmanager
def open_text(path: str | Path, member: str | None = None) -> Iterator[TextIO]:
    """Open UTF-8 text: a plain file, a .gz or .xz file, or a member of an archive.

    Lines end at line feeds only, so a stray carriage return in the data does not break a line in two.
    """
    with (
        open_binary(path, member) as stream,
        io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text,
    ):
        try:
            yield text
        except UnicodeDecodeError as error:
            where = f"{path}!{member}" if member else str(path)
            raise UserError(f"{where}: not UTF-8: {error.reason} ({error.object[error.start :][:8]!r})") from error


@contextlib.contextmanager
def open_binary(path: str | Path, member: str | None = None) -> Iterator[BinaryIO]:
    """Open a file or a member as bytes; the suffix decides what the file is.

    A tar file is read to its end behind the member, so that damage or a second member of that name is noticed.
    """
    path = Path(path)
    is_archive = path.name.lower().endswith(ARCHIVES)
    if is_archive and member is None:
        raise UserError(f"{path}: this is an archive; name the member to read")
    if member is not None and not is_archive:
        raise UserError(f"{path}: not an archive, so it has no member {member!r}")
    names = [_safe_name(name, str(path)) for name in member.split("!")] if member else []
    with contextlib.ExitStack() as opened:
        try:
            stream = opened.enter_context(path.open("rb"))
        except OSError as error:
            raise UserError(f"{path}: cannot read: {error.strerror}") from error
        packed, inside, where = path.stat().st_size, path.name, str(path)
        if path.name.lower().endswith(".zip"):
            inside = names.pop(0)
            packed, stream = _zip_member(stream, inside, where, packed, opened)
            where = f"{where}!{inside}"
        elif not is_archive:
            stream = opened.enter_context(_unpacked(stream, inside, where, packed, opened))
        for name in names:
            packed, stream = _tar_member(stream, inside, where, packed, name, opened)
            inside, where = name, f"{where}!{name}"
        yield stream


def members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The plain files of an archive or a Debian package whose names are wanted, in its order, with their content."""
    with contextlib.ExitStack() as opened:
        try:
            stream = opened.enter_context(path.open("rb"))
        except OSError as error:
            raise UserError(f"{path}: cannot read: {error.strerror}") from error
        packed, inside = path.stat().st_size, path.name
        try:
            if path.name.lower().endswith(".zip"):
                archive = opened.enter_context(zipfile.ZipFile(stream))
                for info in archive.infolist():
                    if not info.is_dir() and wanted(info.filename):
                        _refuse_zip(info, str(path), info.filename, packed)
                        yield info.filename, archive.read(info)
                return
            if path.name.lower().endswith(".deb"):
                inside, stream = _package_data(stream, str(path))
            tar_stream = _unpacked(stream, inside, str(path), packed, opened)
            with tarfile.open(fileobj=tar_stream, mode="r|", bufsize=BLOCK) as tar:
                for info in tar:
                    name = info.name.removeprefix("./")
                    if info.isreg() and wanted(name):
                        if info.size > LARGEST_MEMBER:
                            raise UserError(f"{path}: {name} claims {info.size} bytes; refused")
                        yield name, tar.extractfile(info).read()
        except BROKEN as error:
            raise _damaged(str(path), error) from error
        except NotImplementedError as error:
            raise UserError(f"{path}: cannot be unpacked here: {error}") from error


def _package_data(stream: BinaryIO, where: str) -> tuple[str, BinaryIO]:
    """The name and the bytes of the tar file in a Debian package, an `ar` archive, that holds what gets installed."""
    if stream.read(8) != b"!<arch>\n":
        raise UserError(f"{where}: not a Debian package")
    while header := stream.read(60):
        name, size = header[:16].decode("ascii", errors="replace").strip(" /"), header[48:58].strip()
        if len(header) < 60 or not size.isdigit():
            break
        if name.startswith("data.tar"):
            if not name.endswith(TAR):
                raise UserError(f"{where}: {name} is packed in a way that cannot be read here ({', '.join(TAR)})")
            return name, io.BytesIO(stream.read(int(size)))
        stream.seek(int(size) + int(size) % 2, io.SEEK_CUR)
    raise UserError(f"{where}: damaged or incomplete Debian package; delete the file and download it again")


class _Bounded(io.RawIOBase):
    """A stream that gives no more than `limit` bytes and reports damage."""

    def __init__(self, source: BinaryIO, limit: int, where: str, at_end: Callable[[], None] = lambda: None):
        self._source, self._limit, self._left, self._where, self._at_end = source, limit, limit, where, at_end

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
            raise _damaged(self._where, error) from error
        self._left -= len(data)
        if self._left < 0:
            raise UserError(f"{self._where}: more than {self._limit} bytes come out of it; refused")
        buffer[: len(data)] = data
        return len(data)


def _unpacked(stream: BinaryIO, name: str, where: str, packed: int, opened: contextlib.ExitStack) -> BinaryIO:
    """The stream without its gzip or xz packing, as the suffix of `name` says; bounded."""
    if not name.lower().endswith(GZ + XZ):
        return stream
    opener = gzip.open if name.lower().endswith(GZ) else lzma.open
    plain = opened.enter_context(opener(stream))
    return io.BufferedReader(_Bounded(plain, _ratio_limit(packed), where), BLOCK)


def _tar_member(
    stream: BinaryIO, archive: str, where: str, packed: int, name: str, opened: contextlib.ExitStack
) -> tuple[int, BinaryIO]:
    """The declared length and the stream of one member."""
    if not archive.lower().endswith(TAR):
        raise UserError(f"{where}: not an archive that can be read here (zip outside; tar, tar.gz, tar.xz)")
    walk = _walk_tar(_unpacked(stream, archive, where, packed, opened), where, name)
    length, content = next(walk)

    def read_on() -> None:
        next(walk, None)

    member = io.BufferedReader(_Bounded(content, length, f"{where}!{name}", at_end=read_on), BLOCK)
    return length, opened.enter_context(member)


def _walk_tar(stream: BinaryIO, where: str, wanted: str) -> Iterator[tuple[int, BinaryIO]]:
    """Go once through a tar stream; yield the wanted member, which is readable until the walk goes on."""
    names: list[str] = []
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=BLOCK) as tar:
            for info in tar:
                name = info.name.removeprefix("./")
                if name == wanted:
                    _refuse_tar(info, name in names, where, name)
                    yield info.size, tar.extractfile(info)
                names.append(name)
    except BROKEN as error:
        raise _damaged(where, error) from error
    if wanted not in names:
        raise _no_member(where, wanted, names)


def _refuse_tar(info: tarfile.TarInfo, again: bool, where: str, name: str) -> None:
    if again:
        raise UserError(f"{where}: {name} is in the archive twice; refused")
    if not info.isreg() or info.issparse():
        kind = "a link" if info.issym() or info.islnk() else "a folder" if info.isdir() else "not a plain file"
        raise UserError(f"{where}: {name} is {kind}; refused")
    if info.size > HARD_CAP:
        raise UserError(f"{where}: {name} claims {info.size} bytes; refused")


def _zip_member(
    stream: BinaryIO, name: str, where: str, packed: int, opened: contextlib.ExitStack
) -> tuple[int, BinaryIO]:
    """The declared length and the stream of one member."""
    try:
        archive = opened.enter_context(zipfile.ZipFile(stream))
        infos = archive.infolist()
        matching = [info for info in infos if info.filename.removeprefix("./") == name]
        if not matching:
            raise _no_member(where, name, [info.filename.removeprefix("./") for info in infos])
        if len(matching) > 1:
            raise UserError(f"{where}: {name} is in the archive twice; refused")
        _refuse_zip(matching[0], where, name, packed)
        content = opened.enter_context(archive.open(matching[0]))
    except BROKEN as error:
        raise _damaged(where, error) from error
    except NotImplementedError as error:
        raise UserError(f"{where}: {name}: {error}") from error
    length = matching[0].file_size
    return length, opened.enter_context(io.BufferedReader(_Bounded(content, length, f"{where}!{name}"), BLOCK))


def _refuse_zip(info: zipfile.ZipInfo, where: str, name: str, packed: int) -> None:
    mode = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir() or mode not in (0, stat.S_IFREG):
        raise UserError(f"{where}: {name} is {'a link' if stat.S_ISLNK(mode) else 'not a plain file'}; refused")
    if info.flag_bits & 1:
        raise UserError(f"{where}: {name} is encrypted")
    if info.compress_size > packed or info.file_size > _ratio_limit(info.compress_size):
        claim = f"{info.compress_size} bytes become {info.file_size}"
        raise UserError(f"{where}: {name} claims that {claim}: a bomb; refused")


def _ratio_limit(packed: int) -> int:
    """How many bytes may come out of so many packed ones."""
    return min(max(RATIO_FLOOR, LARGEST_RATIO * packed), HARD_CAP)


def _damaged(where: str, error: Exception) -> UserError:
    reason = str(error) or type(error).__name__
    return UserError(f"{where}: damaged or incomplete archive ({reason}); delete the file and download it again")


def _safe_name(name: str, where: str) -> str:
    """A member's name as it is asked for, refused if it could lead out of a folder."""
    plain = name.removeprefix("./")
    unsafe = plain.startswith("/") or ".." in plain.split("/") or plain[1:2] == ":"
    if unsafe or any(character in plain for character in "\\\0"):
        raise UserError(f"{where}: the member name {name!r} leads out of its folder; refused")
    if not plain or str(PurePosixPath(plain)) != plain:
        raise UserError(f"{where}: {name!r} is not the name of a file in an archive")
    return plain


def _no_member(where: str, name: str, names: Iterable[str]) -> UserError:
    """The error for a missing member, with those that have a similar name."""
    names = sorted(set(names))
    same = [other for other in names if PurePosixPath(other).name == PurePosixPath(name).name]
    near = list(dict.fromkeys([*same, *get_close_matches(name, names, n=5, cutoff=0.5)]))[:5]
    hint = f"; near: {', '.join(near)}" if near else f"; it holds {len(names)} others"
    return UserError(f"{where}: no member {name!r}{hint}")
