"""What a file should be (length, checksums), what it is, and how the two differ."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from crossalign.runtime.errors import UserError

HEX_DIGITS = {"sha256": 64, "git": 40}


@dataclass(frozen=True)
class Expected:
    """What is known about a file before it is fetched, possibly nothing. All checksums must hold."""

    bytes: int | None = None
    checksums: tuple[str, ...] = ()  # `sha256:<hex>` or `git:<hex>`

    @property
    def needs_git(self) -> bool:
        """Whether the git blob id has to be computed."""
        return any(checksum.startswith("git:") for checksum in self.checksums)

    def also(self, other: "Expected") -> "Expected":
        """Both expectations together; the length of this one has precedence."""
        length = self.bytes if self.bytes is not None else other.bytes
        return Expected(length, tuple(dict.fromkeys(self.checksums + other.checksums)))


@dataclass(frozen=True)
class Measured:
    """What a file on disk turned out to be."""

    bytes: int
    sha256: str
    git: str | None = None


class WrongContent(Exception):
    """A file is not what it should be; the text names the expected and the actual value."""


def parse_checksum(text: str) -> str:
    """Return `sha256:<hex>` or `git:<hex>` in lower case, or raise ValueError."""
    kind, _, digits = text.strip().partition(":")
    if kind not in HEX_DIGITS or not re.fullmatch(rf"[0-9a-fA-F]{{{HEX_DIGITS[kind]}}}", digits):
        raise ValueError(f"{text!r} is not a checksum: write sha256:<64 hex digits> or git:<40 hex digits>")
    return f"{kind}:{digits.lower()}"


def measure(path: str | Path, with_git: bool = False) -> Measured:
    """Length, sha256 and, if asked for, git blob id of a file."""
    with Path(path).open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        length = stream.tell()
        if not with_git:
            return Measured(length, sha256)
        stream.seek(0)
        blob = hashlib.sha1(b"blob %d\0" % length, usedforsecurity=False)
        return Measured(length, sha256, hashlib.file_digest(stream, lambda: blob).hexdigest())


def check(measured: Measured, expected: Expected) -> None:
    """Raise WrongContent unless the file is as expected."""
    # The checksum first: it is what a person compares with the publisher's page.
    for checksum in expected.checksums:
        kind, _, digits = checksum.partition(":")
        actual = measured.sha256 if kind == "sha256" else measured.git
        if actual != digits:
            raise WrongContent(f"wrong checksum: expected {checksum}, got {kind}:{actual} ({measured.bytes} bytes)")
    if expected.bytes is not None and measured.bytes != expected.bytes:
        raise WrongContent(f"wrong length: expected {expected.bytes} bytes, got {measured.bytes}")


def parse_sums(text: str, source: str) -> dict[str, str]:
    """Read the format of the program sha256sum: `<hex>  <path>` per line, to path -> hex."""
    sums: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = re.fullmatch(r"([0-9a-fA-F]{64}) [ *](.+)", line)
        if not match:
            raise UserError(f"{source}, line {number}: expected `<64 hex digits>  <path>`, found {line[:80]!r}")
        path = match[2].removeprefix("./")
        if sums.setdefault(path, match[1].lower()) != match[1].lower():
            raise UserError(f"{source}, line {number}: {path} is listed twice with different checksums")
    return sums
