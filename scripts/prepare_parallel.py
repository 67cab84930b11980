r"""Prepare one language of a parallel set: line n is the same sentence in all languages.

pud takes the text lines of a parallel treebank, extension the hypotheses of an XNLI extension file, detokenised, and
xnli15 a column of the 15-way corpus.

Example:
    python scripts/prepare_parallel.py --format pud --lang ar --out ar.txt \
        --source results/demo/downloads/ud/ar_pud/test.conllu
"""

from argparse import Namespace

from crossalign.data.command import only_source, parser, prepared
from crossalign.data.lines import Source
from crossalign.data.parallel import first_rows, read_column, read_extension, read_pud
from crossalign.data.report import Report
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main

READERS = {"pud": read_pud, "extension": read_extension, "xnli15": read_column}
# How many rows are taken unless --rows says otherwise; 0 is all.
ROWS = {"pud": 0, "extension": 10_000, "xnli15": 0}
MEMBERS = {"xnli15": "XNLI-15way/xnli.15way.orig.tsv"}


def parse_args() -> Namespace:
    """The command line."""
    args = parser(__doc__, sorted(READERS), lang="")
    args.add_argument(
        "--rows", type=int, help="take the first so many (0: all; default: 10000 for extension, else all)"
    )
    return read_args(args)


def main() -> None:
    """Read, cut, write."""
    args = parse_args()
    rows = ROWS[args.format] if args.rows is None else args.rows
    if rows < 0:
        raise UserError(f"--rows {rows}: a number of rows, or 0 for all")
    report = Report()
    source = Source(only_source(args), MEMBERS.get(args.format))
    with source.open() as stream, prepared(args, report) as out:
        sentences = READERS[args.format](stream, source.name, args.lang)
        out.writelines(sentence + "\n" for sentence in first_rows(sentences, rows, source.name, report))


if __name__ == "__main__":
    run_main(main)
