"""Masked-language-model pretraining of an XLM-R-base-size model: our engine against transformers.Trainer, in one run.

Both train the same shape (12 layers, 768 neurons, vocabulary 250,002, dropout 0.1) from scratch on random token ids in
blocks of 128 and of 512 tokens, in bf16 with fp32 weights, with AdamW and clipping, in batches of the same size. The
library needs memory for the scores of every token, so it takes its batch in pieces (gradient accumulation), as large as
fit; ours computes scores for the hidden 15 % only, which is all that the loss sees.

Model-FLOP utilisation = FLOPs that the model needs per second / 989e12, the dense bf16 peak of an H200 (H100). Counted:
6 x weights of the layers' products x tokens, 12 x layers x neurons x length x tokens for attention, and
6 x (neurons^2 + neurons x vocabulary) x hidden tokens for the head; nothing for norms, softmax, dropout, the optimiser,
or scores that nobody needs.

Usage: python benchmarks/pretrain.py [--lengths 128 512] [--no-peer] [--profile] [--out results.json] [--quick]
With --profile the kernels of three of our steps are listed, and nothing else is measured.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import peers
import torch
from common import attempt, device_name, kernels, new_parser, now, write_results

from crossalign.engine.device import choose_device, choose_precision
from crossalign.engine.pretrain import Pretraining, new_model
from crossalign.engine.pretrain_job import new_config
from crossalign.engine.settings import PretrainSettings

PEAK = 989e12
SHAPE = {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072, "positions": 512}
VOCABULARY = 250_002
# Blocks per step, by length: 512 is the paper's batch; 512 tokens need no more than a quarter of the memory.
BATCH = {128: 512, 512: 256}
STEPS = {128: 24, 512: 12}
QUICK = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "positions": 512}
WARM = 3


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512], choices=sorted(BATCH))
    parser.add_argument("--batch", type=int, help="blocks per step, for all lengths")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    parser.add_argument("--no-peer", action="store_true", help="ours only")
    parser.add_argument("--profile", action="store_true", help="list the kernels of our steps instead")
    parser.add_argument("--out", type=Path, help="file for the results as JSON")
    parser.add_argument("--quick", action="store_true", help="very small, to see that it runs")
    parser.add_argument("--device", default="auto")
    return parser.parse_args()


class Bench:
    """Shape, texts and device of one run."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.device = choose_device(args.device)
        self.precision = choose_precision("auto", self.device)
        self.shape = QUICK if args.quick else SHAPE
        self.vocabulary = 500 if args.quick else args.vocabulary
        self.tokenizer = make_tokenizer(self.vocabulary)
        kind = np.dtype("<u2" if self.vocabulary <= 1 << 16 else "<u4")
        self.text = folder / f"random.{kind.name}"
        count = 100_000 if args.quick else 16_000_000
        np.random.default_rng(1).integers(4, self.vocabulary - 1, count).astype(kind).tofile(self.text)

    def batch(self, length: int) -> int:
        """Blocks per step."""
        return 4 if self.args.quick else self.args.batch or BATCH[length]

    def steps(self, length: int) -> int:
        """Measured steps."""
        return 2 if self.args.quick else STEPS[length]

    def flops(self, length: int) -> float:
        """What the model needs per token, forward and backward."""
        share = max(1, round(0.15 * length)) / length
        return encoder_flops(self.shape, length) + share * head_flops(self.shape, self.vocabulary)

    def result(self, length: int, tokens: float, **more: Any) -> dict[str, Any]:
        """Speed, utilisation and memory."""
        memory = torch.cuda.max_memory_allocated() / 2**30 if self.device.type == "cuda" else None
        return {
            "tokens_per_second": round(tokens),
            "utilisation": round(tokens * self.flops(length) / PEAK, 4),
            "gigabytes": None if memory is None else round(memory, 1),
            **more,
        }


def encoder_flops(shape: dict[str, int], length: float) -> float:
    """What the layers need per token of a sequence of so many, forward and backward."""
    hidden, inner, layers = (shape[name] for name in ("hidden", "intermediate", "layers"))
    return 6 * layers * (4 * hidden**2 + 2 * hidden * inner) + 12 * layers * hidden * length


def head_flops(shape: dict[str, int], vocabulary: int) -> float:
    """What the head needs per token that is to be predicted."""
    return 6 * (shape["hidden"] ** 2 + shape["hidden"] * vocabulary)


def make_tokenizer(size: int):
    """A tokenizer that only says how many pieces there are, and XLM-R's special tokens."""
    from tokenizers import Tokenizer, models

    names = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(size - 5)), "<mask>"]
    return Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))


def begin(bench: Bench, length: int, steps: int) -> Pretraining:
    """A training that has its first `WARM` steps behind it and `steps` ahead."""
    settings = PretrainSettings(
        steps=WARM + steps, batch=bench.batch(length), block=length, learning_rate=1e-4, precision=bench.precision
    )
    config = new_config(bench.tokenizer, "post", "xlm-roberta", dict(bench.shape))
    encoder, head = new_model(config, 1)
    training = Pretraining(encoder, head, bench.tokenizer, {"random": bench.text}, settings, bench.device)
    for step in range(WARM):
        training.engine.step(training.store.members(step))
    return training


def ours(bench: Bench, length: int) -> dict[str, Any]:
    """Tokens per second of the engine."""
    batch, steps = bench.batch(length), bench.steps(length)
    training = begin(bench, length, steps)
    engine, store = training.engine, training.store
    started = now(bench.device)
    for step in range(WARM, WARM + steps):
        engine.step(store.members(step))
    seconds = now(bench.device) - started
    losses = engine.losses.cpu()
    if not torch.isfinite(losses).all():
        raise RuntimeError(f"losses {losses.tolist()}")
    return bench.result(
        length, steps * batch * length / seconds, milliseconds=round(1000 * seconds / steps, 2),
        graph=engine.capture, pieces=engine.micro, first_loss=round(float(losses[0]), 3),
        last_loss=round(float(losses[-1]), 3),
    )  # fmt: skip


def peer(bench: Bench, length: int) -> dict[str, Any]:
    """Tokens per second of the library's trainer, in the largest pieces that fit."""
    batch, warm = bench.batch(length), 1 if bench.args.quick else 2
    steps = max(1, bench.steps(length) // 3)
    piece = min(batch, 4 if bench.args.quick else max(1, 16384 // length))
    while True:
        try:
            seconds = peers.train(
                peers.language_model(bench.shape, bench.vocabulary),
                peers.random_blocks((warm + steps) * batch, length, bench.vocabulary),
                partial(peers.mask, vocabulary=bench.vocabulary), batch, batch // piece,
                bench.device, bench.precision, warm, warm + steps, bench.folder,
            )  # fmt: skip
            break
        except torch.OutOfMemoryError:
            if piece == 1:
                raise
        # Outside the handler, where the error no longer holds the tensors.
        piece //= 2
        torch.cuda.empty_cache()
    program = "transformers.Trainer" if peers.has_trainer() else "plain loop like Trainer's"
    return bench.result(length, batch * length / seconds, piece=piece, program=program)


def main() -> None:
    """Measure and print."""
    args = parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        name = device_name(bench.device)
        print(f"{name}, torch {torch.__version__}, {bench.precision}, vocabulary {bench.vocabulary:,}", flush=True)
        for length in args.lengths:
            if args.profile:
                training = begin(bench, length, 3)
                step = lambda number, at=training: at.engine.step(at.store.members(WARM + number))  # noqa: E731
                print("\n".join(kernels(step, bench.device)), flush=True)
                continue
            found = {"ours": attempt(f"ours, {length}", ours, bench, length)}
            if not args.no_peer:
                found["library"] = attempt(f"library, {length}", peer, bench, length)
            if found["ours"] and found.get("library"):
                ratio = found["ours"]["tokens_per_second"] / found["library"]["tokens_per_second"]
                found["ratio"] = round(ratio, 2)
                print(f"{length} tokens: {ratio:.2f} x, utilisation {100 * found['ours']['utilisation']:.1f} %")
            results[str(length)] = {"batch": bench.batch(length), "flops_per_token": bench.flops(length), **found}
    failed = any(value is None for found in results.values() for value in found.values())
    results |= {"device": name, "torch": torch.__version__, "vocabulary": bench.vocabulary, "peak": PEAK}
    write_results(args.out, results)
    if failed:
        sys.exit("some measurements failed")


if __name__ == "__main__":
    main()
