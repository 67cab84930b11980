"""Cross-lingual adjustment and continual learning: sentence pairs per second, and what the second loss costs.

The shape of mBERT with random weights (with --demo that of the demo's models), real sentence pairs. Measured: steps of
the adjustment, the whole program scripts/adjust.py from start to end on 30,000 pairs (the paper: 15 minutes on a V100),
and steps of an NLI fine-tuning with continual learning against the same without (the paper's ratio: 2.4).

Usage: python benchmarks/adjust.py --data DIR [--device cuda|cpu] [--demo] [--quick] [--no-program] [--out FILE.json]
DIR holds, anywhere below it, pool.tsv[.gz] (score TAB English TAB other), vocab.txt[.gz] of mBERT and, if there is one,
pool.pharaoh[.gz]; without it, words are linked along the diagonal, which costs the same.
"""

import argparse
import copy
import json
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
from train_step_data import LABELS, find, text_of

from crossalign.engine.adjust import Adjusting, AdjustmentSettings, ContinualSettings, continual
from crossalign.engine.device import choose_device
from crossalign.engine.finetune import FineTuning
from crossalign.engine.folders import save_encoder
from crossalign.engine.hyperparameters import Settings
from crossalign.engine.pairs import read_sample
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tokenizer import wordpiece_tokenizer
from crossalign.tasks import get_task

ADJUST = Path(__file__).resolve().parent.parent / "scripts" / "adjust.py"


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--demo", action="store_true", help="12 layers of 64 neurons instead of 768")
    parser.add_argument("--quick", action="store_true", help="fewer pairs and steps")
    parser.add_argument("--no-program", action="store_true", help="only steps")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


class Bench:
    """Data, model and device of one run."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.device = choose_device(args.device)
        self.cuda = self.device.type == "cuda"
        self.precision = "bf16" if self.cuda else "fp32"
        small = args.quick or not self.cuda
        self.pairs, self.steps = (2000, 40) if small else (30000, 300)
        self.pool, self.links = folder / "pool.tsv", folder / "pool.pharaoh"
        self.pool.write_text(text_of(find(args.data, "pool.tsv*")), encoding="utf-8")
        self._write_links()
        (folder / "vocab.txt").write_text(text_of(find(args.data, "vocab.txt*")), encoding="utf-8")
        self.tokenizer = wordpiece_tokenizer(folder / "vocab.txt")
        shape = {"hidden": 64, "heads": 4, "intermediate": 256} if args.demo else {}
        self.model = fresh_encoder(EncoderConfig(vocab_size=self.tokenizer.get_vocab_size(), **shape), 1)

    def _write_links(self) -> None:
        if sorted(self.args.data.rglob("pool.pharaoh*")):
            self.links.write_text(text_of(find(self.args.data, "pool.pharaoh*")), encoding="utf-8")
            return
        with self.links.open("w", encoding="utf-8") as stream:
            for line in self.pool.read_text(encoding="utf-8").splitlines():
                english, other = (len(side.split()) for side in line.split("\t")[1:])
                print(" ".join(f"{i}-{i * other // english}" for i in range(english)), file=stream)

    def encoder(self):
        """A copy of the model."""
        return copy.deepcopy(self.model)

    def sample(self):
        """The sampled pairs, read anew."""
        return read_sample(self.pool, self.links, self.pairs, 1)

    def now(self) -> float:
        """Wall clock of the GPU's work; on the CPU seconds of this process, which neighbours disturb less."""
        if not self.cuda:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def seconds_per_step(self, engine, batches: list[tuple[np.ndarray, ...]]) -> float:
        """The first pass captures graphs, the second is timed."""
        engine.losses = torch.zeros(2 * len(batches), device=self.device)
        engine.numbers = engine.arena.numbers(np.full(2 * len(batches), 5e-5))
        for members in batches:
            engine.step(*members)
        started = self.now()
        for members in batches:
            engine.step(*members)
        return (self.now() - started) / len(batches)


def adjustment(bench: Bench) -> dict:
    """Preparation and steps of an adjustment, inside this process."""
    started = bench.now()
    sample = bench.sample()
    read = bench.now()
    settings = AdjustmentSettings(pairs=bench.pairs, precision=bench.precision)
    run = Adjusting(bench.encoder(), bench.tokenizer, sample, settings, bench.device)
    prepared = bench.now()
    batches = [(batch,) for batch in run.stream.epoch(0)][: bench.steps]
    took = bench.seconds_per_step(run.engine, batches)
    lengths = [run.store.lengths[batch].sum() for (batch,) in batches]
    pairs = np.mean([len(batch) for (batch,) in batches])
    return {
        "ms_per_step": 1000 * took,
        "pairs_per_s": pairs / took,
        "tokens_per_step": float(np.mean(lengths)),
        "seconds_for_30000_pairs_without_captures": 30000 / (pairs / took),
        "read_s": read - started,
        "prepare_s": prepared - read,
        "graphs": len(run.engine._graphs),
        "captured": run.engine.capture,
        "table_gb": run.frozen.table.nbytes / 1e9 if run.frozen.table is not None else None,
        "memory_gb": torch.cuda.max_memory_allocated() / 1e9 if bench.cuda else None,
        "account": run.account,
    }


def program(bench: Bench) -> dict:
    """scripts/adjust.py from start to end: imports, reading the model, adjusting, writing the model."""
    folder = bench.folder / "model"
    save_encoder(folder, bench.model, bench.tokenizer)
    out = bench.folder / "adjusted"
    command = [sys.executable, ADJUST, "--model", folder, "--bitext", bench.pool, "--links", bench.links]
    command += ["--pairs", bench.pairs, "--out", out, "--device", bench.device]
    started = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True)
    took = time.perf_counter() - started
    report = json.loads((out / "training.json").read_text(encoding="utf-8"))
    return {
        "pairs": report["sentence_pairs"]["used"],
        "whole_s": took,
        "training_s": report["seconds"],
        "loss_first_last": [report["loss"][0], report["loss"][-1]],
    }


def nli_records(bench: Bench, count: int) -> list[dict]:
    """Made-up NLI examples as long as MultiNLI's: about 20 and 10 words."""
    lines = bench.pool.read_text(encoding="utf-8").splitlines()[: count + 1]
    words = [line.split("\t")[1].split() for line in lines]
    return [
        {"id": str(i), "premise": " ".join(a[:24]), "hypothesis": " ".join(b[:12]), "label": LABELS[i % 3]}
        for i, (a, b) in enumerate(zip(words, words[1:], strict=False))
    ]


def nli(bench: Bench, keep: str | None) -> dict:
    """Steps of an NLI fine-tuning; `keep`: how the original's vectors are had, None: no second loss."""
    auxiliary = None
    if keep is not None:
        auxiliary, _ = continual(
            ContinualSettings(),
            bench.sample(),
            bench.encoder(),
            bench.tokenizer,
            1,
            bench.device,
            bench.precision,
            keep,
        )
    settings = Settings(batch=32, epochs=1, max_length=128, selection="last", precision=bench.precision)
    run = FineTuning(
        bench.encoder(), bench.tokenizer, get_task("nli", LABELS), nli_records(bench, 32 * bench.steps), [], settings,
        device=bench.device, auxiliary=auxiliary,
    )  # fmt: skip
    batches = [(batch,) for batch in run.stream.epoch(0)]
    if auxiliary is not None:
        second = auxiliary.batches.endless(0)
        batches = [(batch, next(second)) for (batch,) in batches]
    took = bench.seconds_per_step(run.engine, batches)
    parts = [run.train_store, *([auxiliary.batches.store] if auxiliary else [])]
    tokens = [float(np.mean([s.lengths[b[i]].sum() for b in batches])) for i, s in enumerate(parts)]
    return {"ms_per_step": 1000 * took, "steps_per_s": 1 / took, "tokens_per_step": tokens}


def main() -> None:
    """Measure and print."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        name = torch.cuda.get_device_name() if bench.cuda else "cpu"
        print(f"{name}, torch {torch.__version__}, {bench.precision}", flush=True)
        results = {"device": name, "torch": torch.__version__}
        work = {"adjustment": lambda: adjustment(bench), "nli": lambda: nli(bench, None)}
        work["nli continual"] = lambda: nli(bench, "table")
        work["nli continual, original at each step"] = lambda: nli(bench, "encoder")
        if not args.no_program:
            work["program"] = lambda: program(bench)
        for label, measure in work.items():
            results[label] = measure()
            print(f"{label}: {json.dumps(results[label])}", flush=True)
            if bench.cuda:
                torch.cuda.empty_cache()
        for label in ("nli continual", "nli continual, original at each step"):
            ratio = results[label]["ms_per_step"] / results["nli"]["ms_per_step"]
            results[f"{label} / nli"] = ratio
            print(f"{label}: {ratio:.2f} times the time of plain NLI")
        if args.out:
            args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
