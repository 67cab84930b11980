"""Archives: plain ones are read as streams, hostile ones are refused, and nothing is written to disk."""

import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from crossalign.data import archive as archives
from crossalign.data.archive import open_binary, open_text
from crossalign.runtime.errors import UserError

TEXT = "één\tzwei\r\nтри\n" * 50


def make_zip(path: Path, members: dict[str, bytes] | list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, content)
    return path


def tar_bytes(members: list[tuple[str | tarfile.TarInfo, bytes]], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def make_tar(path: Path, members: dict[str, bytes] | list[tuple[str | tarfile.TarInfo, bytes]]) -> Path:
    mode = "w:xz" if path.name.lower().endswith("xz") else "w" if path.suffix == ".tar" else "w:gz"
    path.write_bytes(tar_bytes(list(members.items()) if isinstance(members, dict) else members, mode))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def link_in_zip(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def pack(path: Path, members: dict[str, bytes] | list[tuple]) -> Path:
    """Make an archive of the kind that the name says."""
    return (make_zip if path.name.endswith("zip") else make_tar)(path, members)


def read(path: Path, member: str | None = None) -> bytes:
    with open_binary(path, member) as stream:
        return stream.read()


def refused(path: Path, member: str | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(path, member)


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "A.TXZ"])
def test_members_are_read(tmp_path, name):
    archive = pack(tmp_path / name, {"deep/one.txt": TEXT.encode(), "two": b"2", "./three": b"3"})
    assert read(archive, "deep/one.txt") == TEXT.encode()
    assert read(archive, "three") == b"3"
    with open_text(archive, "deep/one.txt") as text:
        assert list(text) == TEXT.splitlines(keepends=True)
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.parametrize("inner", ["en.tar.gz", "en.tar.xz", "en.tar"])
def test_archive_in_an_archive(tmp_path, inner):
    content = tar_bytes([("dev", b"d"), ("train", TEXT.encode())], {"gz": "w:gz", "xz": "w:xz"}.get(inner[-2:], "w"))
    archive = make_zip(tmp_path / "a.zip", {"de.tar.gz": b"", inner: content, "i.zip": b""})
    assert read(archive, f"{inner}!train") == TEXT.encode()
    assert read(make_tar(tmp_path / "b.tar.xz", {inner: content}), f"{inner}!train") == TEXT.encode()
    refused(archive, f"{inner}!trian", rf"a.zip!{inner}: no member 'trian'; near: train")
    refused(archive, "i.zip!x", "not an archive that can be read here")


@pytest.mark.parametrize(("name", "opener"), [("a.txt", None), ("a.txt.gz", gzip.open), ("a.txt.xz", lzma.open)])
def test_single_files(tmp_path, name, opener):
    path = tmp_path / name
    with opener(path, "wb") if opener else path.open("wb") as out:
        out.write(TEXT.encode())
    with open_text(path) as text:
        assert list(text) == TEXT.splitlines(keepends=True)
    refused(path, "x", "not an archive, so it has no member 'x'")


def test_carriage_return_does_not_end_a_line(tmp_path):
    (tmp_path / "a").write_bytes(b"one\rstill one\ntwo\r\n")
    with open_text(tmp_path / "a") as text:
        assert list(text) == ["one\rstill one\n", "two\r\n"]


def test_text_must_be_utf8_and_an_archive_needs_a_member(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": "naïve".encode("latin-1")})
    with pytest.raises(UserError, match="a.zip!x: not UTF-8"), open_text(archive, "x") as text:
        text.read()
    refused(archive, None, "name the member to read")


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "..", "a\\..\\evil", "C:/evil", "./../evil"])
@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_names_that_lead_out_are_refused(tmp_path, name, kind):
    archive = pack(tmp_path / f"a.{kind}", {name: b"evil", "good": b"good"})
    refused(archive, name, "leads out of its folder; refused")
    assert read(archive, "good") == b"good"  # other members do no harm


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "not a plain file"),
        (tarfile.BLKTYPE, "not a plain file"),
        (tarfile.FIFOTYPE, "not a plain file"),
        (tarfile.DIRTYPE, "a folder"),
        (tarfile.GNUTYPE_SPARSE, "refused|damaged"),
    ],
)
def test_special_members_are_refused(tmp_path, kind, text):
    archive = make_tar(tmp_path / "a.tar.gz", [(special("x", kind, "/etc/passwd"), b"")])
    refused(archive, "x", text if "|" in text else f"x is {text}; refused")
    refused(make_zip(tmp_path / "a.zip", [(link_in_zip("x"), b"/etc/passwd")]), "x", "x is a link; refused")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_duplicates_are_refused(tmp_path, kind):
    archive = pack(tmp_path / f"a.{kind}", [("x", b"1"), ("y", b"2"), ("x", b"3")])
    refused(archive, "x", "x is in the archive twice")
    assert read(archive, "y") == b"2"


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz", "a.gz", "a.xz"])
def test_bombs_are_refused(tmp_path, name, monkeypatch):
    monkeypatch.setattr(archives, "RATIO_FLOOR", 1 << 20)
    archive, bomb = tmp_path / name, bytes(30 << 20)
    if name in ("a.gz", "a.xz"):
        archive.write_bytes((gzip if name == "a.gz" else lzma).compress(bomb))
    else:
        pack(archive, {"bomb": bomb, "x": b"x"})
    member = "bomb" if name in ("a.zip", "a.tar.gz", "a.tar.xz") else None
    refused(archive, member, "a bomb; refused|bytes come out of it; refused")
    if "tar" in name:
        # One that has to be unpacked on the way to another member is a bomb as well.
        refused(archive, "x", "bytes come out of it; refused")


def test_zip_that_lies_about_its_lengths(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": bytes(5000)})
    data = bytearray(archive.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (100).to_bytes(4, "little")
    archive.write_bytes(data)
    refused(archive, "x", "damaged")


def test_encrypted_member(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": b"secret"})
    data = bytearray(archive.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    refused(archive, "x", "x is encrypted")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_missing_member_or_file_and_garbage(tmp_path, name):
    archive = pack(tmp_path / name, {"MLQA_V1/dev/dev-en.json": b"", "MLQA_V1/test/test-en.json": b""})
    refused(archive, "dev/dev-en.json", r"no member 'dev/dev-en.json'; near: MLQA_V1/dev/dev-en.json")
    refused(archive, "0", "it holds 2 others")
    archive.write_bytes(b"<html>not found</html>" * 100)
    refused(archive, "x", "damaged or incomplete")
    archive.unlink()
    refused(archive, "x", "cannot read: No such file")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.gz", "a.xz"])
@pytest.mark.parametrize("keep", [0.4, 0.9])
def test_truncated_files(tmp_path, name, keep):
    content, path = random.Random(4).randbytes(60_000), tmp_path / name
    if name in ("a.gz", "a.xz"):
        path.write_bytes((gzip if name == "a.gz" else lzma).compress(content))
    else:
        pack(path, {"x": content, "y": content})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    refused(path, None if name in ("a.gz", "a.xz") else "x", f"{name}.*damaged or incomplete.*download it again")


def test_streams_close_what_they_stand_on(tmp_path):
    content = tar_bytes([("train", b"t" * 100), ("dev", b"d")])
    archive = make_zip(tmp_path / "a.zip", {"en.tar.gz": content})
    with open_binary(archive, "en.tar.gz!train") as stream:
        assert stream.read(10) == b"t" * 10
    descriptors = {path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink() and path.exists()}
    assert archive not in descriptors


def ar_bytes(*members: tuple[str, bytes]) -> bytes:
    """An `ar` archive, as Debian packages are; contents of odd length are padded."""
    data = b"!<arch>\n"
    for name, content in members:
        data += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        data += b"\n" * (len(content) % 2)
    return data


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tgz", "a.tar.xz", "a.deb"])
def test_all_wanted_members_in_their_order(tmp_path, name):
    files = [("./top/b.txt", b"two"), ("./top/a.txt", b"one"), ("./top/c.bin", b"no")]
    path = tmp_path / name
    if name.endswith("zip"):
        make_zip(path, [(file.removeprefix("./"), content) for file, content in files])
    else:
        members = [
            (special("./top", tarfile.DIRTYPE), b""),
            *files,
            (special("./top/l.txt", tarfile.SYMTYPE, "a"), b""),
        ]
        if name.endswith("deb"):
            tar = tar_bytes(members, "w:xz")
            path.write_bytes(ar_bytes(("debian-binary", b"2.0\nx"), ("control.tar.xz", b""), ("data.tar.xz", tar)))
        else:
            make_tar(path, members)
    # Links and folders are left out.
    assert list(archives.members(path, lambda file: file.endswith(".txt"))) == [
        ("top/b.txt", b"two"),
        ("top/a.txt", b"one"),
    ]


def test_packages_that_cannot_be_read(tmp_path):
    path = tmp_path / "a.deb"
    for data, message in [
        (b"PK", "not a Debian package"),
        (ar_bytes(("debian-binary", b"2.0\n")), "damaged or incomplete Debian package"),
        (ar_bytes(("data.tar.zst", b"")), "data.tar.zst is packed in a way that cannot be read here"),
        (ar_bytes(("data.tar.xz", tar_bytes([("a", b"x" * 9999)], "w:xz")[:-40])), "damaged or incomplete archive"),
    ]:
        path.write_bytes(data)
        with pytest.raises(UserError, match=message):
            list(archives.members(path, lambda file: True))
    with pytest.raises(UserError, match="cannot read: No such file"):
        list(archives.members(tmp_path / "b.tar.gz", lambda file: True))


def test_a_huge_member_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_MEMBER", 10)
    path = make_tar(tmp_path / "a.tar.gz", {"small": b"1234", "large": b"12345678901"})
    assert list(archives.members(path, lambda file: file == "small")) == [("small", b"1234")]
    with pytest.raises(UserError, match="large claims 11 bytes"):
        list(archives.members(path, lambda file: True))
