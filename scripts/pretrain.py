r"""Train a language model, masked or causal, on prepared texts, from scratch or (--init) on from an existing model.

In: texts as NAME=FILE, one sentence a line; a name that comes again has several files. Out: a Hugging Face folder
(config.json, model.safetensors with the language-model head, tokenizer.json) and training.json beside it.
Continues from the checkpoint, unless other code, settings or texts made it; SIGTERM writes one and ends
with status 75.

Example:
    python scripts/pretrain.py --init resources/demo/models/mbert --out adapted \
        --texts wo=results/demo/data/text/wikipedia_wo/train.txt --dev wo=results/demo/data/text/wikipedia_wo/dev.txt \
        --settings '{"epochs": 1, "block": 64, "batch": 4, "learning_rate": 1e-3}'
"""

import argparse
import logging
from pathlib import Path

from crossalign.engine.programs import add_precision, add_run, language_of, named_files
from crossalign.engine.settings import ModelShape, PretrainOptions, PretrainSettings, checked, part
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", required=True, nargs="+", metavar="[NAME=]FILE")
    parser.add_argument("--dev", nargs="*", default=[], metavar="[NAME=]FILE", help="texts to measure the loss on")
    parser.add_argument(
        "--init", type=Path, nargs="?", help="model to go on from; its shape and its tokenizer are kept"
    )
    parser.add_argument("--tokenizer", type=Path, nargs="?", help="tokenizer.json of a new model, or its folder")
    parser.add_argument(
        "--family", help="bert, xlm-roberta, roberta-prelayernorm, normformer, xglm; by norm and objective if not given"
    )
    parser.add_argument("--tokens", type=Path, help="folder for the encoded texts, to share them between runs")
    add_run(parser)
    add_precision(parser)
    return read_args(parser, settings=True)


def main() -> None:
    """Encode, train, write."""
    args = parse_args()
    given = checked(args.settings, ModelShape, PretrainSettings, PretrainOptions, place=args.place)
    if (given.get("steps") is None) == (given.get("epochs") is None):
        raise UserError("one of the settings steps and epochs is needed")

    from crossalign.engine.checkpoints import Saving, requeued
    from crossalign.engine.device import choose_device, choose_precision
    from crossalign.engine.pretrain_job import Job, pretrain, starting_point

    device = choose_device(args.device, alone=True)
    precision = choose_precision(args.precision, device)
    settings = PretrainSettings(**part(PretrainSettings, given), seed=args.seed, precision=precision)
    further = PretrainOptions(**part(PretrainOptions, given))
    shape = part(ModelShape, given)
    objective, norm = shape.pop("objective", None), shape.pop("norm", "post")
    # A new model's own dropout, for later: what is given for that, or what it is pretrained with.
    if further.tuning_dropout is not None:
        shape["dropout"] = further.tuning_dropout
    elif args.init is None:
        own = {"dropout": settings.dropout, "attention_dropout": settings.attention_dropout}
        shape |= {name: value for name, value in own.items() if value is not None}
    tokenizer = args.tokenizer
    if tokenizer and tokenizer.is_dir():
        tokenizer = tokenizer / "tokenizer.json"
    start = starting_point(args.init, tokenizer, norm, args.family, shape, args.seed, objective)
    texts, dev = (
        named_files(files, option, language_of) for files, option in ((args.texts, "--texts"), (args.dev, "--dev"))
    )
    job = Job(
        texts, settings, args.out, args.tokens, args.checkpoints, args.code_hash, further.store,
        Saving(steps=args.save_steps, rehearse=args.rehearse), dev, further.epochs,
    )  # fmt: skip
    with requeued():
        pretrain(start, job, device)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
