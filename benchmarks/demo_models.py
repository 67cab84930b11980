"""Train demo models of resources/demo/models.yaml on one GPU within a few minutes, and test them.

Needs what benchmarks/demo_text.py packed; neither the workflow nor the network. Writes archives of model folders
(bert.tar, xlmr.tar, scale.tar, xglm.tar), table.md and results.json. provenance.json says how each model was made.

Usage: python benchmarks/demo_models.py --data FOLDER --out FOLDER [--minutes 6] [--models mbert ...]
"""

import argparse
import gzip
import json
import logging
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import demo_models_score as scoring
import torch
from tools import demo_models
from tools.demo_models import write_provenance

from crossalign.engine.corpus import encode_texts
from crossalign.engine.device import choose_device, choose_precision
from crossalign.engine.folders import load_encoder
from crossalign.engine.pretrain import Pretraining, PretrainSettings
from crossalign.engine.pretrain_job import Start

# Seconds of the budget that are kept for the test of each model and for packing.
RESERVE = 12
ARCHIVES = {
    "bert": ("mbert", "embert-hi"),
    "xlmr": ("xlmr-base", "xlmr-large"),
    "scale": ("scale-",),
    "xglm": ("xglm-",),
}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--tiny", action="store_true", help="everything very small, to see that it runs")
    parser.add_argument("--rate", type=float, default=5e-4, help="learning rate of the tagging test")
    parser.add_argument("--epochs", type=int, default=4, help="of the tagging test")
    parser.add_argument("--device", default="auto")
    return parser.parse_args()


class Bench:
    """Texts, vocabularies, plan and clock of one run."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.started = time.monotonic()
        self.device = choose_device(args.device)
        self.precision = choose_precision("auto", self.device)
        for path in sorted(args.data.glob("*.gz")):
            with gzip.open(path, "rb") as source, (folder / path.stem).open("wb") as target:
                shutil.copyfileobj(source, target)
                if args.tiny and path.stem.endswith(".txt"):
                    target.truncate(40_000)
        if args.tiny:
            for path in folder.glob("*.txt"):
                # The cut may have hit the middle of a character.
                path.write_bytes(path.read_bytes().rpartition(b"\n")[0] + b"\n")
        self.plan = json.loads((args.data / "models.json").read_text(encoding="utf-8"))
        self.results: dict[str, Any] = {"models": {}, "errors": {}}
        self.tokens = folder / "tokens"

    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.args.minutes * 60 - (time.monotonic() - self.started)

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

    def note(self) -> None:
        """Write down what is known so far."""
        (self.args.out / "results.json").write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")

    def tokenizer(self, name: str) -> Path:
        return self.args.data / f"{name}.tokenizer.json"

    def texts(self, name: str) -> dict[str, list[Path]]:
        """Files by language."""
        files: dict[str, list[Path]] = {}
        for text in self.plan["texts"][name]:
            files.setdefault(text.split("/")[1], []).append(self.folder / f"{text.replace('/', '-')}.txt")
        return files

    def shrink(self, settings: PretrainSettings) -> PretrainSettings:
        """Settings as they are, or very small."""
        if not self.args.tiny:
            return settings
        return replace(settings, steps=4, batch=2 if settings.block > 64 else 8)

    def settings(self, model: dict, factor: float, **changes: Any) -> PretrainSettings:
        """Settings of the short blocks of a model, its steps times `factor`."""
        return self.shrink(demo_models.short_settings(self.plan, model, self.precision, factor, **changes))

    def start(self, model: dict, seed: int, models: Path, **shape: Any) -> Start:
        """What a model starts from."""
        vocabulary = self.tokenizer(model.get("tokenizer", ""))
        return demo_models.begin(self.plan, model, vocabulary, models, seed, **shape)

    def speed(self, name: str, model: dict, models: Path, found: dict[str, float], key: str) -> None:
        """Note under `key` the seconds per step of the short blocks, from a few steps thrown away."""
        model = {**self.plan["models"][model["init"]], **model} if "init" in model else model
        model.pop("init", None)
        steps = 4 if self.args.tiny else 120
        settings = self.settings(model, 1.0)
        settings.steps = steps
        start = self.start(model, 1, models)
        files = encode_texts(self.texts(model["texts"]), start.tokenizer, self.tokens)
        training = Pretraining(start.encoder, start.head, start.tokenizer, files, settings, self.device)
        training.run()
        seconds = settings.batch * settings.block / training.tokens_per_second
        self.say(f"{name}: {1000 * seconds:.2f} ms a step, {training.tokens_per_second:,.0f} tokens/s")
        found[key] = seconds


def train(bench: Bench, name: str, model: dict, factor: float, models: Path) -> None:
    """Both stages of one model."""
    plan = {**bench.plan, "trial": {"factor": factor} if factor < 1 or bench.args.tiny else None}
    vocabulary = bench.tokenizer(demo_models.vocabulary_of(plan, name))
    reports = demo_models.train_model(
        plan, name, bench.texts(model["texts"]), vocabulary, models, bench.folder, bench.device, bench.precision,
        factor=factor, shrink=bench.shrink,
    )  # fmt: skip
    if reports[0]["settings"]["learning_rate"] != bench.settings(model, factor).learning_rate:
        bench.results["errors"][f"{name}, planned rate"] = "the loss stayed at word frequencies"
    for report in reports:
        curve = report["loss"]
        marks = [curve[min(len(curve) - 1, len(curve) * i // 8)] for i in range(9)]
        bench.say(
            f"{name}, {report['settings']['block']} tokens, frequencies alone {report['unigram_entropy']:.2f}: "
            + ", ".join(f"{step}: {loss:.2f}" for step, loss in marks)
        )
    write_provenance(models / name, name, plan, command(sys.argv[1:]))
    bench.results["models"][name] = reports


def command(arguments: list[str]) -> str:
    """The command line, without the names of folders on the machine that ran it."""
    shown = list(arguments)
    for option, place in (("--data", "DATA"), ("--out", "OUT")):
        if option in shown:
            shown[shown.index(option) + 1] = place
    return " ".join(["python benchmarks/demo_models.py", *shown])


def pack(models: Path, out: Path) -> None:
    """One archive per group of models, rewritten after each model: what is done comes back even if time runs out."""
    for archive, prefixes in ARCHIVES.items():
        folders = sorted(path for path in models.iterdir() if path.name.startswith(prefixes))
        if folders:
            part = out / f".{archive}.part"
            with tarfile.open(part, "w") as tar:
                for folder in folders:
                    tar.add(folder, arcname=folder.name)
            part.replace(out / f"{archive}.tar")


def test(bench: Bench, models: Path, name: str) -> None:
    """The table of one model."""
    encoder, tokenizer = load_encoder(models / name)
    sets, parallel = scoring.read_sets(bench.folder, 12 if bench.args.tiny else None)
    epochs = 1 if bench.args.tiny else bench.args.epochs
    results = scoring.score(
        encoder, tokenizer, sets, parallel, bench.args.rate, epochs, [1, 2], bench.precision, bench.device
    )
    bench.results.setdefault("scores", {})[name] = results
    text = f"{name}: POS fine-tuned on en_ewt (rate {bench.args.rate}, {epochs} epochs, 2 seeds), in percent; "
    text += f"matching en-X over {len(parallel['en'])} sentences (chance {100 / len(parallel['en']):.1f})\n\n"
    text += scoring.table(results) + "\n\n"
    premises = scoring.read_premises(bench.folder, 12 if bench.args.tiny else None)
    scores = scoring.match_all(load_encoder(models / name)[0], tokenizer, premises, bench.device)
    random = scoring.match_all(scoring.random_copy(encoder, 1), tokenizer, premises, bench.device)
    results["premises"] = scores
    text += f"premises of the extended XNLI, chance {100 / len(premises['en']):.1f}, best layer (random weights): "
    text += ", ".join(f"{lang} {max(values):.0f} ({max(random[lang]):.0f})" for lang, values in scores.items())
    with (bench.args.out / "table.md").open("a", encoding="utf-8") as stream:
        stream.write(text + "\n\n")
    bench.say("scores\n" + text)


def attempt(bench: Bench, label: str, work, *args) -> None:
    """Run one part; an error is printed and kept, and the others go on."""
    try:
        work(*args)
    except Exception:
        bench.results["errors"][label] = traceback.format_exc()
        bench.say(f"{label} failed\n{bench.results['errors'][label]}")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def everything(bench: Bench, models: Path) -> None:
    """Measure the speed, fit the steps to the budget, train, test."""
    chosen = {n: m for n, m in bench.plan["models"].items() if not bench.args.models or n in bench.args.models}
    seconds: dict[str, float] = {}
    shapes: dict[str, float] = {}
    for name, model in chosen.items():
        key = json.dumps([model.get("shape"), model.get("norm", "post"), model.get("tokenizer", "joint")])
        if key not in shapes:
            # A guess that holds if the measurement fails; the training will tell why.
            shapes[key] = 0.004
            attempt(bench, f"speed of {name}", bench.speed, name, dict(model), models, shapes, key)
        seconds[name] = shapes[key]
    long = bench.plan["defaults"]["long"]["share"]
    cost = {n: seconds[n] * (1 + long) * bench.settings(m, 1.0).steps + 4 for n, m in chosen.items()}
    for name, model in chosen.items():
        rest = sum(value for other, value in cost.items() if other not in bench.results["models"])
        factor = min(1.0, max(0.02, (bench.left() - RESERVE * len(cost)) / rest))
        bench.say(f"{name}: {factor:.2f} of the planned steps")
        attempt(bench, name, train, bench, name, dict(model), factor, models)
        cost.pop(name)
        if (models / name / "config.json").exists():
            attempt(bench, "packing", pack, models, bench.args.out)
            bench.note()
            attempt(bench, f"test of {name}", test, bench, models, name)


def main() -> None:
    """Train, test, pack."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        name = torch.cuda.get_device_name() if bench.device.type == "cuda" else "cpu"
        bench.say(f"{name}, torch {torch.__version__}, {bench.precision}")
        models = Path(folder) / "models"
        models.mkdir()
        everything(bench, models)
        bench.results["device"], bench.results["seconds"] = name, time.monotonic() - bench.started
        bench.note()
        for path in sorted(args.out.iterdir()):
            bench.say(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
        if bench.results["errors"]:
            sys.exit(f"failed: {', '.join(bench.results['errors'])}")


if __name__ == "__main__":
    main()
