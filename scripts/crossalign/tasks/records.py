"""Prepared files become records: dictionaries of plain lists and texts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from crossalign.data.conllu import UPOS, find_cycle, read_sentences
from crossalign.data.lines import read_rows
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Record

_NUMBERS = [str(number) for number in range(1, 1001)]  # a longer sentence is unusual
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
    with _open(path) as stream:
        records = _plain_trees(stream.buffer.read(), parsed)
    if records is None:
        with _open(path) as stream:
            sentences = list(read_sentences(stream, str(path), tags_only=not parsed, several_roots=True))
        names = {"id": "sent_id", "words": "forms", "upos": "upos"}
        names |= {"heads": "heads", "relations": "deprels"} if parsed else {}
        records = [{key: getattr(sentence, name) for key, name in names.items()} for sentence in sentences]
    if not records:
        raise UserError(f"{path}: the file is empty; a treebank needs at least one sentence")
    if not parsed and all(tag == "_" for record in records for tag in record["upos"]):
        raise UserError(f"{path}: no word has a UPOS tag; POS tagging needs them in column 4")
    return records


def _plain_trees(raw: bytes, parsed: bool) -> list[Record] | None:
    """The records of a file as the workflow itself writes it, in a third of the time; None if it has anything else.

    Whatever needs repair or a message is left to the thorough reader.
    """
    try:
        text = raw.decode()
        records = [_plain_tree(block, parsed) for block in text.split("\n\n") if block]
    except ValueError:
        return None
    unusual = "\r" in text or None in records or len({record["id"] for record in records}) < len(records)
    return None if unusual else records


def _plain_tree(block: str, parsed: bool) -> Record | None:
    lines = block.split("\n")
    comments = 1
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    rows = [line.split("\t") for line in lines[comments:]]
    named = [line.startswith("# sent_id") for line in lines[:comments]]
    if sum(named) != 1 or not lines[0].startswith("# sent_id = ") or set(map(len, rows)) != {10}:
        return None
    numbers, forms, _, tags, _, _, heads, relations, _, _ = map(list, zip(*rows, strict=True))
    kinds = set(relations)
    if (
        numbers != _NUMBERS[: len(rows)]
        or not UPOS.issuperset(tags)
        or not all(forms)
        or any(map(str.isspace, forms))
        or any(":" in kind for kind in kinds)
    ):
        return None
    record = {"id": lines[0][12:].strip(), "words": forms, "upos": tags}
    if parsed or set(heads) != {"_"}:
        places = list(map(int, heads))
        if kinds & {"", "_"} or min(places) < 0 or max(places) > len(rows) or find_cycle(places):
            return None
        if parsed:
            record |= {"heads": places, "relations": relations}
    return record if record["id"] else None


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
