"""Make the page of a run that still goes: judge what is there, and mark what is still to come.

Only --out is written: verdicts and provenance of the run are for the rules that end it.

Example:
    python scripts/early_look.py --results results/demo --out early.html
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from tempfile import TemporaryDirectory

from crossalign.papers.all_claims import write_judged
from crossalign.papers.common.command import read_config
from crossalign.report.gather import gather
from crossalign.report.page import write_page
from crossalign.runtime.errors import run_main


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    args.add_argument("--results", type=Path, required=True, help="results/<run>")
    args.add_argument("--out", type=Path, required=True, help="the file to write")
    args.add_argument("--page", type=Path, help="where it is going to lie, for its links; default: --out")
    return args.parse_args()


def main() -> None:
    """Judge, gather, write."""
    args = parse_args()
    config = read_config(args.results / "config.json")
    with TemporaryDirectory(prefix="crossalign-") as name:
        folder = Path(name)
        write_judged(config, args.results, folder / "verdicts.csv", folder / "claims.csv")
        report = gather(config, args.results, args.page or args.out, folder)
    write_page(report, args.out, going=True)


if __name__ == "__main__":
    run_main(main)
