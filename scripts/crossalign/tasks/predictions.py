"""Files of scores and of per-example predictions, small and the same bytes every time.

A row of predictions has `set`, `id` and, by task (counts are of words, entities or tokens of that record):

    pos      tags (label numbers), right
    ner      tags, entities [right, predicted, gold], tokens [right, predicted, gold]
    parsing  heads (0: root, -1: beyond the model's length), labels, right [head, head and relation]
    nli      label, right (0 or 1)
    qa       f1, exact (0 to 100), span (first and end character in the context)
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

Scores = dict[str, dict[str, float]]
Rows = dict[str, list[dict[str, Any]]]


def write_scores(path: str | Path, scores: Scores) -> None:
    """Scores by set and metric, sorted, rounded to 6 digits."""
    rounded = {name: {key: round(value, 6) for key, value in values.items()} for name, values in scores.items()}
    write_json(path, rounded, sort_keys=True, ensure_ascii=False)


def write_predictions(path: str | Path, task: str, labels: Iterable[str], sets: Rows) -> None:
    """Compressed JSON lines: first the task and its labels, then one row per record with its set and id."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    with (
        write_atomic(path, "wb") as raw,
        # No name and no time: equal predictions are equal files.
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as stream,
    ):
        stream.write(encode({"task": task, "labels": list(labels)}) + "\n")
        for name in sorted(sets):
            stream.writelines(encode({"set": name, **row}) + "\n" for row in sets[name])


def read_predictions(path: str | Path) -> tuple[dict[str, Any], Rows]:
    """The head line and the rows of each set, as `write_predictions` took them."""
    sets: Rows = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
            head = json.loads(stream.readline())
            for line in stream:
                row = json.loads(line)
                sets.setdefault(row.pop("set"), []).append(row)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, KeyError, zlib.error) as error:
        raise UserError(f"{path}: no file of predictions ({error}); evaluate the model again") from None
    return head, sets
