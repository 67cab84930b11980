"""Fine-tunings of the small run for benchmarks/small_run.py: ours as a process and as steps, and the usual trainer."""

import importlib.util
import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import train_step
import train_step_peer
from share_card import Card

import pretrain
from crossalign.catalog.addresses import Tuned
from crossalign.catalog.commands import finetune_options
from crossalign.catalog.targets import training_sets
from crossalign.engine.finetune import FineTuning
from crossalign.engine.folders import load_encoder
from crossalign.engine.hyperparameters import Settings
from crossalign.tasks import get_task

PROGRAM = Path(__file__).resolve().parent.parent / "scripts" / "finetune.py"
# Recipe and training set.
RUNS = {"pos": ("pos", "en_ewt"), "parsing": ("parsing", "en_ewt"), "nli": ("anc-nli", "multinli_en")}
SHAPE = ("layers", "hidden", "heads", "intermediate")
QUICK = {"examples": 160, "epochs": 2}


def flags(options: str) -> dict[str, Any]:
    """The values of a command line that the workflow makes."""
    found: dict[str, list] = {}
    for word in shlex.split(options):
        if word.startswith("--"):
            values = found.setdefault(word[2:].replace("-", "_"), [])
        else:
            values.append(value_of(word))
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in found.items()}


def value_of(text: str) -> int | float | str:
    """A number if it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def known(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """Those of the values that a dataclass has."""
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}


class Tuning:
    """One of the fine-tunings: its command line, and its parts for a measurement in this process."""

    def __init__(self, bench: Any, name: str) -> None:
        recipe, source = RUNS[name]
        run = Tuned("small", recipe, source, "ref", 1)
        self.name, self.place = name, bench.folder / name
        self.options = flags(finetune_options(bench.config, run)) | (QUICK if bench.args.quick else {})
        sets = training_sets(bench.config, run)
        self.files = {split: bench.args.data / data.path() for split, data in sets.items()}
        self.settings = Settings(**known(Settings, self.options), precision=bench.precision)
        records = {split: get_task(name).read(file) for split, file in self.files.items()}
        self.train = records["train"][: self.options.get("examples")]
        self.dev = records.get("dev", [])
        self.task = get_task(name).with_labels_of(self.train)

    def process(self, bench: Any) -> dict[str, Any]:
        """scripts/finetune.py from its start to its end."""
        words = []
        for key, value in self.options.items():
            words.append([f"--{key.replace('_', '-')}", *map(str, value if isinstance(value, tuple) else [value])])
        words += [[f"--{split}", str(file)] for split, file in self.files.items()]
        command = [
            *(sys.executable, str(PROGRAM), *itertools.chain(*words)),
            *("--model", str(bench.model), "--out", str(self.place), "--checkpoints", str(self.place / "checkpoints")),
            *("--recipe", "benchmark", "--device", bench.device.type),
        ]
        with Card(bench.card, bench.device.type) as card:
            began = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
            took = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"finetune.py failed\n{done.stdout}\n{done.stderr}")
        report = json.loads((self.place / "training.json").read_text(encoding="utf-8"))
        return {
            "steps": report["steps"],
            "process_s": round(took, 2),
            "training_s": report["seconds"],
            "steps_per_s": round(report["steps"] / report["seconds"], 1),
            "process_busy_smi": card.busy,
            "process_peak_mb": card.peak,
            "dev": report["dev"][-1] if report["dev"] else None,
        }

    def loop(self, bench: Any) -> dict[str, Any]:
        """Steps alone: the first epoch records most of them, the others are measured."""
        encoder, tokenizer = load_encoder(bench.model)
        shape = {name: getattr(encoder.config, name) for name in SHAPE}
        tuning = FineTuning(
            encoder, tokenizer, self.task, self.train, self.dev, self.settings, device=bench.device
        )  # fmt: skip
        epochs = [tuning.stream.epoch(epoch) for epoch in range(self.settings.epochs)]
        first, batches = epochs[0], list(itertools.chain(*epochs[1:]))
        for batch in first:
            tuning.engine.step(batch)
        count, result = bench.steady(lambda number: tuning.engine.step(batches[number]), len(batches))
        lengths = [tuning.train_store.lengths[batch].astype(float) for batch in batches[:count]]
        tokens, squares = (sum(float((part**power).sum()) for part in lengths) / count for power in (1, 2))
        flops = tokens * pretrain.encoder_flops(shape, squares / tokens)
        return {
            **result,
            "batch": self.settings.batch,
            "tokens_per_step": round(tokens, 1),
            "tokens_per_second": round(1000 * tokens / result["ms"]),
            "flops_per_step": flops,
            "mfu_percent": bench.utilisation(1000 * flops / result["ms"]),
            "graphs": len(tuning.engine._graphs),
        }

    def peer(self, bench: Any, precision: str) -> dict[str, Any]:
        """The library's trainer, for a while."""
        encoder, tokenizer = load_encoder(bench.model)
        examples = self.task.examples(self.train, tokenizer, self.settings.max_length, training=True)
        total = self.settings.epochs * -(-len(examples) // self.settings.batch)
        warm = 2 if bench.args.quick else 20
        last = min(total, warm + bench.args.peer_steps)
        pace = train_step_peer.Pace(bench.device, last, warm, bench.args.peer_seconds)
        trainer = importlib.util.find_spec("accelerate") is not None
        seconds = train_step_peer.measure(
            self.name, self.task, encoder.config, examples, precision, pace, self.settings, total,
            bench.folder / "trainer", trainer,
        )  # fmt: skip
        return {
            "program": "transformers.Trainer" if trainer else "loop by hand (no accelerate)",
            "ms": round(1000 * seconds, 3),
            "steps_measured": pace.measured,
            "steps": total,
            "extrapolated_s": round(seconds * total, 1),
        }


def fine_tuning(bench: Any, name: str, save) -> dict[str, Any]:
    """Ours and theirs; what fails is missing from the result."""
    tuning = Tuning(bench, name)
    row: dict[str, Any] = {}
    # Steps first: they leave compiled kernels behind, which all but the first of hundreds of processes find.
    for part in ("loop", "process"):
        row[part] = train_step.attempt(f"{name} {part}", getattr(tuning, part), bench)
        save(row)
    for precision in bench.args.peer if bench.cuda else ["fp32"]:
        row[f"peer_{precision}"] = train_step.attempt(f"{name} peer {precision}", tuning.peer, bench, precision)
    loop, process = row["loop"] or {}, row["process"] or {}
    if loop and process:
        needed = process["steps"] * loop["flops_per_step"]
        row["training_mfu_percent"] = bench.utilisation(needed / process["training_s"])
        row["process_mfu_percent"] = bench.utilisation(needed / process["process_s"])
    peers = [value["extrapolated_s"] for key, value in row.items() if key.startswith("peer_") and value]
    if process and peers:
        row["ratio"] = round(min(peers) / process["training_s"], 2)
    if loop and process and peers:
        row["ratio_of_steps"] = round(1000 * min(peers) / process["steps"] / loop["ms"], 2)
    save(row)
    return row
