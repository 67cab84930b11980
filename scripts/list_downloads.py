"""List what the registers name: path, size, licence, address and place; or only what is missing."""

import argparse
import signal
import sys
from pathlib import Path

from crossalign.errors import UserError, run_main
from crossalign.fetch.listing import licence_summary, listing, missing, missing_message
from crossalign.fetch.register import Dataset, Model, read_datasets, read_models


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--register", type=Path, required=True, help="datasets.tsv")
    parser.add_argument("--models", type=Path, required=True, help="models.tsv")
    parser.add_argument("--downloads", type=Path, required=True, help="the folder where downloads go")
    parser.add_argument("--only", help="a file with one path a line (models/<name> for models), or - (standard input)")
    parser.add_argument("--missing", action="store_true", help="only what is missing; status 1 if anything is")
    parser.add_argument("--licences", action="store_true", help="add a summary by licence")
    return parser.parse_args()


def select(rows: list[Dataset | Model], only: str) -> list[Dataset | Model]:
    """The rows whose paths stand in the file `only`."""
    try:
        text = sys.stdin.read() if only == "-" else Path(only).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{only}: cannot read: {error.strerror}") from error
    by_path = {row.path: row for row in rows}
    paths = [line.strip() for line in text.splitlines() if line.strip()]
    if unknown := [path for path in paths if path not in by_path]:
        raise UserError(f"{only}: not in the registers: {', '.join(unknown)}")
    return [by_path[path] for path in dict.fromkeys(paths)]


def main() -> None:
    """Print the list."""
    # A reader that has seen enough (`| head`) is no error.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    args = parse_args()
    rows: list[Dataset | Model] = [*read_datasets(args.register).values(), *read_models(args.models).values()]
    if args.only:
        rows = select(rows, args.only)
    if args.missing:
        rows = missing(rows, args.downloads)
    message = missing_message(rows, args.downloads) if args.missing else listing(rows, args.downloads)
    if message:
        print(message)
    if args.licences and rows:
        print(f"\n{licence_summary(rows)}")
    if args.missing and rows:
        sys.exit(1)


if __name__ == "__main__":
    run_main(main)
