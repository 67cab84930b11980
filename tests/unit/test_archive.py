"""Archives: plain ones are read as streams, hostile ones are refused, and nothing leaves its folder."""

import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.fetch import bounded
from crossalign.fetch.archive import extract, open_binary, open_member, open_text
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


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "A.TXZ"])
def test_members_are_read(tmp_path, name):
    members = {"deep/one.txt": TEXT.encode(), "two": b"2", "./three": b"3"}
    archive = (make_zip if name.endswith("zip") else make_tar)(tmp_path / name, members)
    with open_member(archive, "deep/one.txt") as stream:
        assert stream.read() == TEXT.encode()
    with open_member(archive, "three") as stream:
        assert stream.read(1) == b"3"
    with open_text(archive, "deep/one.txt") as text:
        assert list(text) == TEXT.splitlines(keepends=True)
    written = extract(archive, ["two", "deep/one.txt"], tmp_path / "out", 10_000)
    assert written == [tmp_path / "out" / "deep" / "one.txt", tmp_path / "out" / "two"]
    assert written[0].read_bytes() == TEXT.encode()
    assert not (tmp_path / "out" / "three").exists()


@pytest.mark.parametrize("inner", ["en.tar.gz", "en.tar.xz", "en.tar"])
def test_archive_in_an_archive(tmp_path, inner):
    content = tar_bytes([("dev", b"d"), ("train", TEXT.encode())], {"gz": "w:gz", "xz": "w:xz"}.get(inner[-2:], "w"))
    archive = make_zip(tmp_path / "a.zip", {"de.tar.gz": b"", inner: content})
    with open_text(archive, f"{inner}!train") as text:
        assert text.read() == TEXT
    with pytest.raises(UserError, match=rf"a.zip!{inner}: no member 'trian'; near: train"):
        open_member(archive, f"{inner}!trian")
    outer = make_tar(tmp_path / "b.tar.xz", {inner: content})
    with open_text(outer, f"{inner}!train") as text:
        assert text.read() == TEXT


def test_zip_inside_is_not_supported(tmp_path):
    inner = make_zip(tmp_path / "i.zip", {"x": b"1"}).read_bytes()
    with pytest.raises(UserError, match="not an archive that can be read here"):
        open_member(make_zip(tmp_path / "a.zip", {"i.zip": inner}), "i.zip!x")


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text("abc/.", min_size=1, max_size=6), st.binary(max_size=300), max_size=4), st.booleans())
def test_whatever_the_names_nothing_leaves_the_folder(tmp_path_factory, members, as_zip):
    base = tmp_path_factory.mktemp("p")
    archive = make_zip(base / "a.zip", members) if as_zip else make_tar(base / "a.tgz", members)
    for name, content in members.items():
        try:
            (path,) = extract(archive, [name], base / "in" / "out", 1000)
        except UserError:
            continue
        assert path.resolve().is_relative_to((base / "in" / "out").resolve())
        assert path.read_bytes() == content
    assert {path.name for path in base.iterdir()} <= {"in", archive.name}
    assert {path.name for path in base.glob("in/*")} <= {"out"}


@pytest.mark.parametrize(("name", "opener"), [("a.txt", None), ("a.txt.gz", gzip.open), ("a.txt.xz", lzma.open)])
def test_single_files(tmp_path, name, opener):
    path = tmp_path / name
    with opener(path, "wb") if opener else path.open("wb") as out:
        out.write(TEXT.encode())
    with open_text(path) as text:
        assert list(text) == TEXT.splitlines(keepends=True)
    with pytest.raises(UserError, match="more than 100 bytes"), open_binary(path, max_bytes=100) as stream:
        stream.read()
    with pytest.raises(UserError, match="not an archive, so it has no member 'x'"):
        open_binary(path, "x")


def test_carriage_return_does_not_end_a_line(tmp_path):
    (tmp_path / "a").write_bytes(b"one\rstill one\ntwo\r\n")
    with open_text(tmp_path / "a") as text:
        assert list(text) == ["one\rstill one\n", "two\r\n"]


def test_text_must_be_utf8(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": "naïve".encode("latin-1")})
    with pytest.raises(UserError, match="a.zip!x: not UTF-8"), open_text(archive, "x") as text:
        text.read()


def test_archive_needs_a_member(tmp_path):
    with pytest.raises(UserError, match="name the member to read"):
        open_binary(make_zip(tmp_path / "a.zip", {"x": b""}))


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "..", "a\\..\\evil", "C:/evil", "./../evil"])
@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_names_that_lead_out_are_refused(tmp_path, name, kind):
    archive = (make_zip if kind == "zip" else make_tar)(tmp_path / f"a.{kind}", {name: b"evil", "good": b"good"})
    with pytest.raises(UserError, match="leads out of its folder; refused"):
        extract(archive, ["good", name], tmp_path / "in" / "out", 1000)
    with pytest.raises(UserError, match="leads out of its folder; refused"):
        open_member(archive, name)
    # Other members do no harm.
    assert extract(archive, ["good"], tmp_path / "in" / "out", 1000)[0].read_bytes() == b"good"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [archive.name, "good"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "not a plain file"),
        (tarfile.BLKTYPE, "not a plain file"),
        (tarfile.FIFOTYPE, "not a plain file"),
        (tarfile.DIRTYPE, "a folder"),
    ],
)
def test_special_members_of_a_tar_are_refused(tmp_path, kind, text):
    archive = make_tar(tmp_path / "a.tar.gz", [(special("x", kind, "/etc/passwd"), b"")])
    with pytest.raises(UserError, match=f"x is {text}; refused"):
        extract(archive, ["x"], tmp_path / "out", 1000)
    with pytest.raises(UserError, match=f"x is {text}; refused"):
        open_member(archive, "x")
    assert not list(tmp_path.glob("out/*"))


def test_link_in_a_zip_is_refused(tmp_path):
    archive = make_zip(tmp_path / "a.zip", [(link_in_zip("x"), b"/etc/passwd")])
    with pytest.raises(UserError, match="x is a link; refused"):
        extract(archive, ["x"], tmp_path / "out", 1000)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_file_behind_a_link_of_the_archive_is_refused(tmp_path, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    if kind == "zip":
        archive = make_zip(tmp_path / "a.zip", [(link_in_zip("dir"), str(outside).encode()), ("dir/x", b"evil")])
    else:
        link = special("dir", tarfile.SYMTYPE, str(outside))
        archive = make_tar(tmp_path / "a.tar", [(link, b""), ("dir/x", b"evil")])
    with pytest.raises(UserError, match="dir/x lies behind the link dir; refused"):
        extract(archive, ["dir/x"], tmp_path / "out", 1000)
    assert list(outside.iterdir()) == []


def test_link_that_lies_in_the_folder_is_not_followed(tmp_path):
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.mkdir()
    (out / "dir").symlink_to(outside)
    with pytest.raises(UserError, match="outside .*through a link; refused"):
        extract(make_tar(tmp_path / "a.tar", {"dir/x": b"evil"}), ["dir/x"], out, 1000)
    # A link in the place of the file itself is replaced, not written through.
    (out / "y").symlink_to(outside / "y")
    extract(make_tar(tmp_path / "b.tar", {"y": b"y"}), ["y"], out, 1000)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_duplicates_are_refused(tmp_path, kind):
    members = [("x", b"1"), ("y", b"2"), ("x", b"3")]
    if kind == "zip":
        with pytest.warns(UserWarning, match="Duplicate"):
            archive = make_zip(tmp_path / "a.zip", members)
    else:
        archive = make_tar(tmp_path / "a.tar.gz", members)
    with pytest.raises(UserError, match="x is in the archive twice"), open_member(archive, "x") as stream:
        stream.read()
    with pytest.raises(UserError, match="x is in the archive twice"):
        extract(archive, ["x"], tmp_path / "out", 1000)
    with open_member(archive, "y") as stream:
        assert stream.read() == b"2"


def test_file_in_the_way(tmp_path):
    archive = make_tar(tmp_path / "a.tar", {"a": b"1", "a/b": b"2"})
    with pytest.raises(UserError, match="out/a/b: cannot write: (File exists|Not a directory)"):
        extract(archive, ["a", "a/b"], tmp_path / "out", 1000)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz"])
def test_bounds_on_what_comes_out(tmp_path, name):
    members = {"x": bytes(2000), "y": bytes(2000)}
    archive = (make_zip if name.endswith("zip") else make_tar)(tmp_path / name, members)
    with pytest.raises(UserError, match="x claims 2000 bytes, more than the 1999 allowed"):
        open_member(archive, "x", max_bytes=1999)
    with pytest.raises(UserError, match="claims 2000 bytes, more than the 1000 allowed"):
        extract(archive, ["x", "y"], tmp_path / "out", 3000)
    with open_member(archive, "x", max_bytes=2000) as stream:
        assert len(stream.read()) == 2000


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz", "a.gz", "a.xz"])
def test_bombs_are_refused(tmp_path, name, monkeypatch):
    monkeypatch.setattr(bounded, "RATIO_FLOOR", 1 << 20)
    archive = tmp_path / name
    bomb = bytes(30 << 20)
    if name == "a.zip":
        make_zip(archive, {"bomb": bomb, "x": b"x"})
    elif "tar" in name:
        make_tar(archive, {"bomb": bomb, "x": b"x"})
    else:
        archive.write_bytes((gzip if name == "a.gz" else lzma).compress(bomb))
    with (
        pytest.raises(UserError, match="a bomb; refused|bytes come out of it; refused"),
        open_binary(archive, "bomb" if name in ("a.zip", "a.tar.gz", "a.tar.xz") else None) as stream,
    ):
        while stream.read(1 << 16):
            pass
    if "tar" in name:
        # One that has to be unpacked on the way to another member is a bomb as well.
        with pytest.raises(UserError, match="bytes come out of it; refused"):
            open_member(archive, "x")
        with pytest.raises(UserError, match="bytes come out of it; refused"):
            extract(archive, ["x"], tmp_path / "out", 1 << 30)


def test_zip_that_lies_about_its_lengths(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": bytes(5000)})
    data = bytearray(archive.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (100).to_bytes(4, "little")
    archive.write_bytes(data)
    with pytest.raises(UserError, match="damaged"), open_member(archive, "x") as stream:
        stream.read()


def test_sparse_member_that_claims_to_be_huge(tmp_path):
    info = special("x", tarfile.GNUTYPE_SPARSE)
    archive = make_tar(tmp_path / "a.tar", [(info, b"")])
    with pytest.raises(UserError, match="refused|damaged"):
        open_member(archive, "x")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_missing_member_tells_near_ones(tmp_path, name):
    members = {"MLQA_V1/dev/dev-en.json": b"", "MLQA_V1/test/test-en.json": b""}
    archive = (make_zip if name.endswith("zip") else make_tar)(tmp_path / name, members)
    for action in (open_member, lambda path, member: extract(path, [member], tmp_path / "out", 10)):
        with pytest.raises(UserError, match=r"no member 'dev/dev-en.json'; near: MLQA_V1/dev/dev-en.json"):
            action(archive, "dev/dev-en.json")
    with pytest.raises(UserError, match="it holds 2 others"):
        open_member(archive, "0")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.gz", "a.xz"])
@pytest.mark.parametrize("keep", [0.4, 0.9])
def test_truncated_files(tmp_path, name, keep):
    content = random.Random(4).randbytes(60_000)
    path = tmp_path / name
    if name in ("a.gz", "a.xz"):
        path.write_bytes((gzip if name == "a.gz" else lzma).compress(content))
        member = None
    else:
        (make_zip if name == "a.zip" else make_tar)(path, {"x": content, "y": content})
        member = "x"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(UserError, match=f"{name}.*damaged or incomplete.*download it again"):  # noqa: SIM117
        with open_binary(path, member) as stream:
            stream.read()
    if member:
        with pytest.raises(UserError, match="damaged or incomplete"):
            extract(path, ["x", "y"], tmp_path / "out", 1 << 20)
        assert not (tmp_path / "out" / "y").exists()


def test_garbage_and_nothing(tmp_path):
    for name in ("a.zip", "a.tar", "a.tar.gz"):
        (tmp_path / name).write_bytes(b"<html>not found</html>" * 100)
        with pytest.raises(UserError, match="damaged or incomplete"):
            open_member(tmp_path / name, "x")
        (tmp_path / name).unlink()
        with pytest.raises(UserError, match="cannot read: No such file"):
            open_member(tmp_path / name, "x")


def test_encrypted_member(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": b"secret"})
    data = bytearray(archive.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    with pytest.raises(UserError, match="x is encrypted"):
        open_member(archive, "x")


def test_streams_close_what_they_stand_on(tmp_path):
    content = tar_bytes([("train", b"t" * 100), ("dev", b"d")])
    archive = make_zip(tmp_path / "a.zip", {"en.tar.gz": content})
    stream = open_member(archive, "en.tar.gz!train")
    assert stream.read(10) == b"t" * 10
    stream.close()
    descriptors = {path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink() and path.exists()}
    assert archive not in descriptors
