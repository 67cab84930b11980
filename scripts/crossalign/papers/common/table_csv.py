"""A table as tidy CSV: one line per cell."""

import csv
from pathlib import Path

from crossalign.papers.common.table import MEASURED, Table
from crossalign.runtime.files import write_atomic


def write_csv(table: Table, path: str | Path) -> None:
    """Write the cells with the paper's key columns first."""
    names = [name for name in table.key_columns if name not in MEASURED] + list(MEASURED)
    with write_atomic(path) as stream:
        writer = csv.DictWriter(stream, names, restval="", extrasaction="raise", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table.tidy())
