"""Archives: members are read as streams; what is damaged, too large or leads elsewhere is refused."""

import gzip
import io
import lzma
import random
import tarfile
import zipfile

import pytest

from crossalign.data import archive as archives
from crossalign.data.archive import members, open_text
from crossalign.runtime.errors import UserError

TEXT = "één\tzwei\rdrei\r\nтри\n" * 50
LINES = ["één\tzwei\rdrei\r\n", "три\n"] * 50
SINGLE = {"a.txt": bytes, "a.txt.gz": gzip.compress, "a.TXT.XZ": lzma.compress}
PACKED = ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "A.TAR.XZ"]


def tar_bytes(files, mode):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            info.size = len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    return buffer.getvalue()


def pack(path, files):
    """Make an archive of the kind that the name says; content None is a link."""
    name = path.name.lower()
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in files.items():
                archive.writestr(file, content or b"")
    else:
        path.write_bytes(tar_bytes(files, "w" if name.endswith("tar") else "w:xz" if name.endswith("xz") else "w:gz"))
    return path


def read(path, member=None):
    with open_text(path, member) as stream:
        return list(stream)


def refused(message, path, member=None):
    with pytest.raises(UserError, match=message):
        read(path, member)


@pytest.mark.parametrize("name", PACKED)
def test_members(tmp_path, name):
    archive = pack(tmp_path / name, {"./b/x.txt": b"two", "a.txt": TEXT.encode(), "c.bin": b"no"})
    assert read(archive, "a.txt") == LINES and read(archive, "b/x.txt") == ["two"]
    assert list(members(archive, lambda file: file != "c.bin")) == [("b/x.txt", b"two"), ("a.txt", TEXT.encode())]
    assert list(tmp_path.iterdir()) == [archive]
    refused(f"{name}!x.txt: no member 'x.txt'; it has b/x.txt, a.txt", archive, "x.txt")
    refused("name the member to read", archive)


@pytest.mark.parametrize("inner", ["en.tar", "en.tar.gz"])
def test_an_archive_in_an_archive(tmp_path, inner):
    content = tar_bytes({"dev": b"d", "train": TEXT.encode()}, "w:gz" if inner.endswith("gz") else "w")
    assert read(pack(tmp_path / "a.zip", {"de.tar": b"", inner: content}), f"{inner}!train") == LINES
    assert read(pack(tmp_path / "a.tar.xz", {inner: content}), f"{inner}!train") == LINES


@pytest.mark.parametrize("name", SINGLE)
def test_single_files(tmp_path, name):
    (tmp_path / name).write_bytes(SINGLE[name](TEXT.encode()))
    assert read(tmp_path / name) == LINES
    refused("no archive", tmp_path / name, "x")


def test_text_must_be_utf8(tmp_path):
    refused("a.zip!x: not UTF-8", pack(tmp_path / "a.zip", {"x": "naïve".encode("latin-1")}), "x")


def test_links_and_names_that_lead_out(tmp_path):
    archive = pack(tmp_path / "a.tgz", {"link": None, "../evil": b"evil", "good": b"good"})
    refused("no member 'link'", archive, "link")
    refused("evil", archive, "../evil")
    assert list(members(archive, lambda file: file != "../evil")) == [("good", b"good")]
    with pytest.raises(UserError, match="evil"):
        list(members(archive, lambda file: True))


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.gz", "a.xz"])
def test_bombs(tmp_path, name, monkeypatch):
    monkeypatch.setattr(archives, "RATIO_FLOOR", 1 << 20)
    path, bomb = tmp_path / name, bytes(30 << 20)
    if name in ("a.gz", "a.xz"):
        path.write_bytes((gzip if name == "a.gz" else lzma).compress(bomb))
        refused(f"{name}: .*a bomb", path)
    else:
        refused(f"{name}!x: .*a bomb", pack(path, {"x": bomb}), "x")
        with pytest.raises(UserError, match="a bomb"):
            list(members(path, lambda file: True))


@pytest.mark.parametrize("keep", [0, 0.9])
@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.xz"])
def test_damaged_files(tmp_path, name, keep):
    """A file that was cut, and one that is something else."""
    content, path = random.Random(4).randbytes(60_000).hex().encode(), tmp_path / name
    if name in ("a.gz", "a.xz"):
        path.write_bytes((gzip if name == "a.gz" else lzma).compress(content))
    else:
        pack(path, {"x": content})
    cut = path.read_bytes()[: int(path.stat().st_size * keep)]
    path.write_bytes(cut or b"<html>not found</html>" * 100)
    refused(f"{name}.*: damaged or incomplete.*download it again", path, None if name in ("a.gz", "a.xz") else "x")


def test_a_zip_that_lies_about_its_lengths(tmp_path):
    archive = pack(tmp_path / "a.zip", {"x": bytes(5000)})
    data = bytearray(archive.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (100).to_bytes(4, "little")
    archive.write_bytes(data)
    refused("damaged", archive, "x")
