"""Lay out a mirror from a folder of samples, so that a run needs no network: `downloads.mirror: file://<out>`.

Only files that the given configs need are made, or all that the folder allows without --config. What is not the
published file but a sample or another packing is listed, as is what the folder lacks; then the exit status is 1, with
--partly 0.

Example:
    python tools/make_mirror.py samples --out results/small/mirror --config config.small.yaml
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from tools.local_mirror import lay_out

from crossalign.catalog.config import load
from crossalign.fetch.register import read_datasets
from crossalign.papers.all_items import catalog_of
from crossalign.runtime.errors import run_main

ROOT = Path(__file__).resolve().parents[1]


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the samples; docs/notes/small-run/README.md has their layout")
    parser.add_argument("--out", type=Path, required=True, help="the mirror")
    parser.add_argument("--config", type=Path, nargs="+", help="files merged over config.yaml: what they need is made")
    parser.add_argument("--partly", action="store_true", help="be content with what the folder holds")
    return parser.parse_args()


def main() -> None:
    """Choose, write, tell."""
    args = parse_args()
    rows = read_datasets(ROOT / "resources" / "datasets.tsv")
    if args.config:
        wanted = catalog_of(load(args.config)).files()
        rows = {path: rows[path] for path in wanted}
    laid, absent = lay_out(rows, args.folder, args.out)
    for file in laid:
        if not file.published:
            print(f"sample or other packing: {file.path}")
    if args.config:
        for path, reason in absent.items():
            print(f"absent: {path}: {reason}")
    as_published = sum(bool(file.published) for file in laid)
    size = sum(file.bytes for file in laid) / 1e6
    print(f"{args.out}: {len(laid)} files, {size:.0f} MB; {as_published} of them bit by bit as published")
    if args.config and absent and not args.partly:
        sys.exit(1)


if __name__ == "__main__":
    run_main(main)
