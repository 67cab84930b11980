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
import tempfile
from pathlib import Path

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic


def parse_args() -> argparse.Namespace:
    """The pool, the program and the output."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form, allow_abbrev=False)
    parser.add_argument("pool", type=Path, help="score TAB English words TAB other words")
    parser.add_argument("--program", default="builtin", help="builtin, fast_align or eflomal")
    parser.add_argument("--path", help="the program, or its folder, where it is not on PATH")
    parser.add_argument("--symmetrise", default="intersection", metavar="METHOD")
    parser.add_argument("--threads", type=int, default=1, help="of the builtin program; the others set their own")
    parser.add_argument("--pieces", type=Path, metavar="TOKENIZER.json", help="link word pieces instead of words")
    parser.add_argument("--max-words", type=int, default=1000, help="longer lines get no links")
    parser.add_argument("--out", type=Path, required=True, help="the links")
    return parser.parse_args()


def main() -> None:
    """Write the bitext, run the program, check and write its links."""
    args = parse_args()
    from crossalign.alignment.bitext import in_pieces, read_pool, write_bitext
    from crossalign.alignment.external import PROGRAMS, align, spread
    from crossalign.alignment.links import method_number, print_links

    if args.program not in PROGRAMS:
        raise UserError(f"no alignment program is called {args.program!r}; choose one of {', '.join(PROGRAMS)}")
    method_number(args.symmetrise)
    # Turned into an exception, the signal of a scheduler also ends the program we started and clears the work folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="align-") as folder:
        bitext = Path(folder) / "bitext"
        pairs = read_pool(args.pool)
        if args.pieces is not None:
            pairs = in_pieces(pairs, args.pieces)
        lengths = write_bitext(pairs, bitext, str(args.pool), args.max_words)
        links = align(args.program, args.path, bitext, args.symmetrise, args.threads, lengths)
        if left_out := lengths.lines - len(lengths.numbers):
            print(
                f"warning: {left_out} lines without words or with more than {args.max_words}: no links", file=sys.stderr
            )
        with write_atomic(args.out, "wb") as stream:
            stream.writelines(print_links(spread(links, lengths)))


if __name__ == "__main__":
    run_main(main)
