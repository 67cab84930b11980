"""Compare a run with the printed numbers: the CSV files of all tables and figures in, verdicts.csv out.

A run need not be finished: what is missing is told as not run.

Example:
    python scripts/make_verdicts.py --config results/demo/config.json --results results/demo --out verdicts.csv
"""

from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.command import config_of, run_parser
from crossalign.results.verdict import write_verdicts
from crossalign.runtime.errors import run_main


def main() -> None:
    """Find the files, gather, count."""
    args = run_parser(__doc__, "default: verdicts.csv in --results").parse_args()
    config = config_of(args)
    paths = [path for kind in ("tables", "figures") for path in args.results.glob(f"{kind}/*/*.csv")]
    found = write_verdicts(paths, catalog_of(config).items, args.out or args.results / "verdicts.csv")
    for label, count in sorted(found.items()):
        print(f"{label}: {count}")


if __name__ == "__main__":
    run_main(main)
