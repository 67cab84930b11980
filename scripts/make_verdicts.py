"""Judge a run: the CSV files of all tables and figures in, verdicts.csv (numbers) and claims.csv, claims.json out.

A run need not be finished: what is missing is told as not run, with the command that makes it.

Example:
    python scripts/make_verdicts.py --config results/demo/config.json --results results/demo --out verdicts.csv
"""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from crossalign.papers.all_claims import write_judged
from crossalign.papers.common.command import config_of, run_parser
from crossalign.results.claims.claim import counts
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> Namespace:
    """The command line."""
    args = run_parser(__doc__, "verdicts on numbers; default: verdicts.csv in --results")
    args.add_argument("--claims", type=Path, help="verdicts on claims, and .json beside it; default: beside --out")
    return args.parse_args()


def tell(kind: str, found: Mapping[str, int]) -> None:
    """One line per verdict."""
    for label, count in found.items():
        print(f"{kind} {label}: {count}")


def main() -> None:
    """Find the files, gather, count."""
    args = parse_args()
    config = config_of(args)
    out = args.out or args.results / "verdicts.csv"
    table = args.claims or out.with_name("claims.csv")
    if table.suffix == ".json" or out in (table, table.with_suffix(".json")):
        raise UserError(f"--claims {table}: a name of its own is needed that does not end in .json")
    numbers, judged = write_judged(config, args.results, out, table)
    tell("numbers", dict(sorted(numbers.items())))
    tell("claims", counts(judged))


if __name__ == "__main__":
    run_main(main)
