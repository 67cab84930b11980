"""Say what a run needs before it starts: models to train, disk, files to fetch, and under which terms.

`python scripts/plan.py [FILE …]` merges further config files over config.yaml, as Snakemake's --configfile does.
"""

import argparse
from pathlib import Path

from crossalign.catalog import Catalog, count
from crossalign.config import load
from crossalign.disk import model_disk, readable
from crossalign.embedding.placement import demand
from crossalign.errors import run_main
from crossalign.fetch.listing import licence_summary, missing
from crossalign.fetch.register import read_datasets, read_models

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("fine-tuning", "grid trial", "adjustment", "masked language modelling", "base model")


def table(catalog: Catalog) -> list[list[object]]:
    """Runs by paper; what an earlier paper has needed already is not counted again."""
    rows, seen = [], set()
    for paper in catalog.config["papers"]:
        items = [item for item in catalog.items if item.startswith(f"{paper}/")]
        new = catalog.runs(items) - seen
        seen |= new
        rows.append([paper, len(items), *(count(new)[kind] for kind in KINDS)])
    return [*rows, ["all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])]]


def main() -> None:
    """Print the plan."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="config files to merge over config.yaml")
    config = load(parser.parse_args().files)
    catalog = Catalog(config)
    print(f"Run '{config['run']}': models to make, each counted with the first paper that needs it\n")
    lines = [["paper", "items", *KINDS], *table(catalog)]
    widths = [max(len(str(cell)) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    models = read_models(ROOT / "resources" / "models.tsv")
    disk = model_disk(config, catalog.runs(), models)
    print(f"\nDisk for models (keep_models: {config['keep_models']}), about:\n")
    for kind, (number, size) in disk.items():
        print(f"{readable(size):>10}  {number} {kind}")
    if config.get("world"):
        print("\nNothing is downloaded: the demo world makes its own data.")
        return
    print("\nGPU memory for the vectors of models that one card of 24 GB may be too small for, in bf16\n")
    for name in catalog.models():
        need = demand(models[name])
        if need and need.memory > 8e9:
            cards = need.devices(24 * 10**9)
            print(f"{readable(need.memory):>10}  {name}: {cards} card{'s' * (cards > 1)}, or the rest in CPU memory")
    needed = [read_datasets(ROOT / "resources" / "datasets.tsv")[path] for path in catalog.files()]
    needed += [models[name] for name in catalog.models()]
    absent = missing(needed, config["downloads"]["folder"])
    print(f"\nTo download: {len(absent)} of {len(needed)} files and models\n")
    print(licence_summary(absent) if absent else "")


if __name__ == "__main__":
    run_main(main)
