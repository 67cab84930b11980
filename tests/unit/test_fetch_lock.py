"""Checksums and the lock file, which several processes write at the same time."""

import hashlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure, parse_checksum, parse_sums
from crossalign.fetch.lock import COLUMNS, Locked, read_lock, record
from crossalign.runtime.errors import UserError

HEX = "0123456789abcdef" * 4
ROW = Locked("b/x.txt", "v1", 3, HEX, "https://example.org/x")


@given(st.binary(max_size=5000))
def test_measure_agrees_with_hashlib_and_git(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("m") / "f"
    file.write_bytes(content)
    measured = measure(file, with_git=True)
    assert measured.bytes == len(content)
    assert measured.sha256 == hashlib.sha256(content).hexdigest()
    assert measure(file) == Measured(measured.bytes, measured.sha256, None)
    assert measured.git == hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()


def test_check_names_what_differs(tmp_path):
    (tmp_path / "f").write_bytes(b"what is up, doc?")
    measured = measure(tmp_path / "f", with_git=True)
    assert measured.git == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"  # what git prints
    check(measured, Expected(16, (f"sha256:{measured.sha256}", f"git:{measured.git}")))
    with pytest.raises(WrongContent, match="expected 4 bytes, got 16"):
        check(measured, Expected(4))
    with pytest.raises(WrongContent, match=f"expected git:{'0' * 40}, got git:{measured.git}"):
        check(measured, Expected(16, (f"sha256:{measured.sha256}", "git:" + "0" * 40)))


def test_checksums_and_sums_are_read():
    assert parse_checksum(f"sha256:{HEX.upper()}") == f"sha256:{HEX}"
    assert parse_sums(f"{HEX}  a/b c\n\n{HEX} *./d\n", "SUMS") == {"a/b c": HEX, "d": HEX}
    with pytest.raises(UserError, match="SUMS, line 2: expected"):
        parse_sums(f"{HEX}  a\nnonsense\n", "SUMS")
    with pytest.raises(UserError, match="line 2: a is listed twice"):
        parse_sums(f"{HEX}  a\n{HEX[::-1]}  a\n", "SUMS")


def test_rows_are_sorted_and_survive(tmp_path):
    lock = tmp_path / "deep" / "lock.tsv"
    assert read_lock(lock) == {}
    record(lock, [ROW])
    record(lock, [Locked("a", "v", 1, HEX, "https://example.org/a"), ROW])
    before = lock.stat()
    record(lock, [ROW])
    assert lock.stat().st_ino == before.st_ino  # the same rows leave the file alone
    lines = lock.read_text().splitlines()
    assert lines[0].split("\t") == list(COLUMNS)
    assert [line.split("\t")[0] for line in lines[1:]] == ["a", "b/x.txt"]
    assert read_lock(lock)["b/x.txt"] == ROW
    assert [path.name for path in lock.parent.iterdir()] == ["lock.tsv"]


def test_changed_file_is_an_error_unless_it_is_another_version(tmp_path):
    lock = tmp_path / "lock.tsv"
    record(lock, [ROW])
    with pytest.raises(UserError, match=r"delete the row of b/x.txt from .*lock.tsv and run again") as error:
        record(lock, [Locked("b/x.txt", "v1", 4, HEX[::-1], ROW.url)])
    assert HEX in str(error.value)
    assert HEX[::-1] in str(error.value)
    assert read_lock(lock) == {"b/x.txt": ROW}
    new = Locked("b/x.txt", "v2", 4, HEX[::-1], ROW.url)
    record(lock, [new])
    assert read_lock(lock) == {"b/x.txt": new}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path\tsha256\n", "line 1: missing column version, bytes, url"),
        ("\t".join(COLUMNS) + "\n<<<<<<< HEAD\n", "line 2: 1 fields, but the header has 5"),
        ("\t".join(COLUMNS) + f"\na\tv\tx\t{HEX}\tu\n", "line 2: not a row"),
        ("\t".join(COLUMNS) + "\na\tv\t1\tabc\tu\n", "line 2: not a row"),
        ("\t".join(COLUMNS) + f"\na\tv\t1\t{HEX}\tu\na\tv\t2\t{HEX}\tu\n", "line 3: a is listed twice"),
    ],
)
def test_broken_lock_file(tmp_path, text, message):
    lock = tmp_path / "lock.tsv"
    lock.write_text(text)
    with pytest.raises(UserError, match=message):
        read_lock(lock)


def test_processes_at_once_lose_no_row(tmp_path, root):
    lock = tmp_path / "lock.tsv"
    code = (
        "import sys; from crossalign.fetch.lock import Locked, record\n"
        "for n in range(40): record(sys.argv[1], [Locked(f'{sys.argv[2]}/{n:02}', 'v', n, '0' * 64, 'https://e.org')])"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(lock), f"process{number}"], cwd=root / "scripts")
        for number in range(4)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    assert sorted(read_lock(lock)) == [f"process{number}/{row:02}" for number in range(4) for row in range(40)]
    assert [path.name for path in tmp_path.iterdir()] == ["lock.tsv"]
