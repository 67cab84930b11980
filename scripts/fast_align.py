"""Align words like fast_align, with its flags for training and its output, deterministic and on all cores.

In: lines `source words ||| target words`. Out: one line of links `i-j` per pair, on standard output or in a file that
appears only when it is complete. `--symmetrise METHOD` runs both directions and prints the combined links.

Example:
    python scripts/fast_align.py -i bitext.txt -d -o -v --symmetrise grow-diag-final-and --out links.pharaoh
"""

import argparse
import sys
from collections.abc import Iterator

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic


def parse_args() -> argparse.Namespace:
    """fast_align's flags under fast_align's names, then ours."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form, allow_abbrev=False)
    flag = {"action": "store_true"}
    theirs = parser.add_argument_group("fast_align's flags")
    theirs.add_argument("-i", "--input", required=True, help="bitext; - reads standard input")
    theirs.add_argument("-d", "--favor_diagonal", **flag, help="prefer links near the diagonal")
    theirs.add_argument("-o", "--optimize_tension", **flag, help="learn how near (from the second iteration on)")
    theirs.add_argument("-v", "--variational_bayes", **flag, help="Dirichlet prior on the translation probabilities")
    theirs.add_argument("-r", "--reverse", **flag, help="target predicts source; links stay source-target")
    theirs.add_argument("-N", "--no_null_word", **flag, help="no null word: every word gets a link")
    theirs.add_argument("-I", "--iterations", type=int, default=5, help="iterations (default 5)")
    theirs.add_argument("-q", "--p0", type=float, default=0.08, help="probability of no link (default 0.08)")
    theirs.add_argument("-a", "--alpha", type=float, default=0.01, help="the prior's concentration (default 0.01)")
    theirs.add_argument("-T", "--diagonal_tension", type=float, help="first or fixed tension (default 4); implies -d")
    theirs.add_argument("-b", "--thread_buffer_size", type=int, help="accepted and ignored")
    ours = parser.add_argument_group("more")
    ours.add_argument("--symmetrise", metavar="METHOD", help="intersection, union, grow-diag[-final[-and]]")
    ours.add_argument("--threads", type=int, help="threads (default: all cores); the result is the same for any number")
    ours.add_argument("--memory", type=float, default=1024, metavar="MB", help="for the cells in memory (default 1024)")
    ours.add_argument("--max-words", type=int, default=1000, help="longer lines get no links (default 1000)")
    ours.add_argument("--out", metavar="FILE", help="write the links here instead of to standard output")
    args = parser.parse_args()
    if args.symmetrise and args.reverse:
        raise UserError("--symmetrise runs both directions; it does not go with -r")
    if args.threads is not None and args.threads < 1:
        raise UserError(f"--threads {args.threads}: at least 1")
    return args


def main() -> None:
    """Read, align, write."""
    args = parse_args()
    # Imported late: --help and mistakes in the flags need no compiler.
    from crossalign.alignment.bitext import read_bitext_file
    from crossalign.alignment.job import align_direction, align_symmetrised, check, say_skipped
    from crossalign.alignment.kernels import Workers
    from crossalign.alignment.links import method_number, print_links
    from crossalign.alignment.model import Options

    options = Options(
        iterations=args.iterations,
        favour_diagonal=args.favor_diagonal or args.diagonal_tension is not None,
        tension=4.0 if args.diagonal_tension is None else args.diagonal_tension,
        optimise_tension=args.optimize_tension,
        variational_bayes=args.variational_bayes,
        alpha=args.alpha,
        p0=args.p0,
        use_null=not args.no_null_word,
    )
    check(options)
    if args.symmetrise:
        method_number(args.symmetrise)
    bitext = read_bitext_file(args.input, args.max_words)
    say_skipped(bitext, args.input)
    with Workers(args.threads) as workers:
        if args.symmetrise:
            links = align_symmetrised(bitext, options, workers, args.symmetrise, args.memory)
        else:
            links = align_direction(bitext, options, workers, args.reverse, args.memory)
    write(print_links(links), args.out)


def write(pieces: Iterator[bytes], out: str | None) -> None:
    """To standard output, or to a file that appears complete or not at all."""
    if out is not None:
        with write_atomic(out, "wb") as stream:
            stream.writelines(pieces)
        return
    sys.stdout.buffer.writelines(pieces)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    run_main(main)
