r"""Adjust a model on word-linked sentence pairs: pull linked words together, hold English words where they were.

Reads a model folder, a pool of sentence pairs and its links; writes a model folder to OUT (config.json,
model.safetensors, tokenizer.json) and OUT/training.json. Goes on from the newest checkpoint, unless other code
wrote it. SIGTERM saves a checkpoint and ends with status 75, which asks to be started again.

Example:
    python scripts/adjust.py --model resources/demo/models/mbert --settings '{"pairs": 1000, "tokens": "cls"}' \
        --bitext results/demo/data/bitext/wikimatrix_hi/pool.tsv --links results/demo/links/wikimatrix_hi/pool.pharaoh \
        --out adjusted
"""

import argparse
import hashlib
import logging
import time
from pathlib import Path

from crossalign.engine.identity import folder_identity
from crossalign.engine.programs import add_backend, add_precision, add_run, circumstances
from crossalign.engine.settings import AdjustmentSettings, checked
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path, help="folder with config.json, safetensors, tokenizer")
    parser.add_argument("--bitext", required=True, type=Path, help="score TAB English words TAB other words")
    parser.add_argument("--links", required=True, type=Path, help="a line of links 'i-j' for each line of the pool")
    add_run(parser)
    add_precision(parser)
    add_backend(parser)
    return read_args(parser, settings=True)


def main() -> None:
    """Adjust and write the result."""
    args = parse_args()
    started = time.monotonic()

    from crossalign.engine.adjust import Adjusting
    from crossalign.engine.checkpoints import Saving, requeued
    from crossalign.engine.device import choose_device, choose_precision
    from crossalign.engine.folders import load_encoder, save_encoder
    from crossalign.engine.pairs import read_sample
    from crossalign.runtime.files import write_json

    device = choose_device(args.device)
    given = checked(args.settings, AdjustmentSettings, place=args.place)
    settings = AdjustmentSettings(**given, seed=args.seed, precision=choose_precision(args.precision, device))
    sample = read_sample(args.bitext, args.links, settings.pairs, settings.seed)
    encoder, tokenizer = load_encoder(args.model, args.backend)
    identity = folder_identity(args.model)
    adjusting = Adjusting(
        encoder, tokenizer, sample, settings, device, args.checkpoints, args.code_hash,
        Saving(steps=args.save_steps, rehearse=args.rehearse), identity,
    )  # fmt: skip
    with requeued():
        encoder = adjusting.run()
    save_encoder(args.out, encoder, tokenizer)
    report = {
        "recipe": args.code_hash,
        "seed": args.seed,
        "backend": encoder.backend,
        "settings": settings.model_dump(),
        "inputs": {"model": identity, "bitext": _sha256(args.bitext), "links": _sha256(args.links)},
        "sentence_pairs": adjusting.account,
        "steps": adjusting.progress.step,
        "loss": adjusting.curve(points=50, digits=6),
        "original_vectors": "computed once" if adjusting.frozen.table is not None else "computed at each step",
        **circumstances(adjusting.progress, device, started),
    }
    write_json(args.out / "training.json", report)
    adjusting.checkpoints.remove()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
