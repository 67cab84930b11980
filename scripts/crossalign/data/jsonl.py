"""JSON lines: the plain form of prepared NER, NLI and QA sets."""

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from crossalign.data.lines import numbered, shown, wrong
from crossalign.runtime.errors import UserError

# One encoder for all rows: json.dumps with these settings would build one per call.
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def write_rows(rows: Iterable[dict[str, Any]], stream: IO[str]) -> int:
    """Write one compact JSON object a line; return how many."""
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 (returned)
        try:
            stream.write(_ENCODE(row) + "\n")
        except UnicodeEncodeError:
            raise UserError(f"item {shown(str(row.get('id')))}: half of a surrogate pair, which is no text") from None
    return count


def read_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a stream of JSON lines with their line numbers."""
    for number, line in numbered(lines, name):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise wrong(name, number, f"not JSON ({error}): {shown(line)}") from None
        if not isinstance(row, dict):
            raise wrong(name, number, f"not a JSON object: {shown(line)}")
        yield number, row
