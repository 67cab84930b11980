"""Prepared files become records: dictionaries of plain lists and texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from crossalign.data.conllu import read_sentences
from crossalign.data.jsonl import read_rows
from crossalign.errors import UserError

Record = dict[str, Any]
_NAMES = {str: "text", list: "a list"}


def read_json(path: str | Path, keys: dict[str, type], kind: str) -> Iterator[tuple[str, Record]]:
    """Records of a JSON-lines file with the place of each for messages; every one has `keys` of the given types.

    `kind` names the format in messages.
    """
    with _open(path) as stream:
        for number, record in read_rows(stream, str(path)):
            where = f"{path}, line {number}"
            for key, wanted in keys.items():
                if not isinstance(record.get(key), wanted):
                    raise UserError(
                        f"{where}: no '{key}' that is {_NAMES[wanted]}; every line of {kind} data has {', '.join(keys)}"
                    )
            yield where, record


def read_trees(path: str | Path, parsed: bool) -> list[Record]:
    """Sentences of a treebank: `id`, `words`, `upos`, and with `parsed` also `heads` and `relations`."""
    with _open(path) as stream:
        sentences = list(read_sentences(stream, str(path), tags_only=not parsed, several_roots=True))
    if not sentences:
        raise UserError(f"{path}: the file is empty; a treebank needs at least one sentence")
    if not parsed and all(tag == "_" for sentence in sentences for tag in sentence.upos):
        raise UserError(f"{path}: no word has a UPOS tag; POS tagging needs them in column 4")
    records = []
    for sentence in sentences:
        record = {"id": sentence.sent_id, "words": sentence.forms, "upos": sentence.upos}
        if parsed:
            record |= {"heads": sentence.heads, "relations": sentence.deprels}
        records.append(record)
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
