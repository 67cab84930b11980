"""Prepared files become records: dictionaries of plain lists and texts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from crossalign.data.conllu import read_sentences
from crossalign.data.lines import read_rows
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Record

_NAMES = {str: "text", list: "a list"}


def read_json(path: str | Path, keys: dict[str, type], kind: str, check: Callable[[Record, str], None]) -> list[Record]:
    """Records of a JSON-lines file. Every one has `keys` of the given types, and `check` gets it with its place.

    `kind` names the format in messages.
    """
    records = []
    with _open(path) as stream:
        for number, record in read_rows(stream, str(path)):
            where = f"{path}, line {number}"
            for key, wanted in keys.items():
                if not isinstance(record.get(key), wanted):
                    raise UserError(
                        f"{where}: no '{key}' that is {_NAMES[wanted]}; every line of {kind} data has {', '.join(keys)}"
                    )
            check(record, where)
            records.append(record)
    return records


def read_trees(path: str | Path, parsed: bool) -> list[Record]:
    """Sentences of a treebank: `id`, `words`, `upos`, and with `parsed` also `heads` and `relations`."""
    names = {"id": "sent_id", "words": "forms", "upos": "upos"}
    names |= {"heads": "heads", "relations": "deprels"} if parsed else {}
    with _open(path) as stream:
        sentences = read_sentences(stream, str(path), tags_only=not parsed, several_roots=True)
        records = [{key: getattr(sentence, name) for key, name in names.items()} for sentence in sentences]
    if not records:
        raise UserError(f"{path}: the file is empty; a treebank needs at least one sentence")
    if not parsed and all(tag == "_" for record in records for tag in record["upos"]):
        raise UserError(f"{path}: no word has a UPOS tag; POS tagging needs them in column 4")
    return records


@contextmanager
def _open(path: str | Path) -> Iterator[IO[str]]:
    """The text of a file that exists and is not empty."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    # Only LF ends a line: texts may hold characters that Python would otherwise take for a line's end.
    with path.open(encoding="utf-8", newline="\n") as stream:
        first = stream.read(1)
        if not first:
            raise UserError(f"{path}: the file is empty; a data set needs at least one record")
        stream.seek(0)
        yield stream
