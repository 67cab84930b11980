"""Addresses of running text: files of an archive, or one file, and the reader that makes lines of them.

`text:<address>#<reader>?files=<patterns>&not=<patterns>&…`, several of them parted by `|`. In a pattern * stands for
anything, / included; commas part several. Imported while the workflow is planned: the standard library only.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from crossalign.data.archive import is_archive, members
from crossalign.data.running import READERS, read
from crossalign.runtime.errors import UserError

SCHEME = "text:"


@dataclass(frozen=True)
class TextSource:
    """One part of an address. `share` of the files is read, drawn by their names, and of each its first `words`."""

    url: str
    reader: str
    option: str = ""
    files: tuple[str, ...] = ("*",)
    left_out: tuple[str, ...] = ()
    words: int | None = None
    share: float = 1.0

    @property
    def path(self) -> str:
        """The place of what is fetched, below the downloads and below any mirror."""
        where = urlsplit(self.url)
        return f"archives/{where.netloc}{where.path}"

    def lines(self, file: Path) -> Iterator[list[str]]:
        """The text of each of the files, in the order of the archive."""
        found = members(file, self._wanted) if is_archive(self.path) else [(file.name, file.read_bytes())]
        count = 0
        for count, (name, data) in enumerate(found, 1):  # noqa: B007 (how many)
            try:
                yield list(self._first(read(data, self.reader, self.option)))
            except (ValueError, LookupError) as error:
                raise UserError(f"{file}: {name} cannot be read as {self.reader}: {error}") from error
        if not count:
            raise UserError(f"{file}: no file fits {', '.join(self.files)}")

    def _wanted(self, name: str) -> bool:
        if not any(fnmatchcase(name, pattern) for pattern in self.files):
            return False
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        drawn = int.from_bytes(digest) < self.share * 2**64
        return drawn and not any(fnmatchcase(name, pattern) for pattern in self.left_out)

    def _first(self, lines: Iterator[str]) -> Iterator[str]:
        words = 0
        for line in lines:
            yield line
            words += len(line.split())
            if self.words is not None and words >= self.words:
                return


def parse_texts(address: str) -> list[TextSource]:
    """The parts of a `text:` address; raises ValueError for one that nobody can read."""
    return [_parse(part) for part in address.removeprefix(SCHEME).split("|")]


def _parse(part: str) -> TextSource:
    url, _, rest = part.partition("#")
    reader, _, query = rest.partition("?")
    if reader not in READERS:
        raise ValueError(f"text {part!r}: {reader!r} is no reader: known are {', '.join(READERS)}")
    given = dict(parse_qsl(query, strict_parsing=bool(query), keep_blank_values=True))
    kinds = {"option": str, "files": _patterns, "not": _patterns, "words": int, "share": float}
    if unknown := sorted(set(given) - set(kinds)):
        raise ValueError(f"text {part!r}: unknown {', '.join(unknown)}; known are {', '.join(kinds)}")
    values = {name: kinds[name](value) for name, value in given.items()}
    if "not" in values:
        values["left_out"] = values.pop("not")
    return TextSource(url, reader, **values)


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))
