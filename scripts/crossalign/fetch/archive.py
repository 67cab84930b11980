"""Read members of zip and tar archives as streams, or put chosen ones on disk, trusting nothing that they say.

A member of an archive inside an archive is written `inner.tar.gz!member`. Names that leave their folder, links,
devices, duplicates and bombs are refused. Only members that are asked for are judged: an archive may hold others.
"""

import contextlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from crossalign.fetch.bounded import BLOCK, Bounded, buffered, safe_name
from crossalign.fetch.containers import GZ, TAR, XZ, TarMembers, open_zip, unpacked, zip_member
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic


def open_member(archive: str | Path, member: str, max_bytes: int | None = None) -> BinaryIO:
    """Open one member of an archive as a stream of bytes, without unpacking to disk.

    At most `max_bytes` are given; by default as many as the archive declares. Close the stream, or use `with`.
    A tar file is read to its end behind the member, so that damage or a second member of that name is noticed.
    """
    archive = Path(archive)
    names = [safe_name(name, str(archive)) for name in member.split("!")]
    with contextlib.ExitStack() as on_error:
        if _is_zip(archive):
            opened = on_error.enter_context(open_zip(archive))
            first = names.pop(0)
            length, stream = zip_member(opened, first, archive, None if names else max_bytes, [opened])
            inside, where = first, f"{archive}!{first}"
        else:
            length, stream = archive.stat().st_size if archive.exists() else 0, _open(archive)
            inside, where = archive.name, str(archive)
        on_error.enter_context(stream)
        for depth, name in enumerate(names):
            last = depth == len(names) - 1
            length, stream = _tar_member(stream, inside, where, length, name, max_bytes if last else None)
            on_error.enter_context(stream)
            inside, where = name, f"{where}!{name}"
        on_error.pop_all()
    return stream


@contextlib.contextmanager
def open_text(path: str | Path, member: str | None = None, max_bytes: int | None = None) -> Iterator[TextIO]:
    """Open UTF-8 text: a plain file, a .gz or .xz file, or a member of an archive.

    Lines end at line feeds only, so a stray carriage return in the data does not break a line in two.
    """
    where = f"{path}!{member}" if member else str(path)
    with (
        open_binary(path, member, max_bytes) as stream,
        io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text,
    ):
        try:
            yield text
        except UnicodeDecodeError as error:
            raise UserError(f"{where}: not UTF-8: {error.reason} ({error.object[error.start :][:8]!r})") from error


def open_binary(path: str | Path, member: str | None = None, max_bytes: int | None = None) -> BinaryIO:
    """The same as bytes. The suffix decides what the file is."""
    path = Path(path)
    if _is_zip(path) or path.name.lower().endswith(TAR):
        if member is None:
            raise UserError(f"{path}: this is an archive; name the member to read")
        return open_member(path, member, max_bytes)
    if member is not None:
        raise UserError(f"{path}: not an archive, so it has no member {member!r}")
    stream = _open(path)
    if path.name.lower().endswith(GZ + XZ):
        return unpacked(stream, path.name, str(path), path.stat().st_size, max_bytes)
    return stream if max_bytes is None else buffered(Bounded(stream, max_bytes, str(path)))


def extract(archive: str | Path, members: Iterable[str], folder: str | Path, max_bytes: int) -> list[Path]:
    """Put members below `folder` under their own names, in one pass; at most `max_bytes` in all.

    Each file appears complete or not at all, and none of them outside the folder.
    """
    archive, folder = Path(archive), Path(folder)
    wanted = {safe_name(member, str(archive)) for member in members}
    left = max_bytes
    written = []
    for name, length, stream in _walk(archive, wanted):
        if length > left:
            raise UserError(f"{archive}: {name} claims {length} bytes, more than the {left} allowed; refused")
        target = _target(folder, name, archive)
        try:
            with write_atomic(target, "wb") as out:
                while block := stream.read(BLOCK):
                    out.write(block)
        except OSError as error:
            raise UserError(f"{archive}: cannot write {name} to {target}: {error.strerror}") from error
        left -= length
        written.append(target)
    return sorted(written)


def _walk(archive: Path, wanted: set[str]) -> Iterator[tuple[str, int, BinaryIO]]:
    if _is_zip(archive):
        with open_zip(archive) as opened:
            for name in sorted(wanted):
                length, stream = zip_member(opened, name, archive, None, [])
                with stream:
                    yield name, length, stream
        return
    with _open(archive) as handle:
        for name, length, content in TarMembers(handle, archive.name, str(archive), archive.stat().st_size, wanted):
            yield name, length, buffered(Bounded(content, length, f"{archive}!{name}"))


def _tar_member(
    stream: BinaryIO, inside: str, where: str, packed: int, name: str, max_bytes: int | None
) -> tuple[int, BinaryIO]:
    members = TarMembers(stream, inside, where, packed, {name})
    walk = iter(members)
    _, length, content = next(walk)
    limit = length if max_bytes is None else max_bytes
    if length > limit:
        raise UserError(f"{where}: {name} claims {length} bytes, more than the {limit} allowed; refused")

    def read_on() -> None:
        for _ in walk:
            raise AssertionError("the walk refuses a second member of the same name")

    return length, buffered(Bounded(content, limit, f"{where}!{name}", [members, stream], at_end=read_on))


def _target(folder: Path, name: str, archive: Path) -> Path:
    target = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    existing = target.parent
    while not existing.exists():
        existing = existing.parent
    # A link that lies in the folder already must not carry the file elsewhere.
    if not existing.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{archive}: {name} would be written outside {folder}, through a link; refused")
    return target


def _is_zip(path: Path) -> bool:
    return path.name.lower().endswith(".zip")


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror}") from error
