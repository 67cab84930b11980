"""Sets that are put together from several small sources: which files of the register each of them reads.

`resources/mixtures.tsv` has one line per set and file, in the order of reading. The set `text/mix_wo` is the running
text of one language; `bitext/mix_ru` its sentence pairs with English, where of two files with parallel lines the
English one comes first.
"""

import csv
from functools import cache
from pathlib import Path

from crossalign.runtime.errors import UserError

MIXTURES = Path(__file__).resolve().parents[3] / "resources" / "mixtures.tsv"
COLUMNS = ["set", "path"]


def mixture(name: str) -> tuple[str, ...]:
    """The register's paths of the files behind a set, `text/mix_wo`."""
    try:
        return _mixtures(MIXTURES)[name]
    except KeyError:
        raise UserError(f"{MIXTURES}: no files are listed for the set '{name}'") from None


@cache
def _mixtures(register: Path) -> dict[str, tuple[str, ...]]:
    """The register, read once; a mistake in it is told with its line."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        with register.open(encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
            if next(rows, []) != COLUMNS:
                raise UserError(f"{register}, line 1: expected the columns {', '.join(COLUMNS)}")
            for row in rows:
                if len(row) != len(COLUMNS) or not all(row):
                    raise UserError(f"{register}, line {rows.line_num}: expected a set and a path; found {row}")
                name, path = row
                if path in found.get(name, ()):
                    raise UserError(f"{register}, line {rows.line_num}: '{path}' stands twice in {name}")
                found[name] = (*found.get(name, ()), path)
    except OSError as error:
        raise UserError(f"{register}: cannot read this register: {error.strerror}") from error
    return found
