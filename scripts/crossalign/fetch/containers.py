"""Members of zip and tar files, one after the other and without seeking back."""

import gzip
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from crossalign.fetch.bounded import (
    BLOCK,
    BROKEN,
    HARD_CAP,
    Bounded,
    Closable,
    buffered,
    damaged,
    no_member,
    plain_name,
    ratio_limit,
    under_link,
)
from crossalign.runtime.errors import UserError

GZ = (".gz", ".tgz")
XZ = (".xz", ".txz")
TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")


def unpacked(stream: BinaryIO, name: str, where: str, packed: int, limit: int | None = None) -> BinaryIO:
    """The stream without its gzip or xz packing, as the suffix of `name` says; bounded."""
    limit = ratio_limit(packed) if limit is None else limit
    if name.lower().endswith(GZ):
        return buffered(Bounded(gzip.GzipFile(fileobj=stream), limit, where, [stream]))
    if name.lower().endswith(XZ):
        return buffered(Bounded(lzma.LZMAFile(stream), limit, where, [stream]))
    return stream


class TarMembers:
    """Goes once through a tar stream and gives the wanted members, each readable until the next is asked for."""

    def __init__(self, stream: BinaryIO, name: str, where: str, packed: int, wanted: set[str]):
        if not name.lower().endswith(TAR):
            raise UserError(f"{where}: not an archive that can be read here (zip outside; tar, tar.gz, tar.xz)")
        self.where, self.wanted, self.stream = where, wanted, unpacked(stream, name, where, packed)

    def __iter__(self) -> Iterator[tuple[str, int, BinaryIO]]:
        seen: set[str] = set()
        links: list[str] = []
        names: list[str] = []
        try:
            with tarfile.open(fileobj=self.stream, mode="r|", bufsize=BLOCK) as tar:
                for info in tar:
                    name = plain_name(info.name)
                    names.append(name)
                    if info.issym() or info.islnk():
                        links.append(name)
                    if name not in self.wanted:
                        continue
                    self._refuse(info, name, seen, links)
                    seen.add(name)
                    yield name, info.size, tar.extractfile(info)
        except BROKEN as error:
            raise damaged(self.where, error) from error
        for name in sorted(self.wanted - seen):
            raise no_member(self.where, name, names)

    def _refuse(self, info: tarfile.TarInfo, name: str, seen: set[str], links: list[str]) -> None:
        if name in seen:
            raise UserError(f"{self.where}: {name} is in the archive twice; refused")
        if not info.isreg() or info.issparse():
            kind = "a link" if info.issym() or info.islnk() else "a folder" if info.isdir() else "not a plain file"
            raise UserError(f"{self.where}: {name} is {kind}; refused")
        if link := under_link(name, links):
            raise UserError(f"{self.where}: {name} lies behind the link {link}; refused")
        if info.size > HARD_CAP:
            raise UserError(f"{self.where}: {name} claims {info.size} bytes; refused")

    def close(self) -> None:
        """Close the archive."""
        self.stream.close()


def open_zip(archive: Path) -> zipfile.ZipFile:
    """Open a zip file from disk."""
    try:
        return zipfile.ZipFile(archive)
    except BROKEN as error:
        raise damaged(str(archive), error) from error
    except OSError as error:
        raise UserError(f"{archive}: cannot read: {error.strerror}") from error


def zip_member(
    opened: zipfile.ZipFile, name: str, archive: Path, max_bytes: int | None, below: list[Closable]
) -> tuple[int, BinaryIO]:
    """The declared length and the stream of one member."""
    infos = opened.infolist()
    found = [info for info in infos if plain_name(info.filename) == name]
    if not found:
        raise no_member(str(archive), name, (plain_name(info.filename) for info in infos))
    if len(found) > 1:
        raise UserError(f"{archive}: {name} is in the archive twice; refused")
    info = found[0]
    _refuse_zip(info, name, archive, [plain_name(other.filename) for other in infos if _is_link(other)])
    limit = info.file_size if max_bytes is None else max_bytes
    if info.file_size > limit:
        raise UserError(f"{archive}: {name} claims {info.file_size} bytes, more than the {limit} allowed; refused")
    try:
        stream = opened.open(info)
    except BROKEN as error:
        raise damaged(str(archive), error) from error
    except NotImplementedError as error:
        raise UserError(f"{archive}: {name}: {error}") from error
    return info.file_size, buffered(Bounded(stream, limit, f"{archive}!{name}", below))


def _is_link(info: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(info.external_attr >> 16)


def _refuse_zip(info: zipfile.ZipInfo, name: str, archive: Path, links: list[str]) -> None:
    mode = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir() or mode not in (0, stat.S_IFREG):
        kind = "a link" if _is_link(info) else "not a plain file"
        raise UserError(f"{archive}: {name} is {kind}; refused")
    if info.flag_bits & 1:
        raise UserError(f"{archive}: {name} is encrypted")
    if link := under_link(name, links):
        raise UserError(f"{archive}: {name} lies behind the link {link}; refused")
    if info.compress_size > archive.stat().st_size or info.file_size > ratio_limit(info.compress_size):
        raise UserError(
            f"{archive}: {name} claims that {info.compress_size} bytes become {info.file_size}: a bomb; refused"
        )
