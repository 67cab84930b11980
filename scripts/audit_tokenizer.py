r"""Audit a model's vocabulary: how it cuts the words of each language.

In: a model folder and treebanks in CoNLL-U, named as LANG=FILE, English among them. Out: a CSV file with a row for each
language: words, `pieces` per word, and in percent the words with an `unknown` piece, those spelt in `bytes` (a piece is
less than one letter), and of the different pieces with a letter those `shared` with English.

Example:
    python scripts/audit_tokenizer.py --model resources/demo/models/mbert --out audit.csv \
        --texts en=results/demo/data/trees/en_pud/test.conllu ru=results/demo/data/trees/ru_pud/test.conllu
"""

import argparse
import csv
from pathlib import Path

from crossalign.engine.programs import language_of, named_sets
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic

COLUMNS = ("language", "words", "pieces", "unknown", "bytes", "shared")


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path, metavar="FOLDER", help="folder with tokenizer.json")
    parser.add_argument("--texts", required=True, nargs="+", metavar="[LANG=]FILE")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=f"CSV file: {','.join(COLUMNS)}")
    return parser.parse_args()


def main() -> None:
    """Cut the words of every language, then count."""
    args = parse_args()
    files = named_sets(args.texts, "--texts", language_of)
    if "en" not in files:
        raise UserError("--texts: en=FILE is missing, the language that pieces are shared with")

    from crossalign.engine.tokenizer import load_tokenizer
    from crossalign.engine.vocabulary import audit
    from crossalign.tasks.records import read_trees

    texts = {lang: [record["words"] for record in read_trees(file, parsed=False)] for lang, file in files.items()}
    with write_atomic(args.out) as stream:
        rows = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        rows.writeheader()
        for lang, counts in audit(load_tokenizer(args.model), texts, "en").items():
            rows.writerow({"language": lang} | {name: f"{number:.6g}" for name, number in counts.items()})


if __name__ == "__main__":
    run_main(main)
