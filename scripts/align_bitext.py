"""Link the words of a pool of sentence pairs.

In: a pool, `score TAB English words TAB other words` per line. Out: one line of links `i-j` per line of the pool,
English position first, counted from 0; empty where nothing is linked. With --pieces the positions are those of the
word pieces of a tokenizer, without special tokens.

Example:
    python scripts/align_bitext.py results/demo/data/bitext/wikimatrix_hi/pool.tsv --out links.pharaoh --threads 2
"""

import argparse
import signal
import sys
from pathlib import Path

from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main
from crossalign.runtime.files import write_atomic


def parse_args() -> argparse.Namespace:
    """The pool, the program and the output."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form, allow_abbrev=False)
    parser.add_argument("pool", type=Path, help="score TAB English words TAB other words")
    parser.add_argument(
        "--program", choices=("builtin", "fast_align"), default="builtin", help="fast_align is looked for on PATH"
    )
    parser.add_argument("--symmetrise", default="intersection", metavar="METHOD")
    parser.add_argument("--threads", type=int, default=1, help="of the builtin program")
    parser.add_argument(
        "--pieces",
        type=Path,
        nargs="?",
        metavar="FOLDER",
        help="that of a tokenizer.json whose word pieces are linked",
    )
    parser.add_argument("--max-words", type=int, default=1000, help="longer lines get no links")
    parser.add_argument("--out", type=Path, required=True, help="the links")
    return read_args(parser)


def main() -> None:
    """Read the pool, align, write."""
    args = parse_args()
    from crossalign.alignment.bitext import bitext_lines, in_pieces, read_bitext, read_pool
    from crossalign.alignment.job import align_symmetrised, original_links, say_skipped
    from crossalign.alignment.kernels import Workers
    from crossalign.alignment.links import method_number, print_links
    from crossalign.alignment.model import Options

    method_number(args.symmetrise)
    # Turned into an exception, the signal of a scheduler also ends the program we started and clears its folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pairs = read_pool(args.pool)
    if args.pieces is not None:
        pairs = in_pieces(pairs, args.pieces / "tokenizer.json")
    bitext = read_bitext(bitext_lines(pairs), str(args.pool), args.max_words)
    say_skipped(bitext, str(args.pool))
    if args.program == "fast_align":
        links = original_links(bitext, args.symmetrise)
    else:
        options = Options(favour_diagonal=True, optimise_tension=True, variational_bayes=True)
        with Workers(args.threads) as workers:
            links = align_symmetrised(bitext, options, workers, args.symmetrise)
    with write_atomic(args.out, "wb") as stream:
        stream.writelines(print_links(links))


if __name__ == "__main__":
    run_main(main)
