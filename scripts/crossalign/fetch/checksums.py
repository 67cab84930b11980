"""What a file should be (length, checksums), what it is, and how the two differ."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from crossalign.runtime.errors import UserError

HEX_DIGITS = {"sha256": 64, "git": 40}
BLOCK = 1 << 20


@dataclass(frozen=True)
class Expected:
    """Known facts about a file before it is fetched; none of them is also possible.

    `checksums` are texts like `sha256:<hex>` or `git:<hex>`, and all of them must hold.
    """

    bytes: int | None = None
    checksums: tuple[str, ...] = ()

    @property
    def needs_git(self) -> bool:
        """Whether the git blob id has to be computed."""
        return any(checksum.startswith("git:") for checksum in self.checksums)

    def also(self, other: "Expected") -> "Expected":
        """Both sets of facts together; the length of this one has precedence."""
        length = self.bytes if self.bytes is not None else other.bytes
        extra = tuple(checksum for checksum in other.checksums if checksum not in self.checksums)
        return Expected(length, self.checksums + extra)


@dataclass(frozen=True)
class Measured:
    """What a file on disk turned out to be."""

    bytes: int
    sha256: str
    git: str | None = None


class WrongContent(Exception):
    """A file is not what it should be; the text names what was expected and what was found."""


def parse_checksum(text: str) -> str:
    """Return `sha256:<hex>` or `git:<hex>` in lower case, or raise ValueError."""
    kind, _, digits = text.strip().partition(":")
    if kind not in HEX_DIGITS or not re.fullmatch(rf"[0-9a-fA-F]{{{HEX_DIGITS[kind]}}}", digits):
        raise ValueError(f"{text!r} is not a checksum: write sha256:<64 hex digits> or git:<40 hex digits>")
    return f"{kind}:{digits.lower()}"


def measure(path: str | Path, with_git: bool = False) -> Measured:
    """Length, sha256 and, if asked for, git blob id of a file, in one pass over it."""
    path = Path(path)
    length = path.stat().st_size
    sha256 = hashlib.sha256()
    # A git blob id covers the length too, so a file that grows while it is read is noticed.
    git = hashlib.sha1(b"blob %d\0" % length, usedforsecurity=False)
    read = 0
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            sha256.update(block)
            if with_git:
                git.update(block)
            read += len(block)
    return Measured(read, sha256.hexdigest(), git.hexdigest() if with_git else None)


def check(measured: Measured, expected: Expected) -> None:
    """Raise WrongContent unless the file is as expected."""
    # The checksum first: it is what a person compares with the publisher's page.
    for checksum in expected.checksums:
        kind, _, digits = checksum.partition(":")
        found = measured.sha256 if kind == "sha256" else measured.git
        if found != digits:
            raise WrongContent(f"wrong checksum: expected {checksum}, got {kind}:{found} ({measured.bytes} bytes)")
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
            raise UserError(f"{source}, line {number}: {path} stands there twice with different checksums")
    return sums
