"""Make the overview of all runs: findings.json of each in, one self-contained HTML file out.

A run that is both local and published is taken from the local results.

Example:
    python scripts/make_overview.py --results results --published docs/results --out overview.html
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

from crossalign.report.overview import overview
from crossalign.report.page import write_page
from crossalign.runtime.errors import run_main


def main() -> None:
    """Read, write."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="the folder of local runs")
    parser.add_argument("--published", type=Path, default=Path("docs/results"), help="the folder of published runs")
    parser.add_argument("--out", type=Path, default=Path("results/overview.html"), help="the page")
    args = parser.parse_args()
    content = overview([args.results, args.published], args.out)
    if content is None:
        print(f"overview: none, as no run in {args.results} or {args.published} has a findings.json")
        return
    write_page(content, args.out)
    print(f"overview: {args.out}")


if __name__ == "__main__":
    run_main(main)
