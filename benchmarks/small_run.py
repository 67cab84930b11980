"""How much of the card the small run uses, and what three of its fine-tunings take under the library's trainer.

1. Pretraining of the model `small` of config.small.yaml on the first lines of the prepared texts.
2. POS and parsing (English-EWT) and NLI (MultiNLI) by scripts/finetune.py, called as the workflow calls it: seconds of
   the whole process and, within it, of training with its dev scores; then steps alone, after an epoch that has recorded
   them.
3. The same fine-tunings under transformers.Trainer (a loop by hand where `accelerate` is missing): same examples,
   batches, schedule and optimiser, random weights. A few seconds are measured and extrapolated to all steps, without
   its start, its dev scores and its saving: what is compared with our training, which has dev scores, is less than
   the trainer would really take.

Model-FLOP utilisation = FLOPs that the model needs per second / 989e12, the dense bf16 peak of an H200, counted as in
benchmarks/pretrain.py: 6 x weights of the layers' products x tokens, 12 x layers x neurons x length x tokens for
attention and, in pretraining, 6 x (neurons^2 + neurons x vocabulary) x hidden tokens; nothing for heads of tasks.
Busy, in steps: time in which a kernel runs (from a profile of the last steps) over the time of steps without profiler;
in processes, and in pretraining beside that: the mean of what nvidia-smi calls utilisation.

Usage: python benchmarks/small_run.py --data DIR [--model FOLDER] [--parts pretrain pos parsing nli] [--device cuda|cpu]
[--peer bf16 fp32] [--seconds 20] [--peer-seconds 6] [--quick] [--out FILE.json]
DIR is results/small after `make small TARGETS=data`: it holds data/ and vocabularies/. Without --model, a fine-tuning
starts from random weights of the same shape. How many of them may share a card: benchmarks/share_card.py.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
# Before the folder of the programs, which has a pretrain.py too.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pretrain_profile
import torch
import train_step
from share_card import Card
from small_run_tuning import RUNS, SHAPE, fine_tuning, flags, known

import pretrain
from crossalign.catalog.commands import pretrain_options
from crossalign.catalog.config import load
from crossalign.catalog.trained_models import texts_of, trained_models
from crossalign.engine.corpus import encode_texts, lines_of
from crossalign.engine.device import choose_device, choose_precision
from crossalign.engine.folders import save_encoder
from crossalign.engine.pretrain import Pretraining, PretrainSettings
from crossalign.engine.pretrain_job import starting_point
from crossalign.runtime.errors import run_main

ROOT = Path(__file__).resolve().parent.parent
QUICK = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "batch": 4, "steps": 40}
WARM, PROFILED = 5, 20
UNKNOWN = "not measured"
FORMULA = (
    "MFU = (6 x weights of the layers' products x tokens + 12 x layers x neurons x length x tokens + in pretraining "
    f"6 x (neurons^2 + neurons x vocabulary) x hidden tokens) / seconds / {pretrain.PEAK:.3g}"
)


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--model", type=Path, help="model folder to fine-tune")
    parser.add_argument("--parts", nargs="+", default=["pretrain", *RUNS], choices=["pretrain", *RUNS])
    parser.add_argument("--peer", nargs="*", default=["bf16"], choices=["bf16", "fp32"], help="the trainer's precision")
    parser.add_argument("--seconds", type=float, default=20, help="of pretraining")
    parser.add_argument("--peer-seconds", type=float, default=6, help="of a fine-tuning under the trainer, at most")
    parser.add_argument("--peer-steps", type=int, default=200, help="of a fine-tuning under the trainer, at most")
    parser.add_argument("--lines", type=int, default=10_000, help="of the text of each language")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--quick", action="store_true", help="very small, to see that it runs")
    parser.add_argument("--out", type=Path, help="file for the results as JSON")
    args = parser.parse_args()
    if args.quick:
        args.seconds, args.peer_steps, args.lines = min(args.seconds, 2), 8, 200
    return args


class Bench:
    """Settings, device and places of one run."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.config = load([ROOT / "config.small.yaml"])
        self.device = choose_device(args.device)
        self.cuda = self.device.type == "cuda"
        self.precision = choose_precision("auto", self.device)
        self.card = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
        self.entry = trained_models(self.config)["small"]
        self.given = flags(pretrain_options(self.config, "small")) | (QUICK if args.quick else {})
        self.vocabulary = args.data / "vocabularies" / self.entry["vocabulary"] / "tokenizer.json"
        self.model = args.model or folder / "base"
        if args.model is None:
            start = self.start()
            save_encoder(self.model, start.encoder, start.tokenizer)

    def start(self):
        """The model that pretraining begins with."""
        given = self.given
        shape = {name: given[name] for name in (*SHAPE, "initializer_range", "position_waves")}
        shape["dropout"] = given["tuning_dropout"]
        return starting_point(None, self.vocabulary, given["norm"], None, shape, given["seed"], given["objective"])

    def steady(self, step, most: int, seconds: float = float("inf")) -> tuple[int, dict[str, Any]]:
        """Call step(0), step(1), ... at most so many times or so long, and on under the profiler: pace, busy shares."""
        count, profiled = 0, min(PROFILED, most // 2) if self.cuda else 0
        with Card(self.card, self.device.type) as card:
            pretrain.wait(self.device)
            began = time.perf_counter()
            while count < most - profiled and time.perf_counter() - began < seconds:
                step(count)
                count += 1
            pretrain.wait(self.device)
            took = (time.perf_counter() - began) / count
        result = {"steps_measured": count, "ms": round(1000 * took, 3), "busy_smi": card.busy, "busy_kernels": None}
        if profiled:
            busy = train_step.attempt(
                "seconds of kernels in a step",
                pretrain_profile.busy_seconds,
                lambda number: step(count + number),
                profiled,
            )
            # Nothing at all means that the profiler saw nothing.
            result["busy_kernels"] = round(100 * busy / took, 1) if busy else None
        return count, result

    def utilisation(self, flops: float) -> float | None:
        """Percent of the peak at so many FLOP/s; what there is to compare with on a CPU is not known."""
        return round(100 * flops / pretrain.PEAK, 3) if self.cuda else None


def pretraining(bench: Bench) -> dict[str, Any]:
    """Steps of our pretraining on the prepared text."""
    texts = {}
    for data in texts_of(bench.entry):
        head = bench.folder / f"{data.name}.txt"
        lines = itertools.islice(lines_of(bench.args.data / data.path()), bench.args.lines)
        head.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        texts[data.name] = [head]
    start = bench.start()
    settings = PretrainSettings(**known(PretrainSettings, bench.given), precision=bench.precision)
    files = encode_texts(texts, start.tokenizer, bench.folder)
    training = Pretraining(start.encoder, start.head, start.tokenizer, files, settings, bench.device)

    def step(number: int) -> None:
        training.engine.step(training.store.members(number))

    for number in range(WARM):
        step(number)
    most = settings.steps - WARM
    count, result = bench.steady(lambda number: step(WARM + number), most, bench.args.seconds)
    losses = training.engine.losses[: WARM + count].cpu()
    if not torch.isfinite(losses).all():
        raise RuntimeError(f"losses {losses.tolist()}")
    tokens = 1000 * settings.batch * settings.block / result["ms"]
    head = pretrain.head_flops(bench.given, start.tokenizer.get_vocab_size())
    share = max(1, round(settings.masking * settings.block)) / settings.block
    flops = pretrain.encoder_flops(bench.given, settings.block) + share * head
    return {
        **{name: bench.given[name] for name in (*SHAPE, "batch", "block")},
        "tokens_per_second": round(tokens),
        "flops_per_token": flops,
        "mfu_percent": bench.utilisation(tokens * flops),
        "all_steps_seconds": round(settings.steps * result["ms"] / 1000, 1),
        "graph": training.engine.capture,
        "first_loss": round(float(losses[0]), 3),
        "last_loss": round(float(losses[-1]), 3),
        **result,
    }


def table(results: dict[str, Any]) -> None:
    """Markdown."""
    columns = {
        "batch": ("loop", "batch"), "steps": ("process", "steps"), "process, s": ("process", "process_s"),
        "training, s": ("process", "training_s"), "ms per step": ("loop", "ms"),
        "tokens/s": ("loop", "tokens_per_second"), "MFU of steps, %": ("loop", "mfu_percent"),
        "of training, %": ("training_mfu_percent",), "of the process, %": ("process_mfu_percent",),
        "busy in steps, %": ("loop", "busy_kernels"), "in the process, %": ("process", "process_busy_smi"),
        "trainer bf16, ms": ("peer_bf16", "ms"), "fp32, ms": ("peer_fp32", "ms"),
        "all steps bf16, s": ("peer_bf16", "extrapolated_s"), "fp32, s": ("peer_fp32", "extrapolated_s"),
        "the faster / our training": ("ratio",), "its step / ours": ("ratio_of_steps",),
    }  # fmt: skip
    print("\n| task | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    for name in RUNS:
        if name in results:
            print(f"| {name} | " + " | ".join(shown(results[name], path) for path in columns.values()) + " |")
    programs = {
        value["program"] for row in results.values() if isinstance(row, dict) for key, value in row.items()
        if key.startswith("peer_") and value
    }  # fmt: skip
    print(f"\ntrainer: {', '.join(sorted(programs)) or UNKNOWN}; its seconds are extrapolated from the steps measured")


def shown(value: Any, path: tuple[str, ...]) -> str:
    """What lies there, or that there is nothing."""
    for key in path:
        value = (value or {}).get(key)
    return UNKNOWN if value is None else format(value, ",") if isinstance(value, int) else str(value)


def main() -> None:
    """Measure, print, write."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        device = torch.cuda.get_device_name() if bench.cuda else "cpu"
        print(f"{device}, torch {torch.__version__}, {bench.precision}", flush=True)
        results: dict[str, Any] = {"device": device, "torch": torch.__version__, "peak": pretrain.PEAK}

        def save(name: str, row: dict[str, Any] | None) -> None:
            results[name] = row
            if args.out:
                args.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

        for name in args.parts:
            if name == "pretrain":
                save(name, train_step.attempt(name, pretraining, bench))
            else:
                fine_tuning(bench, name, lambda row, name=name: save(name, row))
    if "pretrain" in args.parts:
        names = ("tokens_per_second", "ms", "mfu_percent", "busy_kernels", "busy_smi", "all_steps_seconds")
        print("\n| pretraining: " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
        print("| " + " | ".join(shown(results["pretrain"], (name,)) for name in names) + " |")
    table(results)
    print(FORMULA)


if __name__ == "__main__":
    run_main(main)
