r"""Embed parallel sentences: the vectors of all layers, for all languages, with one model.

In: a model folder (any text encoder or decoder of the library, or one of the project's own), perhaps a tuned model to
be laid over it, and text with one sentence a line as LANG=FILE. Out: DIR/LANG.npy, fp32, layers x sentences x neurons;
layer 0 is the output of the embeddings. Beside it DIR/LANG.lengths.npy, int32: how many tokens the mean of each
sentence runs over.

Example:
    python scripts/embed_sentences.py --model resources/demo/models/mbert --special-tokens include --out embeddings \
        --text en=results/demo/data/parallel/pud/en.txt de=results/demo/data/parallel/pud/de.txt
"""

import argparse
import logging
from pathlib import Path

from crossalign.engine.programs import add_backend, named_sets
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
    parser.add_argument("--text", required=True, nargs="+", metavar="[LANG=]FILE")
    parser.add_argument("--max-length", type=int, default=200, help="tokens per sentence (default: 200)")
    parser.add_argument(
        "--special-tokens", choices=("include", "exclude"), default="exclude", help="in the mean (default: exclude)"
    )
    parser.add_argument(
        "--last-layer", choices=("mean", "cls"), default="mean", help="cls: the first token's vector (default: mean)"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda (all GPUs if one is too small), cuda:1, ...")
    parser.add_argument("--precision", default="auto", help="auto (bf16 on GPUs), fp32 or bf16")
    add_backend(parser)
    parser.add_argument("--token-budget", type=int, help="tokens per batch")
    return read_args(parser)


def main() -> None:
    """Load the model, embed every file."""
    args = parse_args()
    files = named_sets(args.text, "--text", lambda file: file.stem)
    if args.token_budget is not None and args.token_budget < 1:
        raise UserError(f"--token-budget {args.token_budget}: at least 1")

    from crossalign.embedding.model import is_large, load_model
    from crossalign.embedding.sentences import Options, embed_files
    from crossalign.engine.device import choose_device

    options = Options(args.max_length, args.special_tokens, args.last_layer)
    device = choose_device(args.device, alone=is_large(args.model))
    model = load_model(args.model, device, args.precision, args.tuned, args.token_budget, args.backend)
    for lang, counts in embed_files(model, files, args.out, options).items():
        log.info("%s: %d sentences, %d cut", lang, counts.sentences, counts.cut)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
