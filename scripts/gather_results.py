"""Gather all scores and similarities of a run into two tidy files each: scores and similarity, as CSV and Parquet.

A run need not be finished: what is not there yet has no rows. docs/use/analysis.md explains the columns.

Example:
    python scripts/gather_results.py --config results/demo/config.json --results results/demo
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.command import read_config
from crossalign.results.frames import write_frames
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    args.add_argument("--config", type=Path, required=True, help="the merged config, as JSON or YAML")
    args.add_argument("--results", type=Path, required=True, help="results/<run>")
    args.add_argument("--out", type=Path, help="folder for the four files; default: --results")
    return args.parse_args()


def main() -> None:
    """Ask the catalog which models each paper has, read them, write."""
    args = parse_args()
    catalog = catalog_of(read_config(args.config))
    if not args.results.is_dir():
        raise UserError(f"--results {args.results}: no such folder; it is made by the first job of a run")
    papers: dict[str, set] = {}
    corpora = set()
    for item in catalog.items:
        needs = catalog.needs(item)
        papers.setdefault(item.partition("/")[0], set()).update(needs.runs)
        corpora |= {data.name for data in needs.sets if data.kind == "parallel"}
    for name, frame in write_frames(args.results, papers, sorted(corpora), args.out or args.results).items():
        print(f"{name}: {len(frame)} rows of {frame['address'].nunique()} models")


if __name__ == "__main__":
    run_main(main)
