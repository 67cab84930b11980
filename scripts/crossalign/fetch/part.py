"""The unfinished file beside its final place, `<file>.part`, and what is known about where it came from."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure
from crossalign.fetch.lock import exclusive, is_same_file
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
    def of(cls, url: str, headers: Mapping[str, str], total: int | None) -> "Origin":
        """The origin that the headers of an answer describe."""
        return cls(url, headers.get("ETag"), headers.get("Last-Modified"), total)

    @property
    def validator(self) -> str | None:
        """What to send as If-Range. A weak entity tag may not be used for that."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified


class Part:
    """An unfinished file that no other process writes to. Made by `claim`.

    `resumed` tells whether its first bytes came in another answer than the rest.
    """

    def __init__(self, target: Path, stream: FileIO):
        self.target = target
        self.path = part_path(target)
        self.resumed = False
        self._content = self.path
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
        if self._content != self.path:
            self._content.unlink(missing_ok=True)
            self._content = self.path
        self.resumed = False
        self._origin_path.unlink(missing_ok=True)
        if origin:
            with write_atomic(self._origin_path) as stream:
                json.dump(asdict(origin), stream)

    def link(self, source: Path) -> bool:
        """Take a file of the same disk as it is, without a copy; whether that is possible."""
        name = self.path.with_name(f"{self.path.name}.link")
        name.unlink(missing_ok=True)
        try:
            name.hardlink_to(source.resolve())
        except OSError:
            return False
        self._content = name
        return True

    def append(self, data: bytes) -> None:
        """Add bytes at the end."""
        rest = memoryview(data)
        with self._told():
            while rest:  # an unbuffered stream may take less than it is given
                rest = rest[self._stream.write(rest) :]

    def verify(self, expected: Expected) -> Measured:
        """Measure the bytes so far; wrong ones are forgotten and raise WrongContent."""
        self._flush()
        measured = measure(self._content, expected.needs_git)
        try:
            check(measured, expected)
        except WrongContent:
            self.restart()
            raise
        return measured

    def finish(self) -> None:
        """Give the complete and verified file its name."""
        self._flush()
        self._content.replace(self.target)
        self._origin_path.unlink(missing_ok=True)

    def _flush(self) -> None:
        """Make the bytes so far survive a crash of the machine."""
        with self._told():
            os.fsync(self._stream.fileno())

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(f"{self.path}: cannot write: {error.strerror}") from error


def part_path(target: Path) -> Path:
    """The name of the unfinished file."""
    return target.with_name(target.name + ".part")


@contextlib.contextmanager
def claim(target: Path) -> Iterator[Part]:
    """Open the part of `target`, waiting while another process works on it. Parts with bytes outlive an error."""
    path = part_path(target)
    with exclusive(path, f"{target}: another process is fetching it; waiting") as stream:
        stream.seek(0, os.SEEK_END)  # another process may have added to it meanwhile
        part = Part(target, stream)
        try:
            yield part
        finally:
            if part.size == 0 and is_same_file(stream, path):
                part.restart()
                path.unlink()
