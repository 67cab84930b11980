"""Put what a run has found into one small folder that can be tracked or sent: no models, data or predictions.

Out: the page with all tables, figures and sheets that it links to, all scores (as Parquet, a tenth of the CSV file),
verdicts on the findings, and how the language models that it pretrained were made, with their checksums. The folder is
replaced as a whole.

Example:
    python tools/publish_run.py --results results/demo --out published
"""

import shutil
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import read_json

FOLDERS = ("report", "tables", "figures", "plan")  # side by side as in the run, so that the page's links work
FILES = (
    "config.json",
    "findings.csv",
    "findings.json",
    "scores.parquet",
    "similarity.parquet",
    "distances.parquet",
    "coverage.csv",
)
MARK = "published.txt"  # only a folder that this program wrote is replaced
FIELDS = ["model", "objective", "parameters", "steps", "tokens_seen", "dev_loss", "seconds", "device", "recipe"]
FIELDS += ["sha256"]


def models(results: Path) -> pd.DataFrame:
    """A row for each language model that was pretrained in this run."""
    found = {file.parent.name: read_json(file) for file in sorted(results.glob("models/*/training.json"))}
    rows = [
        each
        | {"model": name, "steps": each["settings"]["steps"], "dev_loss": (each.get("dev") or [{}])[-1].get("loss")}
        for name, each in found.items()
    ]
    return pd.DataFrame(rows, columns=FIELDS, dtype=object)  # so that whole numbers stay whole


def gather(results: Path, out: Path) -> int:
    """Copy and write everything into an empty folder; says how many items there are."""
    for name in FILES:
        if (results / name).exists():
            shutil.copyfile(results / name, out / name)
    for name in FOLDERS:
        if (results / name).exists():
            # The page holds what tables have as JSON, and what a rehearsal foresees.
            page_only = shutil.ignore_patterns("table*.json", "real_run.json")
            shutil.copytree(results / name, out / name, copy_function=shutil.copyfile, ignore=page_only)
    models(results).to_csv(out / "models.csv", index=False)
    (out / MARK).write_text(
        "Written by tools/publish_run.py, which replaces this folder as a whole.\n", encoding="utf-8"
    )
    return len({file.with_suffix("") for name in FOLDERS[1:3] for file in (out / name).rglob("*.csv")})


def main() -> None:
    """Write beside the old folder, then take its place."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="results/<run>, finished or not")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write: docs/results/<run>")
    args = parser.parse_args()
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
