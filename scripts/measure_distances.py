r"""Histogram of L2 distances between the vectors of related and of unrelated word pairs, and how well they separate.

Reads two arrays of pairs x 2 x neurons (.npy) and writes a CSV file (kind,left,right,count) and a JSON file (auc,
top10, top100, pairs).

Example:
    python scripts/measure_distances.py --related related.npy --unrelated unrelated.npy --out distances.csv \
        --summary distances.json
"""

import argparse
from pathlib import Path

import numpy as np

from crossalign.analysis.distances import measure, write_panel
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--related", type=Path, required=True, help="vectors of linked words, .npy")
    parser.add_argument("--unrelated", type=Path, required=True, help="vectors of words from unpaired sentences, .npy")
    parser.add_argument("--out", type=Path, required=True, help="CSV file of the histogram")
    parser.add_argument("--summary", type=Path, required=True, help="JSON file of the numbers")
    return parser.parse_args()


def main() -> None:
    """Measure, then write."""
    args = parse_args()
    arrays = []
    for path in (args.related, args.unrelated):
        try:
            arrays.append(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: not a complete .npy array: {error}") from None
    write_panel(measure(*arrays, names=(str(args.related), str(args.unrelated))), args.out, args.summary)


if __name__ == "__main__":
    run_main(main)
