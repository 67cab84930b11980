"""Put what a run has found into one small folder that can be tracked or sent: no models, data or predictions.

Out: the page with all tables and figures that it links to, all scores (as Parquet, a tenth of the CSV file), verdicts
on the claims, and how the language models that it pretrained were made, with their checksums. The folder is replaced as
a whole.

Example:
    python tools/publish_run.py --results results/demo --out published
"""

import csv
import io
import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import read_json

FOLDERS = ("report", "tables", "figures")  # side by side as in the run, so that the page's links work
MARK = "published.txt"  # only a folder that this program wrote is replaced
FIELDS = (
    "model",
    "objective",
    "parameters",
    "steps",
    "tokens_seen",
    "dev_loss",
    "seconds",
    "device",
    "recipe",
    "sha256",
)


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=RawDescriptionHelpFormatter,
        epilog=__doc__[__doc__.find("Example:") :],
    )
    args.add_argument("--results", type=Path, required=True, help="results/<run>, finished or not")
    args.add_argument("--out", type=Path, required=True, help="the folder to write: docs/notes/small-run/outcome")
    return args.parse_args()


def models(results: Path) -> str:
    """One CSV row for each language model that was pretrained in this run."""
    table = io.StringIO()
    rows = csv.DictWriter(table, FIELDS, extrasaction="ignore", restval="", lineterminator="\n")
    rows.writeheader()
    for file in sorted(results.glob("models/*/training.json")):
        facts = read_json(file)
        dev = facts.get("dev") or [{}]
        rows.writerow(
            facts
            | {"model": file.parent.name, "steps": facts["settings"]["steps"], "dev_loss": dev[-1].get("loss", "")}
        )
    return table.getvalue()


def gather(results: Path, out: Path) -> int:
    """Copy and write everything into an empty folder; says how many items there are."""
    shutil.copyfile(results / "claims.csv", out / "claims.csv")
    for name in ("scores.parquet", "coverage.csv"):
        if (results / name).exists():
            shutil.copyfile(results / name, out / name)
    for name in FOLDERS:
        if (results / name).exists():
            # The page holds what tables have as JSON.
            page_only = shutil.ignore_patterns("table*.json")
            shutil.copytree(results / name, out / name, copy_function=shutil.copyfile, ignore=page_only)
    (out / "models.csv").write_text(models(results), encoding="utf-8")
    (out / MARK).write_text(
        "Written by tools/publish_run.py; replaced as a whole when it runs again.\n", encoding="utf-8"
    )
    return len({file.with_suffix("") for name in FOLDERS[1:] for file in (out / name).rglob("*.csv")})


def main() -> None:
    """Write beside the old folder, then take its place."""
    args = parse_args()
    page = args.results / "report/index.html"
    if not page.exists():
        raise UserError(f"{page} is not there; make report makes it, also of a run that is not finished")
    if args.out.exists() and not (args.out / MARK).exists():
        raise UserError(f"--out {args.out}: there is a folder that this program did not write; name another")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent, prefix=".publish-") as place:
        fresh = Path(place) / "fresh"
        fresh.mkdir()
        count = gather(args.results, fresh)
        if args.out.exists():
            args.out.rename(Path(place) / "old")
        fresh.rename(args.out)
    size = sum(file.stat().st_size for file in args.out.rglob("*") if file.is_file())
    print(f"{args.out}: {count} tables and figures, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    run_main(main)
