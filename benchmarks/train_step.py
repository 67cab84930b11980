"""Training steps: our engine against transformers.Trainer, side by side in one run.

The same examples (lengths of English-EWT in mBERT's vocabulary), the same batch sizes, mBERT's shape with random
weights; with --demo the shape of the demo's models. Also measured: start-up, evaluation, and the floor that arithmetic
and memory traffic set on this machine.

Usage: python benchmarks/train_step.py --data DIR [--quick] [--check] [--profile] [--device cuda|cpu] [--demo]
[--out FILE.json]
DIR holds, anywhere below it, *ewt*train.conllu[.gz], *ewt*dev.conllu[.gz] and vocab.txt[.gz] of mBERT.
"""

import argparse
import copy
import logging
import tempfile
from pathlib import Path

import numpy as np
import peers
import torch
from common import attempt, device_name, find, kernels, new_parser, now, print_table, text_of, write_results
from train_step_data import write_tasks

from crossalign.engine.device import choose_device
from crossalign.engine.finetune import FineTuning
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.settings import Settings
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import TaskModel, predict_all
from crossalign.engine.tokenizer import wordpiece_tokenizer
from crossalign.tasks import get_task

# Task: batch size and longest example of the papers (align-predict section 4, adjust section 5).
TASKS = {"pos": (16, 256), "parsing": (32, 256), "ner": (16, 256), "nli": (32, 128), "qa": (32, 384)}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--demo", action="store_true", help="12 layers of 64 neurons instead of 768")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    parser.add_argument("--check", action="store_true", help="equivalence on this device instead of speed")
    parser.add_argument("--profile", action="store_true", help="also list the kernels of a step")
    parser.add_argument("--no-peer", action="store_true", help="only ours")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


class Bench:
    """Data, model and device of one run."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.device = choose_device(args.device)
        self.cuda = self.device.type == "cuda"
        limit = 400 if args.quick or not self.cuda else 12543
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text(text_of(find(args.data, "vocab.txt*")), encoding="utf-8")
        self.tokenizer = wordpiece_tokenizer(vocabulary)
        self.files = {split: write_tasks(args.data, folder, split, limit) for split in ("train", "dev")}
        shape = {"hidden": 64, "heads": 4, "intermediate": 256} if args.demo else {}
        self.config = EncoderConfig(vocab_size=self.tokenizer.get_vocab_size(), **shape)
        self._encoder = None
        self.ceilings = measure_ceilings(self.device) if self.cuda else {}

    def encoder(self, **changes):
        """A fresh encoder; drawing mBERT's 178 million numbers takes seconds, so it is done once."""
        if changes:
            return fresh_encoder(EncoderConfig(**{**vars(self.config), **changes}), 1)
        if self._encoder is None:
            self._encoder = fresh_encoder(self.config, 1)
        return copy.deepcopy(self._encoder)

    def records(self, name: str, split: str = "train") -> list[dict]:
        """Records of a task; a few thousand of the long ones are enough."""
        records = get_task(name).read(self.files[split][name])
        return records[:2000] if name == "qa" else records

    def task(self, name: str):
        return get_task(name).with_labels_of(self.records(name))

    def tuning(self, name: str, precision: str, encoder=None, dev=(), capture=None, **changes) -> FineTuning:
        """A fine-tuning, ready to step."""
        batch, length = TASKS[name]
        given = {"learning_rate": 5e-5, "batch": batch, "epochs": 1, "max_length": length, "precision": precision}
        settings = Settings(**given | changes, selection="best" if dev else "last")
        tuning = FineTuning(
            encoder or self.encoder(), self.tokenizer, self.task(name), self.records(name), list(dev), settings,
            device=self.device, capture=capture,
        )  # fmt: skip
        tuning.before()
        return tuning


def measure_ceilings(device: torch.device) -> dict[str, float]:
    """What this GPU does at best: bf16 products (FLOP/s) and copies (bytes/s, read and written)."""
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    big = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    other = torch.empty_like(big)

    def seconds(work, count=10) -> float:
        work()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            work()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / 1000 / count

    return {"flops": 2 * 8192**3 / seconds(lambda: a @ a), "bytes": 2 * big.numel() / seconds(lambda: other.copy_(big))}


def floor_ms(bench: Bench, tuning: FineTuning, tokens: float) -> float | None:
    """Arithmetic of the layers at the measured peak, and one pass of AdamW at the measured bandwidth."""
    if not bench.ceilings:
        return None
    weights = sum(p.numel() for p in tuning.model.encoder.layers.parameters())
    traffic = len(tuning.engine.arena.master) * 28
    return 1000 * (6 * weights * tokens / bench.ceilings["flops"] + traffic / bench.ceilings["bytes"])


def ours(bench: Bench, name: str, precision: str) -> dict:
    """Steps of our engine: the first pass captures graphs, the second is timed."""
    started = now(bench.device)
    tuning = bench.tuning(name, precision)
    prepared = now(bench.device)
    steps = (60 if bench.args.quick else 200) if bench.cuda else (3 if name == "qa" else 12)
    batches = tuning.stream.epoch(0)[:steps]
    engine = tuning.engine
    engine.losses = torch.zeros(10 * steps, device=bench.device)
    engine.numbers = engine.arena.numbers(np.full(10 * steps, 5e-5))
    engine.step(batches[0])
    first = now(bench.device)
    for batch in batches[1:]:
        engine.step(batch)
    captured = now(bench.device)
    for batch in batches:
        engine.step(batch)
    took = (now(bench.device) - captured) / len(batches)
    store = tuning.train_store
    tokens = float(np.mean([store.lengths[b].sum() for b in batches]))
    packed = [store.assemble(b, tuning.settings.batch if engine.static else None) for b in batches]
    floor = floor_ms(bench, tuning, tokens)
    if bench.args.profile and bench.cuda:
        print("\n".join([f"\nkernels of {name}", *kernels(lambda number: engine.step(batches[number]), bench.device)]))
    return {
        "ms": 1000 * took,
        "tokens_per_s": tokens / took,
        "tokens": tokens,
        "filled": float(np.mean([len(each.tensors["ids"]) for each in packed])),
        "graphs": len(engine._graphs),
        "prepare_s": prepared - started,
        "first_step_s": first - prepared,
        "captures_s": captured - first,
        "floor_ms": floor,
        "memory_gb": torch.cuda.max_memory_allocated() / 1e9 if bench.cuda else None,
        "loss": float(engine.losses[2 * len(batches) - 1]),
    }


def peer(bench: Bench, name: str, precision: str) -> float:
    """Milliseconds per step of the library's trainer."""
    batch, length = TASKS[name]
    task = bench.task(name)
    examples = task.examples(bench.records(name), bench.tokenizer, length, training=True)
    steps, warm = (16, 6) if bench.args.quick else (60, 15)
    if not bench.cuda:
        steps, warm = (4, 1) if name == "qa" else (14, 2)
    return 1000 * peers.train(
        peers.task_model(name, task, bench.config), peers.rows_of(name, examples), peers.collate, batch, 1,
        bench.device, precision, warm, steps, bench.folder / "trainer",
    )  # fmt: skip


def evaluation(bench: Bench) -> dict:
    """Predictions of a POS tagger for the dev set, ours and a padded loop."""
    task = bench.task("pos")
    examples = task.examples(bench.records("pos", "dev"), bench.tokenizer, 256)
    model = TaskModel(bench.encoder(), task.make_head(bench.config.hidden, 0.1))
    model.place(bench.device, "bf16" if bench.cuda else "fp32")
    tokens = sum(len(example["input_ids"]) for example in examples)
    for _ in range(2):
        started = now(bench.device)
        predict_all(model, task, examples, bench.device)
        took = now(bench.device) - started
    result = {"tokens": tokens, "ours_tokens_per_s": tokens / took}
    if not bench.args.no_peer:
        result["padded_tokens_per_s"] = peers.padded_predictions("pos", task, bench.config, examples, bench.device)
    return result


def table(results: dict[str, dict]) -> None:
    """Markdown for docs/notes/performance.md."""
    columns = ["task", "batch", "ours ms", "Trainer fp32 ms", "Trainer bf16 ms", "faster than fp32, bf16"]
    columns += ["floor ms", "ours/floor", "tokens/s"]
    rows = []
    show = lambda value, form=".2f": "-" if value is None else format(value, form)  # noqa: E731
    for name, row in results.items():
        mine = row["ours"] or {}
        ms, floor = mine.get("ms"), mine.get("floor_ms")
        ratios = ", ".join(
            show(row[p] / ms if ms and row.get(p) else None, ".1f") for p in ("trainer_fp32", "trainer_bf16")
        )
        cells = [
            name, TASKS[name][0], show(ms), show(row.get("trainer_fp32")), show(row.get("trainer_bf16")), ratios,
            show(floor), show(ms / floor if ms and floor else None), show(mine.get("tokens_per_s"), ",.0f"),
        ]  # fmt: skip
        rows.append(cells)
    print()
    print_table(columns, rows)


def main() -> None:
    """Measure or check."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        name = device_name(bench.device)
        print(f"{name}, torch {torch.__version__}, ceilings {bench.ceilings}", flush=True)
        if args.check:
            import train_step_checks

            train_step_checks.run(bench)
            return
        precision = "bf16" if bench.cuda else "fp32"
        results: dict[str, dict] = {}
        for task in args.tasks:
            results[task] = {"ours": attempt(f"{task} ours {precision}", ours, bench, task, precision)}
        if bench.cuda:
            attempt("pos ours fp32", ours, bench, "pos", "fp32")
        for task in args.tasks if not args.no_peer else []:
            for kind in ("fp32", "bf16") if bench.cuda else ("fp32",):
                results[task][f"trainer_{kind}"] = attempt(f"{task} Trainer {kind}", peer, bench, task, kind)
        table(results)
        scores = attempt("evaluation", evaluation, bench)
        write_results(args.out, {"device": name, "tasks": results, "evaluation": scores})


if __name__ == "__main__":
    main()
