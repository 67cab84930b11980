"""Delete the results of one run. The demo is made again in minutes; another run's name must be typed first.

Example:
  python scripts/clean.py --run paper
"""

import argparse
import shutil
from pathlib import Path

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.workarounds import locked_files, remove_dead_lock

DEMO = "demo"


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default=DEMO, help="the run, a folder in results/; default: %(default)s")
    return parser.parse_args()


def main() -> None:
    """Delete in the working folder."""
    run = parse_args().run
    results = Path("results", run)
    if Path(run).name != run or run in ("", ".", ".."):
        raise UserError(f"RUN={run}: the name of a folder in results/ was expected, such as paper")
    if results.is_symlink():
        raise UserError(f"{results} is a link to {results.resolve()}: delete that yourself, if you are sure")
    if not results.is_dir():
        print(f"{results} is not there: nothing to delete")
        return
    remove_dead_lock(Path())
    if any(Path(file).is_relative_to(results) for file in locked_files(Path())):
        raise UserError(f"{results} is not deleted: a run works on it, or one was killed (snakemake --unlock)")
    if run != DEMO and ask(f"type {run} to delete {results}: ") != run:
        raise UserError(f"{results} is not deleted")
    shutil.rmtree(results)
    print(f"{results} is deleted")


def ask(question: str) -> str:
    """What the user types; nothing where nobody is there."""
    try:
        return input(question).strip()
    except EOFError:
        return ""


if __name__ == "__main__":
    run_main(main)
