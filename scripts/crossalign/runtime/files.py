"""Files that appear complete or not at all, and readers that name a broken file."""

import contextlib
import csv
import errno
import fcntl
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from crossalign.runtime.errors import UserError

# No room, by the disk, a quota or a limit of the process. Other errors within a block may be of other files.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def write_atomic(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` and rename it to `path` when the block ends without an error.

    The content reaches the disk before the name does, so that a crash or a full disk never leaves half a file.
    """
    path = Path(path)
    # newline="" keeps what was written: the same bytes on every platform.
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path)
        handle, name = _locked_part(path)
    except OSError as error:
        raise _told(path, error) from None
    try:
        with os.fdopen(handle, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; results are for everybody who may read the folder.
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise _told(path, error) from None
        raise


def _locked_part(path: Path) -> tuple[int, str]:
    """A new file beside `path`, open and locked: its lock tells `sweep` that its process lives."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        with contextlib.suppress(OSError):  # a file system without locks, where `sweep` deletes nothing
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)  # swept before it was locked


def write_json(path: str | Path, value: Any, **form: Any) -> None:
    """Write a value as indented JSON, complete or not at all; `form` is what `json.dump` may be told."""
    with write_atomic(path) as stream:
        json.dump(value, stream, **{"indent": 2} | form)
        stream.write("\n")


def sha256(path: str | Path) -> str:
    """Checksum of a file."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sweep(path: str | Path) -> None:
    """Delete what processes that were killed while they wrote `path` have left; one that lives holds a lock."""
    path = Path(path)
    if not path.parent.is_dir():
        return
    temporary = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]+\.part")
    for left in [entry for entry in path.parent.iterdir() if temporary.fullmatch(entry.name)]:
        with contextlib.suppress(OSError), left.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _told(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot write: {error.strerror}")


def read_csv(path: Path, columns: Sequence[str]) -> list[dict[str, str]] | None:
    """The rows of a CSV file; None where there is no file."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, restval="")
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{path}: the columns {', '.join(missing)} are missing; make the file again")
            return list(reader)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: no CSV that can be read ({error}); delete it and make it again") from None


def read_json(path: Path, expected: str = "an object with named values") -> dict[str, Any] | None:
    """The object in a JSON file; None where there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no JSON that can be read ({error}); delete it and make it again") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: expected {expected}; delete it and make it again")
    return found
