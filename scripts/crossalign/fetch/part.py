"""The unfinished file beside its final place, `<file>.part`, and what is known about where it came from."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.message import Message
from io import FileIO
from pathlib import Path

from crossalign.fetch.lock import is_same_file, lock_handle
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic


@dataclass(frozen=True)
class Origin:
    """Where the bytes of a part came from: enough to ask the same server for the rest of the same file."""

    url: str
    etag: str | None = None
    modified: str | None = None
    total: int | None = None

    @classmethod
    def of(cls, url: str, head: Message, total: int | None) -> "Origin":
        """The origin that the head of an answer describes."""
        return cls(url, head.get("ETag"), head.get("Last-Modified"), total)

    @property
    def validator(self) -> str | None:
        """What to send as If-Range. A weak entity tag may not be used for that."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.modified


class Part:
    """An unfinished file that no other process writes to. Made by `claim`.

    `resumed` tells whether its first bytes came in another answer than the rest.
    """

    def __init__(self, target: Path, stream: FileIO):
        self.target = target
        self.path = part_path(target)
        self.resumed = False
        self._stream = stream
        self._origin_path = self.path.with_name(self.path.name + ".json")

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._stream.tell()

    @property
    def origin(self) -> Origin | None:
        """Where the bytes so far came from, if that is known."""
        try:
            return Origin(**json.loads(self._origin_path.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def restart(self, origin: Origin | None = None) -> None:
        """Forget all bytes; those to come are from `origin`."""
        # Emptied, not removed: a new file of this name would not be locked.
        self._stream.truncate(0)
        self._stream.seek(0)
        self.resumed = False
        self._origin_path.unlink(missing_ok=True)
        if origin:
            with write_atomic(self._origin_path) as stream:
                json.dump(asdict(origin), stream)

    def append(self, data: bytes) -> None:
        """Add bytes at the end."""
        rest = memoryview(data)
        try:
            while rest:  # an unbuffered stream may take less than it is given
                rest = rest[self._stream.write(rest) :]
        except OSError as error:
            raise UserError(f"{self.path}: cannot write: {error.strerror}") from error

    def flush(self) -> None:
        """Make the bytes so far survive the end of this process, and a crash of the machine."""
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise UserError(f"{self.path}: cannot write: {error.strerror}") from error

    def finish(self) -> None:
        """Give the complete and verified file its name."""
        self.flush()
        self.path.replace(self.target)
        self._origin_path.unlink(missing_ok=True)


def part_path(target: Path) -> Path:
    """The name of the unfinished file."""
    return target.with_name(target.name + ".part")


def _open(path: Path) -> FileIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, so that what has arrived is in the file when this process is killed.
        return path.open("ab", buffering=0)
    except OSError as error:
        raise UserError(f"{path}: cannot write: {error.strerror}") from error


@contextlib.contextmanager
def claim(target: Path) -> Iterator[Part]:
    """Open the part of `target`, waiting while another process works on it. Parts with bytes outlive an error."""
    path = part_path(target)
    while True:
        with _open(path) as stream:
            lock_handle(stream.fileno(), path, f"{target}: another process is fetching it; waiting")
            if not is_same_file(stream.fileno(), path):
                continue
            stream.seek(0, os.SEEK_END)  # another process may have added to it meanwhile
            part = Part(target, stream)
            try:
                yield part
            finally:
                if part.size == 0 and is_same_file(stream.fileno(), path):
                    part.restart()
                    path.unlink()
            return
