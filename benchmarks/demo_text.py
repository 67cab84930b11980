"""Prepare what benchmarks/demo_models.py needs on a machine without the workflow's environment.

Writes into one folder the demo world's running text (cleaned, one sentence a line), its English treebank, its
parallel sets (treebanks, premises of the extended XNLI), the vocabularies that resources/demo/models.yaml asks for, and
that file as JSON.

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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import yaml
from tools.demo_models import clean_text, read_plan

from crossalign.data.conllu import read_sentences, write_sentences
from crossalign.data.lines import Source
from crossalign.data.report import Names, Report
from crossalign.engine.tokenizer import train_vocabulary
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


def packed(path: Path):
    """A compressed text file to write, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return gzip.GzipFile(path, "wb", compresslevel=9, mtime=0)


def write_text(world: Path, name: str, target: Path, most: int) -> int:
    """Clean one text of the world; gives the number of sentences."""
    count = 0
    with packed(target) as stream:
        for sentence in clean_text(world, name, most):
            stream.write(f"{sentence}\n".encode())
            count += 1
    return count


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


def write_premises(source: Path, target: Path) -> None:
    """The premises of one language of the extended XNLI: line n is the same sentence in all of them."""
    with Source(source).open() as stream, packed(target) as out:
        next(stream)
        for line in stream:
            out.write(f"{line.partition(chr(9))[0]}\n".encode())


def main() -> None:
    """Make the world, clean it, pack it."""
    args = parse_args()
    world = yaml.safe_load(WORLD.read_text(encoding="utf-8"))
    plan = read_plan(ROOT / "resources/demo/models.yaml", WORLD)
    extension = world["nli"]["extension"]["languages"]
    pud = [(f"{lang}_pud", "test") for lang in world["pud"]["languages"]]
    with tempfile.TemporaryDirectory() as folder:
        place = args.world or Path(folder)
        if args.world is None:
            wanted = ["text/wikipedia/", "text/cc100/", "nli/xnli_extension/", "ud/en_ewt/"]
            wanted += [f"ud/{name}/" for name, _ in pud]
            write_world(load_settings(WORLD), place, wanted, default_jobs(), "pretraining")
        for name in sorted({text for texts in plan["texts"].values() for text in texts}):
            target = args.out / f"{name.replace('/', '-')}.txt.gz"
            print(f"{target}: {write_text(place, name, target, args.sentences)} sentences")
        for treebank, split in TREES + pud:
            write_trees(place / "ud" / treebank / f"{split}.conllu", args.out / f"{treebank}-{split}.conllu.gz")
        for lang in extension:
            write_premises(place / "nli/xnli_extension" / f"{lang}.tsv", args.out / f"xnliext-{lang}.txt.gz")
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
