r"""Vectors of related and unrelated word pairs, for the distances between them.

In: a model folder, perhaps a tuned model to be laid over it, a pool (score TAB English words TAB other words) and its
links (i-j, English first). Related pairs are linked words; unrelated pairs are the same words, each English one with
the other one's word from another sentence pair. Out: two arrays of pairs x 2 x neurons (.npy, fp32).

Example:
    python scripts/embed_words.py --model resources/demo/models/mbert --pairs 300 \
        --pool results/demo/data/bitext/wikimatrix_hi/pool.tsv --links results/demo/links/wikimatrix_hi/pool.pharaoh \
        --related related.npy --unrelated unrelated.npy
"""

import argparse
import logging
from pathlib import Path

from crossalign.engine.programs import add_backend
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main

log = logging.getLogger("embed")


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path, metavar="FOLDER")
    parser.add_argument(
        "--tuned", type=Path, nargs="?", metavar="DIR", help="a tuned model; --model is what it was tuned from"
    )
    parser.add_argument("--pool", required=True, type=Path, help="score TAB English words TAB other words")
    parser.add_argument("--links", required=True, type=Path, help="one line of links per line of the pool")
    parser.add_argument(
        "--skip-sample", type=int, metavar="N", help="leave out the lines that a model adjusted on N pairs has seen"
    )
    parser.add_argument("--skip-seeds", type=int, nargs="+", default=[1], help="seeds of those models (default: 1)")
    parser.add_argument("--pairs", type=int, default=10000, help="of each kind (default: 10000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layer", type=int, help="0: embeddings (default: the last layer)")
    parser.add_argument("--max-length", type=int, help="tokens per sentence (default: as many as the model takes)")
    parser.add_argument("--related", required=True, type=Path, metavar="FILE", help="written: vectors of linked words")
    parser.add_argument("--unrelated", required=True, type=Path, metavar="FILE", help="written: vectors of other words")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda (all GPUs if one is too small), cuda:1, ...")
    parser.add_argument("--precision", default="auto", help="auto (bf16 on GPUs), fp32 or bf16")
    add_backend(parser)
    parser.add_argument("--token-budget", type=int, help="tokens per batch")
    return read_args(parser)


def main() -> None:
    """Choose the pairs, embed their sentences, write the vectors."""
    args = parse_args()
    if args.token_budget is not None and args.token_budget < 1:
        raise UserError(f"--token-budget {args.token_budget}: at least 1")

    from crossalign.embedding.model import is_large, load_model
    from crossalign.embedding.states import write_array
    from crossalign.embedding.words import embed_pairs, sample_pairs
    from crossalign.engine.device import choose_device

    device = choose_device(args.device, alone=is_large(args.model))
    seen = [(args.skip_sample, seed) for seed in args.skip_seeds] if args.skip_sample else []
    pairs = sample_pairs(args.pool, args.links, args.pairs, args.seed, seen)
    model = load_model(args.model, device, args.precision, args.tuned, args.token_budget, args.backend)
    related, unrelated = embed_pairs(model, pairs, args.seed, args.layer, args.max_length)
    write_array(args.related, related)
    write_array(args.unrelated, unrelated)
    log.info("%d pairs of %d lines", len(related), len({pair.line for pair in pairs}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
