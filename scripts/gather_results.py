"""Gather a run's numbers into tidy files: scores, similarity and distances, each as CSV and Parquet.

A run need not be finished: what is not there yet has no rows. docs/use/analysis.md explains the columns.

Example:
    python scripts/gather_results.py --config results/demo/config.json --results results/demo
"""

from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.command import config_of, run_parser
from crossalign.results.frames import write_frames
from crossalign.runtime.errors import run_main


def main() -> None:
    """Ask the catalog which models each paper has, read them, write."""
    args = run_parser(__doc__, "folder for the six files; default: --results").parse_args()
    catalog = catalog_of(config_of(args))
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
