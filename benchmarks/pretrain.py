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
import importlib.util
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import pretrain_peer
import pretrain_profile
import torch
from torch.nn import functional

from crossalign.engine import attention
from crossalign.engine.corpus import token_type
from crossalign.engine.device import choose_device, choose_precision
from crossalign.engine.pretrain import Pretraining, new_model
from crossalign.engine.pretrain_job import new_config
from crossalign.engine.pretrain_settings import PretrainSettings

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        kind = token_type(self.vocabulary)
        self.text = folder / f"random.{kind.name}"
        count = 100_000 if args.quick else 16_000_000
        np.random.default_rng(1).integers(4, self.vocabulary - 1, count).astype(kind).tofile(self.text)
        self.started = time.monotonic()

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

    def say(self, text: str) -> None:
        """Print with the time."""
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

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
    wait(bench.device)
    return training


def profile(bench: Bench, length: int) -> dict[str, Any]:
    """Print the kernels of a few steps."""
    training = begin(bench, length, pretrain_profile.STEPS)
    step = lambda number: training.engine.step(training.store.members(WARM + number))  # noqa: E731
    lines = pretrain_profile.kernels(step, bench.device)
    print("\n".join(lines), flush=True)
    return {"kernels": lines}


def ours(bench: Bench, length: int) -> dict[str, Any]:
    """Tokens per second of the engine."""
    batch, steps = bench.batch(length), bench.steps(length)
    training = begin(bench, length, steps)
    engine, store = training.engine, training.store
    started = time.perf_counter()
    for step in range(WARM, WARM + steps):
        engine.step(store.members(step))
    wait(bench.device)
    seconds = time.perf_counter() - started
    losses = engine.losses.cpu()
    if not torch.isfinite(losses).all():
        raise RuntimeError(f"losses {losses.tolist()}")
    return bench.result(
        length, steps * batch * length / seconds, milliseconds=round(1000 * seconds / steps, 2),
        graph=engine.capture, pieces=engine.micro, first_loss=round(float(losses[0]), 3),
        last_loss=round(float(losses[-1]), 3),
    )  # fmt: skip


def dense_attention(qkv, bounds, longest, heads, dropout, causal=False):
    """cuDNN's kernel in place of FlashAttention 2; blocks are full, so that there is nothing to mask."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    grid = qkv.view(qkv.shape[0] // longest, longest, 3, heads, -1)
    q, k, v = grid.permute(2, 0, 3, 1, 4).unbind(0)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        out = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
    return out.transpose(1, 2).reshape(qkv.shape[0], heads, -1)


def with_cudnn(bench: Bench, length: int) -> dict[str, Any]:
    """Ours with cuDNN's attention, to see whether it would pay."""
    plain, attention._long = attention._long, dense_attention
    try:
        return ours(bench, length)
    finally:
        attention._long = plain


def peer(bench: Bench, length: int) -> dict[str, Any]:
    """Tokens per second of the library's trainer, in the largest pieces that fit."""
    batch = bench.batch(length)
    trainer = importlib.util.find_spec("accelerate") is not None
    piece = min(batch, 4 if bench.args.quick else max(1, 16384 // length))
    while True:
        try:
            tokens, losses = pretrain_peer.measure(
                bench.shape, bench.vocabulary, length, batch, piece, bench.device, bench.precision,
                1 if bench.args.quick else 2, max(1, bench.steps(length) // 3), bench.folder, trainer,
            )  # fmt: skip
            break
        except torch.OutOfMemoryError:
            if piece == 1:
                raise
        # Outside the handler, where the error no longer holds the tensors.
        piece //= 2
        torch.cuda.empty_cache()
    return bench.result(
        length, tokens, piece=piece, program="transformers.Trainer" if trainer else "plain loop like Trainer's",
        first_loss=round(losses[0], 3), last_loss=round(losses[-1], 3),
    )  # fmt: skip


def wait(device: torch.device) -> None:
    """For the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def attempt(bench: Bench, label: str, work, *args) -> dict[str, Any] | None:
    """One measurement; an error is printed and the others go on."""
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        result = work(bench, *args)
    except Exception:
        bench.say(f"{label} failed\n{traceback.format_exc()}")
        return None
    bench.say(f"{label}: {json.dumps({name: value for name, value in result.items() if name != 'kernels'})}")
    return result


def main() -> None:
    """Measure and print."""
    args = parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        cuda = bench.device.type == "cuda"
        name = torch.cuda.get_device_name() if cuda else "cpu"
        bench.say(f"{name}, torch {torch.__version__}, {bench.precision}, vocabulary {bench.vocabulary:,}")
        for length in args.lengths:
            if args.profile:
                results[str(length)] = {"profile": attempt(bench, f"profile, {length}", profile, length)}
                continue
            found = {"ours": attempt(bench, f"ours, {length}", ours, length)}
            if cuda and length > 128:
                found["ours with cuDNN"] = attempt(bench, f"ours with cuDNN, {length}", with_cudnn, length)
            if not args.no_peer:
                found["library"] = attempt(bench, f"library, {length}", peer, length)
            if found["ours"] and found.get("library"):
                ratio = found["ours"]["tokens_per_second"] / found["library"]["tokens_per_second"]
                found["ratio"] = round(ratio, 2)
                bench.say(f"{length} tokens: {ratio:.2f} x, utilisation {100 * found['ours']['utilisation']:.1f} %")
            results[str(length)] = {"batch": bench.batch(length), "flops_per_token": bench.flops(length), **found}
    results |= {"device": name, "torch": torch.__version__, "vocabulary": bench.vocabulary, "peak": PEAK}
    if args.out:
        args.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if any(found is None for length in args.lengths for found in results[str(length)].values()):
        sys.exit("some measurements failed")


if __name__ == "__main__":
    main()
