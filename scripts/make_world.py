"""Write the raw files of the demo world: artificial languages in the formats of the real data sets.

Reads the settings, writes one file per data set under --out and SHA256SUMS last. The same settings give the same bytes.

Example:
    python scripts/make_world.py --settings resources/demo/world.yaml --only ud/en_ --out world
"""

import argparse
import sys
from pathlib import Path

# The world's package lies beside scripts/.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from crossalign.runtime.errors import run_main
from demo_world.settings import load_settings
from demo_world.write import write_world


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=Path, required=True, help="settings file (resources/demo/world.yaml)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--only", nargs="+", metavar="PREFIX", help="only files whose path starts so, e.g. ud/en_")
    parser.add_argument("--jobs", type=int, default=2, help="processes (the result does not depend on it)")
    parser.add_argument("--scale", choices=["demo", "pretraining"], default="demo", help="amount of running text")
    return parser.parse_args()


def main() -> None:
    """Write the world."""
    args = parse_args()
    paths = write_world(load_settings(args.settings), args.out, args.only, args.jobs, args.scale)
    print(f"{len(paths)} files in {args.out}")


if __name__ == "__main__":
    run_main(main)
