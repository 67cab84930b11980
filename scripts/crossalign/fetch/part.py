"""The unfinished file beside its final place, `<file>.part`, and beside it where its bytes came from."""

import contextlib
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure
from crossalign.fetch.lock import exclusive, is_same_file
from crossalign.runtime.errors import UserError


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
        self._origin_path = self.path.with_name(self.path.name + ".from")

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._stream.tell()

    @property
    def origin(self) -> str:
        """Address and version that the bytes so far came from, as `restart` was told; empty if that is not known."""
        return self._origin_path.read_text(encoding="utf-8") if self._origin_path.exists() else ""

    def restart(self, origin: str = "") -> None:
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
            self._origin_path.write_text(origin, encoding="utf-8")

    def append(self, data: bytes) -> None:
        """Add bytes at the end."""
        rest = memoryview(data)
        with self._told():
            while rest:  # an unbuffered stream may take less than it is given
                rest = rest[self._stream.write(rest) :]

    def take(self, file: Path) -> None:
        """Be a file of the same disk."""
        self.restart()
        self._content = file

    def verify(self, expected: Expected) -> Measured:
        """Measure the bytes so far; wrong ones are forgotten and raise WrongContent."""
        with self._told():
            os.fsync(self._stream.fileno())
        measured = measure(self._content, expected.needs_git)
        try:
            check(measured, expected)
        except WrongContent:
            self.restart()
            raise
        return measured

    def finish(self) -> None:
        """Give the complete and verified file its name."""
        self._content.replace(self.target)
        self._origin_path.unlink(missing_ok=True)

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
