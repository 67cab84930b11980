"""Lay out a published run as results, to be judged again by other rules or with further seeds, without its models.

In: a folder that tools/publish_run.py wrote, and scores.parquet of further seeds. Out: its tables and figures,
scores.json of each model, and config.json. Tables made again have no marks of significance, as those need predictions.

Example:
    python tools/restore_run.py docs/results/pretrained-here --configs docs/results/pretrained-here/config.yaml \
        --out results/again
"""

import shutil
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.catalog.addresses import parse
from crossalign.catalog.config import merged
from crossalign.results.frames import score_files
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_json

SCORES = "scores.parquet"


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=RawDescriptionHelpFormatter,
        epilog=__doc__[__doc__.find("Example:") :],
    )
    args.add_argument("published", type=Path, help="the folder of the run")
    args.add_argument(
        "--more", type=Path, nargs="+", default=[], metavar="FILE", help="scores.parquet of further models"
    )
    args.add_argument("--configs", type=Path, nargs="+", required=True, help="files merged over config.yaml")
    args.add_argument("--out", type=Path, required=True, help="results/<run>, a new folder")
    return args.parse_args()


def read_scores(files: list[Path]) -> pd.DataFrame:
    """The scores of all files; no model may be in two of them. Addresses become folders: nothing else may pass."""
    frames = []
    for file in files:
        if not file.is_file():
            raise UserError(f"{file} is not there")
        frame = pd.read_parquet(file)
        for address in frame["address"].unique():
            try:
                parse(str(address))
            except UserError as error:
                raise UserError(f"{file}: {error}") from None
        known = {address for earlier in frames for address in earlier["address"]}
        if both := sorted(known & set(frame["address"])):
            raise UserError(f"{file}: an earlier file has {both[0]}, too")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    """Read everything, then write."""
    args = parse_args()
    if args.out.exists():
        raise UserError(f"--out {args.out}: there is such a folder already; name another")
    # Not checked: an earlier version may have had other keys.
    config = merged(args.configs)
    scores = score_files(read_scores([args.published / SCORES, *args.more]))
    args.out.mkdir(parents=True)
    for name in ("tables", "figures"):
        if (args.published / name).is_dir():
            shutil.copytree(args.published / name, args.out / name, copy_function=shutil.copyfile)
    for address, found in scores.items():
        write_json(args.out / address / "scores.json", found, sort_keys=True)
    write_json(args.out / "config.json", config, sort_keys=True)
    print(f"{args.out}: scores of {len(scores)} models")
    print(f"judge them: python scripts/make_verdicts.py --config {args.out}/config.json --results {args.out}")


if __name__ == "__main__":
    run_main(main)
