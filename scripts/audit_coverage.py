r"""Say how well a model's vocabulary covers the raw text of languages that the model has not seen.

In: a model folder and prepared texts, named as LANG=FILE. Out: a CSV file with a row for each language: words, `pieces`
per word, in percent the words with an `unknown` piece, the letters, how many of them are `lacking`, and which.
Words are what spaces part and has a letter; letters are those that occur at least five times.

Example:
    python scripts/audit_coverage.py --model resources/demo/models/mbert --out coverage.csv \
        --texts ug=results/demo/data/text/wikipedia_ug/train.txt
"""

import argparse
import csv
from itertools import islice
from pathlib import Path

from crossalign.engine.programs import language_of, named_sets
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic

LINES = 20_000  # of each text at most: more would not change a percentage that anyone reads
COLUMNS = ("language", "words", "pieces", "unknown", "letters", "lacking", "which")


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path, metavar="FOLDER", help="folder with tokenizer.json")
    parser.add_argument("--texts", required=True, nargs="+", metavar="[LANG=]FILE")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=f"CSV file: {','.join(COLUMNS)}")
    return parser.parse_args()


def words_of(file: Path) -> list[list[str]]:
    """The words of each line; numbers and punctuation that stand alone are none."""
    with file.open(encoding="utf-8") as stream:
        return [[word for word in line.split() if any(map(str.isalpha, word))] for line in islice(stream, LINES)]


def main() -> None:
    """Cut the words of every language, then count."""
    args = parse_args()

    from crossalign.engine.tokenizer import load_tokenizer
    from crossalign.engine.vocabulary import coverage

    tokenizer = load_tokenizer(args.model)
    with write_atomic(args.out) as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        for lang, file in named_sets(args.texts, "--texts", language_of).items():
            words = words_of(file)
            if not any(words):
                raise UserError(f"{file}: no words in it")
            counts, lacking = coverage(tokenizer, words)
            rows.writerow([lang, *(f"{number:.6g}" for number in counts.values()), len(lacking), " ".join(lacking)])


if __name__ == "__main__":
    run_main(main)
