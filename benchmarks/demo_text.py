"""Prepare what benchmarks/demo_models.py needs on a machine without the workflow's environment.

Writes into one folder the demo world's running text (cleaned, one sentence a line), its English treebank and its
parallel treebanks, the vocabularies that resources/demo/models.yaml asks for, and that file as JSON.

Usage: python benchmarks/demo_text.py --out FOLDER [--sentences N] [--world FOLDER]
--world: one that make_world.py made with --scale pretraining.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import yaml

from crossalign.data.conllu import read_sentences, write_sentences
from crossalign.data.lines import Source
from crossalign.data.report import Names, Report
from crossalign.data.text import Cleaning, clean_sentences, read_articles, read_lines
from crossalign.models.vocabulary import train_vocabulary
from crossalign.world.settings import load_settings
from crossalign.world.world import default_jobs, write_world

ROOT = Path(__file__).resolve().parent.parent
WORLD = ROOT / "resources/demo/world.yaml"
TREES = [("en_ewt", "train"), ("en_ewt", "dev"), ("en_ewt", "test")]


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--world", type=Path, help="a world that is there already; made on the spot if not given")
    parser.add_argument("--sentences", type=int, default=0, help="at most so many of each text (0: all)")
    return parser.parse_args()


def expand(plan: dict, world: dict) -> dict[str, list[str]]:
    """For each name of `texts` in models.yaml the files (kind/language) it stands for."""
    texts = {}
    for name, kinds in plan["texts"].items():
        texts[name] = [
            f"{kind}/{lang}" for kind, langs in kinds.items() for lang in (world["seen"] if langs == "seen" else langs)
        ]
    return texts


def packed(path: Path):
    """A compressed text file to write, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return gzip.GzipFile(path, "wb", compresslevel=9, mtime=0)


def write_text(source: Path, target: Path, most: int) -> int:
    """Clean one text of the world."""
    report = Report()
    raw = read_articles(source, report) if source.suffix == ".parquet" else read_lines(Source(source).lines(), report)
    with packed(target) as stream:
        for sentence in clean_sentences(raw, Cleaning(max_sentences=most), report):
            stream.write(f"{sentence}\n".encode())
    return report.kept


def lines_in(files: list[Path]) -> Iterator[str]:
    """The lines of compressed texts."""
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8", newline="\n") as stream:
            yield from stream


def write_trees(source: Path, target: Path) -> int:
    """Syntactic words only, as the workflow prepares treebanks."""
    report = Report()
    named = Source(source)
    with named.open() as stream:
        sentences = list(read_sentences(stream, named.name, report, False, False, Names(report)))
    with tempfile.TemporaryFile("w+", encoding="utf-8") as plain:
        write_sentences(sentences, plain)
        plain.seek(0)
        with packed(target) as stream:
            stream.write(plain.read().encode())
    return len(sentences)


def main() -> None:
    """Make the world, clean it, pack it."""
    args = parse_args()
    world = yaml.safe_load(WORLD.read_text(encoding="utf-8"))
    plan = yaml.safe_load((ROOT / "resources/demo/models.yaml").read_text(encoding="utf-8"))
    plan["texts"] = expand(plan, world)
    pud = [(f"{lang}_pud", "test") for lang in world["pud"]["languages"]]
    with tempfile.TemporaryDirectory() as folder:
        place = args.world or Path(folder)
        if args.world is None:
            wanted = ["text/wikipedia/", "text/cc100/", "ud/en_ewt/", *(f"ud/{name}/" for name, _ in pud)]
            write_world(load_settings(WORLD), place, wanted, default_jobs(), "pretraining")
        for name in sorted({text for texts in plan["texts"].values() for text in texts}):
            ending = ".parquet" if name.startswith("wikipedia/") else ".txt.xz"
            target = args.out / f"{name.replace('/', '-')}.txt.gz"
            print(f"{target}: {write_text(place / 'text' / (name + ending), target, args.sentences)} sentences")
        for treebank, split in TREES + pud:
            write_trees(place / "ud" / treebank / f"{split}.conllu", args.out / f"{treebank}-{split}.conllu.gz")
    for name, wanted in plan["tokenizers"].items():
        files = [args.out / f"{text.replace('/', '-')}.txt.gz" for text in plan["texts"][wanted["texts"]]]
        tokenizer = train_vocabulary(lambda files=files: lines_in(files), wanted["size"], wanted["style"])
        tokenizer.save(str(args.out / f"{name}.tokenizer.json"), pretty=False)
        print(f"{name}: {tokenizer.get_vocab_size()} pieces")
    (args.out / "models.json").write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in args.out.iterdir())
    print(f"{args.out}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
