r"""Prepare one split of any labelled table: parquet, JSON lines or CSV in, the form of its task out.

The files are read by `datasets`; --columns says what is where, --labels which names numbers have or labels stand for.

Example:
    python scripts/prepare_labelled.py --task ner --source mine/train.parquet --out train.jsonl \
        --columns tokens=words tags=labels --labels O B-PER I-PER
"""

import argparse
import os

from crossalign.data.columns import COLUMNS
from crossalign.data.command import parser, prepared
from crossalign.data.labelled import listed_files, prepare_table
from crossalign.data.report import Report
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> argparse.Namespace:
    """The command line."""
    args = parser(__doc__)
    args.add_argument("--task", choices=sorted(COLUMNS), required=True)
    uses = ", ".join(sorted({use for columns in COLUMNS.values() for use in columns}))
    args.add_argument("--columns", nargs="+", default=[], metavar="USE=COLUMN", help=f"of id, {uses}")
    args.add_argument(
        "--labels", nargs="+", metavar="LABEL", help="names of the labels 0, 1, 2, …, or THEIRS=OURS for each"
    )
    return read_args(args)


def pairs(option: str, words: list[str]) -> dict[str, str]:
    """What options of the form key=value say."""
    if bad := [word for word in words if not all(word.partition("=")[::2])]:
        raise UserError(f"{option}: '{bad[0]}' should read NAME=NAME")
    return dict(word.split("=", 1) for word in words)


def main() -> None:
    """Read, map, write."""
    args = parse_args()
    report = Report()
    columns = pairs("--columns", args.columns)
    renamed = args.labels is not None and any("=" in label for label in args.labels)
    labels = pairs("--labels", args.labels) if renamed else args.labels
    files = [file for source in args.source for file in listed_files(source)]
    with prepared(args, report) as out:
        prepare_table(files, args.task, columns, labels, args.out.stem, out, report)


if __name__ == "__main__":
    # The library reads it at its import: the files are here, and nothing is asked of the hub.
    os.environ["HF_HUB_OFFLINE"] = "1"
    run_main(main)
