r"""Download the tables of one split of a data set of the hub at a revision; never a loading script.

The files go to <downloads>/datasets/<name>/<split>/; complete.json there lists them and is written last.

Example:
    python scripts/download_labelled.py --name masakhaner_wo --split test --hub masakhane/masakhaner2 \
        --revision refs/convert/parquet --files 'wol/test/*.parquet' \
        --downloads resources/downloads --lock resources/downloads.lock
"""

import argparse

from crossalign.fetch.labelled import HubSplit, obtain_split
from crossalign.fetch.sources import add_options, settings
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="its name in this project")
    parser.add_argument("--split", choices=("train", "dev", "test"), required=True)
    parser.add_argument("--hub", required=True, help="<owner>/<repository>")
    parser.add_argument("--revision", required=True, help="commit, or a branch whose commit is then locked")
    parser.add_argument("--files", required=True, help="pattern of its files there; * stands for anything")
    add_options(parser)
    return read_args(parser)


def main() -> None:
    """Download the files."""
    args = parse_args()
    asked = HubSplit(args.name, args.split, args.hub, args.revision, args.files)
    obtain_split(asked, settings(args))


if __name__ == "__main__":
    run_main(main)
