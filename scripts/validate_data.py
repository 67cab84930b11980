"""Check prepared files: format, labels, trees, offsets, order, and that each report fits its file."""

import argparse
from pathlib import Path

from crossalign.data.validate import CHECKS, kind_of, validate
from crossalign.runtime.errors import run_main


def parse_args() -> argparse.Namespace:
    """The command line."""
    args = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n    python scripts/validate_data.py results/demo/data/trees/en_ewt/*.conllu",
    )
    args.add_argument("files", nargs="+", type=Path, metavar="FILE")
    args.add_argument("--kind", choices=sorted(CHECKS), help="default: by the folder, …/data/<kind>/…")
    args.add_argument("--several-roots", action="store_true", help="trees: sentences may have several roots (tweets)")
    args.add_argument("--tags-only", action="store_true", help="trees: sentences may have tags and no tree")
    return args.parse_args()


def main() -> None:
    """Check file by file; the first fault ends it."""
    args = parse_args()
    for path in args.files:
        kind = args.kind or kind_of(path)
        count = validate(kind, path, args.several_roots, args.tags_only)
        print(f"{path}: {kind}, {count} items, sound")


if __name__ == "__main__":
    run_main(main)
