r"""Download one file of the register of data sets, resuming, verifying or locking it.

Sources are tried in this order: the mirror of everything, the file's address, its second address. A file that is
already in its place is only verified.

Example:
    python scripts/download_file.py --path qa/squad/dev-v1.1.json --version 1.1 --licence CC-BY-SA-4.0 \
        --url https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v1.1.json \
        --downloads resources/downloads --lock resources/downloads.lock
"""

import argparse

from crossalign.fetch.register import dataset
from crossalign.fetch.sources import add_options, obtain, settings
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", required=True, help="place below the downloads folder and below any mirror")
    parser.add_argument("--url", required=True, help="https://…, hub://datasets/…, text:https://…#…, manual:<page>")
    parser.add_argument("--mirror", default="", help="a second address of this file")
    parser.add_argument("--bytes", default="", help="its length, if known")
    parser.add_argument("--checksum", default="", help="sha256:<hex> or git:<blob id>, if published")
    parser.add_argument("--version", required=True, help="release; the revision of a file on the hub")
    parser.add_argument("--licence", required=True, help="short name of its licence")
    add_options(parser)
    return read_args(parser)


def main() -> None:
    """Download the file."""
    args = parse_args()
    try:
        row = dataset(vars(args) | {"use": ""})
    except ValueError as error:
        raise UserError(str(error)) from error
    obtain(row, settings(args))


if __name__ == "__main__":
    run_main(main)
