"""The lock file: what files without a published checksum were when they were first seen.

A tab-separated file that can be committed. Several downloads may add to it at the same time.
"""

import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from io import FileIO
from pathlib import Path

from crossalign.fetch.checksums import Expected, parse_checksum
from crossalign.fetch.register import read_table
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

COLUMNS = ("path", "version", "bytes", "sha256", "url")
# The answers of file systems that were mounted without locking.
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
        """What to check a file against."""
        return Expected(self.bytes, (f"sha256:{self.sha256}",))


def read_lock(path: str | Path) -> dict[str, Locked]:
    """Read the lock file: path -> row. A file that does not exist yet holds no rows."""
    path = Path(path)
    rows: dict[str, Locked] = {}
    if not path.exists() or not path.stat().st_size:
        return rows
    for number, fields in read_table(path, COLUMNS, "lock file"):
        try:
            _, _, sha256 = parse_checksum(f"sha256:{fields['sha256']}").partition(":")
            row = Locked(fields["path"], fields["version"], int(fields["bytes"]), sha256, fields["url"])
        except ValueError as error:
            raise UserError(f"{path}, line {number}: not a row of a lock file ({error})") from error
        if rows.setdefault(row.path, row) != row:
            raise UserError(f"{path}, line {number}: {row.path} is listed twice; keep the right row")
    return rows


def record(path: str | Path, new: Iterable[Locked]) -> None:
    """Add rows, or replace those of another version; a different file of the same version is an error."""
    path = Path(path)
    new = list(new)
    with exclusive(path):
        rows = read_lock(path)
        for row in new:
            old = rows.get(row.path)
            if old and old.version == row.version and old.expected != row.expected:
                raise UserError(
                    f"{row.path} is not the file that was locked at first sight: expected sha256:{old.sha256} "
                    f"({old.bytes} bytes), got sha256:{row.sha256} ({row.bytes} bytes). {how_to_accept(row.path, path)}"
                )
        merged = rows | {row.path: row for row in new}
        if merged != rows:
            with write_atomic(path) as stream:
                for fields in (COLUMNS, *(astuple(merged[key]) for key in sorted(merged))):
                    stream.write("\t".join(map(str, fields)) + "\n")


def how_to_accept(path: str, lock: Path) -> str:
    """What to do when a locked file really has changed."""
    return f"If the new file is right, delete the row of {path} from {lock} and run again."


@contextlib.contextmanager
def exclusive(path: Path, waiting: str = "") -> Iterator[FileIO]:
    """Open a file for appending while no other process has it; print `waiting` when that takes a while."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered, so that what has arrived is in the file when this process is killed.
            # For writing, because network file systems lock exclusively only then.
            stream = path.open("ab", buffering=0)
        except OSError as error:
            raise UserError(f"{path}: cannot write: {error.strerror}") from error
        with stream:
            _lock(stream, path, waiting)
            # Whoever held the lock before may have replaced the file; then the old one is locked now.
            if is_same_file(stream, path):
                yield stream
                return


def _lock(stream: FileIO, path: Path, waiting: str) -> None:
    try:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                print(waiting, file=sys.stderr, flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in CANNOT_LOCK:
            raise
        print(f"warning: {path.parent} cannot lock files; do not run two downloads at once there", file=sys.stderr)


def is_same_file(stream: FileIO, path: Path) -> bool:
    """Whether the open file is still the one that has this name."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False
