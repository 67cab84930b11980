"""Delete the results of one run, and what Snakemake has written down about them. Other runs stay as they are.

The demo is made again in minutes. Another run may be the work of a week: its name must be typed, or given by --confirm.

Example:
  python scripts/clean.py --run small --confirm small
"""

import argparse
import base64
import shutil
import sys
from pathlib import Path

from crossalign.fetch.listing import size
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.holders import LOCKS, judge

DEMO = "demo"
RECORDS = (Path(".snakemake") / "metadata", Path(".snakemake") / "incomplete")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default=DEMO, help="the run, a folder in results/; default: %(default)s")
    parser.add_argument("--confirm", default="", metavar="RUN", help="the name again: delete it without a question")
    return parser.parse_args()


def main() -> None:
    """Delete in the working folder."""
    given = parse_args()
    run, results = given.run, Path("results", given.run)
    if Path(run).name != run or run in ("", ".", ".."):
        raise UserError(f"RUN={run}: the name of a folder in results/ was expected, such as paper")
    if results.is_symlink():
        raise UserError(f"{results} is a link to {results.resolve()}: delete that yourself, if you are sure")
    if not results.is_dir():
        print(f"{results} is not there: nothing to delete")
        return
    refuse_if_at_work(results)
    if run not in (DEMO, given.confirm):
        ask(run, f"{results} ({size(sum(file.lstat().st_blocks * 512 for file in results.rglob('*')))})")
    shutil.rmtree(results)
    count = sum(forget(records, f"{results.as_posix()}/") for records in RECORDS)
    print(f"{results} is deleted, with {count} records of Snakemake about it")


def refuse_if_at_work(results: Path) -> None:
    """A run that is alive, or may be, keeps its results."""
    locked = any(
        line.startswith(f"{results.as_posix()}/")
        for lock in LOCKS.glob("*.output.lock")
        for line in lock.read_text(encoding="utf-8").splitlines()
    )
    if locked and (found := judge(Path())).state not in ("free", "dead"):
        raise UserError(f"{results} is not deleted: a run works on it, or may. {found.told}")


def ask(run: str, what: str) -> None:
    """Let the user type the name; UserError if something else comes, or nobody is there to ask."""
    if not sys.stdin.isatty():
        raise UserError(f"{what} is not deleted without a question. To do it: make clean RUN={run} CONFIRM={run}")
    try:
        answer = input(f"type {run} to delete {what}: ")
    except (EOFError, KeyboardInterrupt):
        answer = ""
    if answer.strip() != run:
        raise UserError(f"{what} is not deleted")


def forget(records: Path, start: str) -> int:
    """Remove Snakemake's records of files whose path begins so; their number.

    A record is called by the path of its file in base 64. Long names are cut into folders that begin with @.
    """
    count = 0
    for record in [file for file in records.rglob("*") if file.is_file()]:
        name = "".join(part.removeprefix("@") for part in record.relative_to(records).parts)
        try:
            path = base64.urlsafe_b64decode(name).decode()
        except ValueError:
            continue  # not a record
        if path.startswith(start):
            record.unlink()
            count += 1
            for folder in record.parents:
                if folder == records or any(folder.iterdir()):
                    break
                folder.rmdir()
    return count


if __name__ == "__main__":
    run_main(main)
