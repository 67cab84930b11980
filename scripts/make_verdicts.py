"""Judge a run: the CSV files of all tables and figures in, verdicts.csv (numbers) and claims.csv, claims.json out.

A run need not be finished: what is missing is told as not run, with the command that makes it.

Example:
    python scripts/make_verdicts.py --config results/demo/config.json --results results/demo --out verdicts.csv
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from pathlib import Path

from crossalign.papers.all_claims import judge_run
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.command import read_config
from crossalign.results.claims.claim import counts, write_claims
from crossalign.results.verdict import write_verdicts
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    args.add_argument("--config", type=Path, required=True, help="the merged config, as JSON or YAML")
    args.add_argument("--results", type=Path, required=True, help="results/<run>, with tables/ and figures/ in it")
    args.add_argument("--out", type=Path, help="verdicts on numbers; default: verdicts.csv in --results")
    args.add_argument("--claims", type=Path, help="verdicts on claims, and .json beside it; default: beside --out")
    return args.parse_args()


def tell(kind: str, found: Mapping[str, int]) -> None:
    """One line per verdict."""
    for label, count in found.items():
        print(f"{kind} {label}: {count}")


def main() -> None:
    """Find the files, gather, count."""
    args = parse_args()
    config = read_config(args.config)
    if not args.results.is_dir():
        raise UserError(f"--results {args.results}: no such folder")
    out = args.out or args.results / "verdicts.csv"
    table = args.claims or out.with_name("claims.csv")
    document = table.with_suffix(".json")
    if document == table or out in (table, document):
        raise UserError(f"--claims {table}: a name of its own is needed that does not end in .json")
    paths = [path for kind in ("tables", "figures") for path in args.results.glob(f"{kind}/*/*.csv")]
    tell("numbers", dict(sorted(write_verdicts(paths, catalog_of(config).items, out).items())))
    judged = judge_run(config, args.results)
    write_claims(judged, table, document)
    tell("claims", counts(judged))


if __name__ == "__main__":
    run_main(main)
