r"""Train a language model, masked or causal, on prepared texts, from scratch or (--init) on from an existing model.

In: texts as NAME=FILE, one sentence a line; a name that comes again has several files. Out: a Hugging Face folder
(config.json, model.safetensors with the language-model head, tokenizer.json) and training.json beside it.
Continues from the checkpoint, unless other code, settings or texts made it; SIGTERM writes one and ends
with status 75. On several GPUs of one machine: torchrun --nproc-per-node N scripts/pretrain.py ...

Example:
    python scripts/pretrain.py --init resources/demo/models/mbert --block 64 --batch 4 --epochs 1 --seed 1 \
        --texts wo=results/demo/data/text/wikipedia_wo/train.txt --dev wo=results/demo/data/text/wikipedia_wo/dev.txt \
        --learning-rate 1e-3 --out adapted
"""

import argparse
import logging
from pathlib import Path

from crossalign.engine.programs import add_precision, add_run, add_settings, given, named_files
from crossalign.runtime.errors import UserError, run_main

SETTINGS = {
    "steps": (int, "steps of training"),
    "batch": (int, "blocks per step"),
    "block": (int, "tokens per block"),
    "learning_rate": (float, "highest learning rate"),
    "warmup": (float, "share of the steps over which the rate rises"),
    "decay": (str, "linear or constant"),
    "weight_decay": (float, "of matrices"),
    "beta1": (float, "of AdamW"),
    "beta2": (float, "of AdamW"),
    "eps": (float, "of AdamW"),
    "clip": (float, "largest norm of the gradient, 0: none"),
    "hidden_share": (float, "share of tokens to predict"),
    "exponent": (float, "languages are drawn by their share of the tokens to this power"),
    "dropout": (float, "while pretraining; the model's own if not given"),
    "attention_dropout": (float, "of attention while pretraining; --dropout if not given"),
    "dev_every": (int, "steps between two looks at the dev loss; a twentieth of all if not given"),
    "selection": (str, "last, or best: the weights at the lowest dev loss"),
}
SHAPE = {
    "hidden": (int, "neurons per layer"),
    "layers": (int, "number of layers"),
    "heads": (int, "attention heads"),
    "intermediate": (int, "neurons inside the feed-forward block"),
    "positions": (int, "longest sequence"),
    "initializer_range": (float, "standard deviation of new weights"),
    "position_waves": (float, "height of the sine waves that position vectors begin as; 0 or not given: at random"),
}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", required=True, nargs="+", metavar="NAME=FILE")
    parser.add_argument("--dev", nargs="+", default=[], metavar="NAME=FILE", help="texts to measure the loss on")
    parser.add_argument("--init", type=Path, help="model to go on from; its shape and its tokenizer are kept")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of a new model")
    parser.add_argument("--objective", help="mlm or clm (causal); if not given, what the model is made for, else mlm")
    parser.add_argument("--norm", default="post", help="post, pre or normformer")
    parser.add_argument(
        "--family", help="bert, xlm-roberta, roberta-prelayernorm, normformer, xglm; by norm and objective if not given"
    )
    add_settings(parser, SHAPE)
    parser.add_argument("--residual-scaling", action="store_true", default=None, help="NormFormer with its ResScale")
    add_settings(parser, SETTINGS)
    parser.add_argument("--tuning-dropout", type=float, help="a new model's own, for later; --dropout if not given")
    parser.add_argument("--epochs", type=float, help="in place of --steps: times that the texts are gone through")
    parser.add_argument("--store", default="fp32", choices=["fp32", "bf16"], help="precision of the written matrices")
    parser.add_argument("--tokens", type=Path, help="folder for the encoded texts, to share them between runs")
    add_run(parser)
    add_precision(parser)
    return parser.parse_args()


def main() -> None:
    """Encode, train, write."""
    args = parse_args()
    if (args.steps is None) == (args.epochs is None):
        raise UserError("give either --steps or --epochs")

    from crossalign.engine.checkpoints import Saving, requeued
    from crossalign.engine.device import choose_device, choose_precision, join_team
    from crossalign.engine.pretrain import PretrainSettings
    from crossalign.engine.pretrain_job import Job, pretrain, starting_point

    team, name = join_team(args.device)
    device = choose_device(name)
    if not team.first:
        logging.getLogger().setLevel(logging.WARNING)
    settings = PretrainSettings(
        **{"steps": 1, **given(args, SETTINGS)}, seed=args.seed, precision=choose_precision(args.precision, device)
    )
    shape = given(args, [*SHAPE, "residual_scaling"])
    # A new model's own dropout, for later: what is given for that, or what it is pretrained with.
    if args.tuning_dropout is not None:
        shape["dropout"] = args.tuning_dropout
    elif args.init is None:
        shape |= given(args, ["dropout", "attention_dropout"])
    start = starting_point(args.init, args.tokenizer, args.norm, args.family, shape, args.seed, args.objective)
    texts, dev = named_files(args.texts, "--texts"), named_files(args.dev, "--dev")
    job = Job(
        texts, settings, args.out, args.tokens, args.checkpoints, args.code_hash, args.store,
        Saving(steps=args.save_steps), dev, args.epochs,
    )  # fmt: skip
    try:
        with requeued(tell=team.first):
            pretrain(start, job, device, team)
    finally:
        team.leave()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
