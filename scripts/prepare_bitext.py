r"""Prepare a pool of sentence pairs: scored pairs in, the best of them, tokenised, out as tab-separated lines.

A corpus with fewer pairs than the pool has places gives all it has; the report says so. Pairs of `--format mix`, which
people have translated, have no score: all have 1, and those that are read first go before.

Example:
    python scripts/prepare_bitext.py --lang hi --pool 3000 --out pool.tsv \
        --source results/demo/downloads/bitext/wikimatrix/WikiMatrix.en-hi.tsv.gz
"""

from argparse import Namespace

from crossalign.data.bitext import Pool, read_scored
from crossalign.data.command import only_source, parser, positive, prepared
from crossalign.data.lines import Source
from crossalign.data.parallel import read_pairs
from crossalign.data.report import Report
from crossalign.data.text import tokeniser
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main


def parse_args() -> Namespace:
    """The command line."""
    args = parser(__doc__, lang="the other language; English stands first")
    args.add_argument("--format", choices=("wikimatrix", "mix"), default="wikimatrix")
    args.add_argument("--pool", type=positive, default=250_000, help="how many pairs to keep")
    args.add_argument("--max-words", type=positive, default=64, help="longest side, in words after tokenisation")
    return read_args(args)


def main() -> None:
    """Read, choose, write."""
    args = parse_args()
    report = Report()
    pool = Pool(args.pool, args.max_words, tokeniser("en"), tokeniser(args.lang), report)
    if args.format == "mix":
        for number, (english, other) in enumerate(read_pairs(args.source), 1):
            pool.add(number, "1.0", english, other)
    else:
        source = Source(only_source(args))
        with source.open() as stream:
            for row in read_scored(stream, source.name):
                pool.add(*row)
    rows = list(pool.rows())
    report.kept = len(rows)
    with prepared(args, report) as out:
        out.writelines("\t".join(row) + "\n" for row in rows)
        if rows:
            report.facts = {"best_score": float(rows[0][0]), "worst_score": float(rows[-1][0])}
            report.facts["pool_full"] = len(rows) == args.pool


if __name__ == "__main__":
    run_main(main)
