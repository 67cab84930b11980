"""Gather verdicts: the CSV files of all tables and figures in, verdicts.csv out."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crossalign.catalog import Catalog
from crossalign.errors import UserError, run_main
from crossalign.render.command import read_config
from crossalign.render.verdicts import write_verdicts


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(description=__doc__)
    args.add_argument("--config", type=Path, required=True, help="the merged config, as JSON or YAML")
    args.add_argument("--results", type=Path, required=True, help="results/<run>, with tables/ and figures/ in it")
    args.add_argument("--out", type=Path, required=True)
    return args.parse_args()


def main() -> None:
    """Find the files, gather, count."""
    args = parse_args()
    config = read_config(args.config)
    if not args.results.is_dir():
        raise UserError(f"--results {args.results}: no such folder")
    paths = [path for kind in ("tables", "figures") for path in args.results.glob(f"{kind}/*/*.csv")]
    counts = write_verdicts(paths, Catalog(config).items, args.out)
    for label, count in sorted(counts.items()):
        print(f"{label}: {count}")


if __name__ == "__main__":
    run_main(main)
