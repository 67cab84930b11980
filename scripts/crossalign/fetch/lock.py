"""The lock file: what files without a published checksum were when they were first seen.

A tab-separated file that can be committed. Several downloads may add to it at the same time.
"""

import contextlib
import csv
import errno
import fcntl
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from crossalign.fetch.checksums import Expected, parse_checksum
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

COLUMNS = ("path", "version", "bytes", "sha256", "url")
# What file systems answer that were mounted without locking.
CANNOT_LOCK = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


@dataclass(frozen=True)
class Locked:
    """One row: the file at `path`, of this version, is these bytes."""

    path: str
    version: str
    bytes: int
    sha256: str
    url: str

    @property
    def expected(self) -> Expected:
        """The row as facts to check a file against."""
        return Expected(self.bytes, (f"sha256:{self.sha256}",))


def read_lock(path: str | Path) -> dict[str, Locked]:
    """Read the lock file: path -> row. A file that does not exist yet holds no rows."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot read this lock file: {error}") from error
    rows: dict[str, Locked] = {}
    if not text.strip():
        return rows
    for number, fields in enumerate(csv.reader(text.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
        if number == 1:
            if tuple(fields) != COLUMNS:
                raise UserError(f"{path}, line 1: the columns of a lock file are {', '.join(COLUMNS)}")
        elif fields:
            row = _parse(path, number, fields)
            if rows.setdefault(row.path, row) != row:
                raise UserError(f"{path}, line {number}: {row.path} stands there twice; keep the right row")
    return rows


def record(path: str | Path, new: Iterable[Locked]) -> None:
    """Add rows, or replace those of another version; a different file of the same version is an error."""
    path = Path(path)
    new = list(new)
    with guard(path):
        rows = read_lock(path)
        for row in new:
            old = rows.get(row.path)
            if old and old.version == row.version and (old.bytes, old.sha256) != (row.bytes, row.sha256):
                raise UserError(
                    f"{row.path} is not the file that was locked at first sight: expected sha256:{old.sha256} "
                    f"({old.bytes} bytes), got sha256:{row.sha256} ({row.bytes} bytes). {how_to_accept(row.path, path)}"
                )
        merged = rows | {row.path: row for row in new}
        if merged == rows:
            return
        with write_atomic(path) as stream:
            stream.write("\t".join(COLUMNS) + "\n")
            for key in sorted(merged):
                stream.write("\t".join(str(value) for value in astuple(merged[key])) + "\n")


def how_to_accept(path: str, lock: Path) -> str:
    """What to do when a locked file really has changed."""
    return f"If the new file is right, delete the row of {path} from {lock} and run again."


@contextlib.contextmanager
def guard(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file at `path` at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        # Opened for writing because network file systems lock exclusively only then.
        with path.open("ab") as handle:
            lock_handle(handle.fileno(), path)
            # Whoever held the lock before has replaced the file: what is locked now is the old one.
            if is_same_file(handle.fileno(), path):
                yield
                return


def lock_handle(descriptor: int, path: Path, waiting: str = "") -> None:
    """Lock an open file, after a remark when it has to wait; a file system that cannot lock is only remarked upon."""
    try:
        if waiting:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                print(waiting, file=sys.stderr, flush=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in CANNOT_LOCK:
            raise
        print(f"warning: {path.parent} cannot lock files; do not run two downloads at once there", file=sys.stderr)


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one that has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _parse(path: Path, number: int, fields: list[str]) -> Locked:
    try:
        name, version, length, sha256, url = fields
        parse_checksum(f"sha256:{sha256}")
        return Locked(name, version, int(length), sha256.lower(), url)
    except ValueError as error:
        raise UserError(f"{path}, line {number}: not a row of a lock file ({error})") from error
