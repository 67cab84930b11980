"""A whole fine-tuning and whole evaluations, as the workflow runs them: its own programs, start-up included.

1. scripts/finetune.py: English-EWT parsing, batches of 32, 15 epochs, a model of mBERT's shape with random weights.
2. scripts/evaluate.py: the parser just made, and a POS tagger with random weights, each on the 17 PUD test sets. Where
   DIR has fewer, some are taken twice. With the seconds of each stage: start (imports), read, tokenise, load (what is
   left to wait for: on a GPU the model is loaded meanwhile), predict, decode, score, write, and the rest, which is the
   start and the end of the process.
3. Predictions alone, in tokens per second, against a padded loop of 32 examples at a time over the library's model.

Usage: [python tools/warm.py --] python3 benchmarks/evaluate.py --data DIR [--out FILE.json] [--device cuda|cpu]
       [--epochs N] [--tiny]
With the first half of the command programs start warm, as `make` has it; without it they import everything anew.
DIR holds, anywhere below it, *ewt*train.conllu[.gz], *ewt*dev.conllu[.gz], *_pud-*.conllu[.gz] and vocab.txt[.gz].
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
import train_step_data as data
import train_step_peer as peer

from crossalign.engine.device import choose_device, choose_precision
from crossalign.engine.folders import save_encoder
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import TaskModel, load_tuned_model, predict_all, read_info, save_tuned
from crossalign.engine.tokenizer import load_tokenizer, wordpiece_tokenizer
from crossalign.runtime.stages import read_stages
from crossalign.tasks import get_task

ROOT = Path(__file__).resolve().parent.parent
SETS = 17
TINY = {"hidden": 32, "heads": 2, "intermediate": 64, "layers": 2}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--epochs", type=int, default=15, help="of the fine-tuning; fewer for a quick look at the rest")
    parser.add_argument("--tiny", action="store_true", help="everything very small, to see that it runs")
    return parser.parse_args()


def write_sets(args: argparse.Namespace, folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Prepared treebanks: English-EWT by split, and the test sets by name."""
    limit = 40 if args.tiny else None
    ewt, tests = {}, {}
    for split in ("train", "dev"):
        ewt[split] = folder / f"{split}.conllu"
        data.write_trees(data.sentences(data.find(args.data, f"*ewt*{split}.conllu*"))[:limit], ewt[split])
    found = sorted(args.data.rglob("*_pud-*.conllu*"))
    if not found:
        raise SystemExit(f"error: no *_pud-*.conllu below {args.data}")
    for number in range(SETS):
        path = found[number % len(found)]
        name = path.name.partition("-")[0] + ("" if number < len(found) else "_again")
        tests[name] = folder / f"{name}.conllu"
        data.write_trees(data.sentences(path)[:limit], tests[name])
    return ewt, tests


def run(program: str, *arguments: str) -> tuple[float, str]:
    """Seconds that a program of the workflow takes, from its start to its end, and what it says."""
    started = time.perf_counter()
    # The first `python` there is, as in the rules: below tools/warm.py that is the one with the warm start.
    command = [shutil.which("python") or sys.executable, str(ROOT / "scripts" / program), *map(str, arguments)]
    # One thread, as in the rules; without that there is no warm start.
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(f"{program} failed\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - started, done.stderr


def stages_of(said: str, seconds: float) -> dict[str, float]:
    """The seconds of each stage that `evaluate.py` tells, and the rest of all its seconds."""
    line = next(line for line in said.splitlines() if line.startswith("seconds: "))
    stages = read_stages(line.removeprefix("seconds: "))
    return stages | {"rest": round(seconds - sum(stages.values()), 2)}


def random_tagger(folder: Path, base: Path, encoder, records: list[dict]) -> None:
    """A tuned POS model without any tuning."""
    task = get_task("pos").with_labels_of(records)
    head = task.make_head(encoder.config.hidden, 0.1)
    save_tuned(folder, base, TaskModel(encoder, head), task, {"settings": {"max_length": 256}})


@torch.inference_mode()
def padded(model: TaskModel, library: torch.nn.Module, task, examples: list[dict], device: torch.device) -> float:
    """Tokens per second of a plain loop: 32 examples at a time in their order, padded, bf16 autocast on CUDA."""
    rows = peer.rows_of("parsing" if task.name == "parsing" else "pos", examples)
    mixed = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()
    for count in (128, len(rows)):
        started = time.perf_counter()
        for start in range(0, count, 32):
            part = examples[start : start + 32]
            batch = {key: value.to(device) for key, value in peer.collate(rows[start : start + 32]).items()}
            words = max(len(example["word_starts"]) for example in part)
            starts = [example["word_starts"] + [0] * (words - len(example["word_starts"])) for example in part]
            batch["word_starts"] = torch.tensor(starts, device=device)
            batch["word_mask"] = torch.arange(words, device=device) < torch.tensor(
                [[len(example["word_starts"])] for example in part], device=device
            )
            with mixed:
                hidden = library(batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
                for tensor in task.predict(model.head, hidden, batch).values():
                    tensor.cpu()
    return sum(len(example["input_ids"]) for example in examples) / (time.perf_counter() - started)


def predictions(tuned: Path, base: Path, tests: dict[str, Path], device: torch.device) -> dict[str, float]:
    """Tokens per second of predictions for all test sets, ours and padded."""
    from transformers import BertModel

    info = read_info(tuned, base)
    task = get_task(info["task"], info["labels"])
    model = load_tuned_model(tuned, base, task)
    records = [record for path in tests.values() for record in task.read(path)]
    examples = task.examples(records, load_tokenizer(base, model.encoder.config.vocab_size), 256)
    tokens = sum(len(example["input_ids"]) for example in examples)
    library = BertModel(peer.library_config(model.encoder.config), add_pooling_layer=False).to(device).eval()
    model.head.to(device).eval()
    result = {"tokens": tokens, "padded_tokens_per_s": padded(model, library, task, examples, device)}
    model = model.place(device, choose_precision("auto", device))
    for _ in range(2):
        started = time.perf_counter()
        predict_all(model, task, examples, device)
        took = time.perf_counter() - started
    return result | {"ours_tokens_per_s": tokens / took, "ratio": tokens / took / result["padded_tokens_per_s"]}


def main() -> None:
    """Measure."""
    args = parse_args()
    device = choose_device(args.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    results: dict = {"device": name, "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ewt, tests = write_sets(args, folder)
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text(data.text_of(data.find(args.data, "vocab.txt*")), encoding="utf-8")
        tokenizer = wordpiece_tokenizer(vocabulary)
        config = EncoderConfig(vocab_size=tokenizer.get_vocab_size(), **(TINY if args.tiny else {}))
        encoder, base = fresh_encoder(config, 1), folder / "base"
        save_encoder(base, encoder, tokenizer)
        sets = [f"{name}={path}" for name, path in tests.items()]
        epochs = 1 if args.tiny else args.epochs
        seconds, _ = run(
            "finetune.py", "--model", base, "--task", "parsing", "--train", ewt["train"], "--dev", ewt["dev"],
            "--batch", "32", "--epochs", epochs, "--out", folder / "parser", "--device", args.device,
        )  # fmt: skip
        report = json.loads((folder / "parser/training.json").read_text(encoding="utf-8"))
        results["finetune"] = {
            "seconds": seconds, "steps": report["steps"], "training_seconds": report["seconds"],
            "in_program_seconds": report["seconds_in_all"], "dev_LAS": [row["LAS"] for row in report["dev"]],
        }  # fmt: skip
        print("finetune:", json.dumps(results["finetune"]), flush=True)
        random_tagger(folder / "tagger/model", base, encoder, get_task("pos").read(ewt["train"]))
        for task in ("parser", "tagger"):
            seconds, said = run(
                "evaluate.py", "--tuned", folder / task / "model", "--base", base, "--sets", *sets,
                "--out", folder / task / "scores.json", "--predictions", folder / task / "predictions.jsonl.gz",
                "--device", args.device,
            )  # fmt: skip
            results[task] = {"sets": len(sets), "different": len(set(tests)) - sum("_again" in n for n in tests)}
            results[task] |= {"seconds": seconds, "stages": stages_of(said, seconds)}
            print(f"evaluate {task}:", json.dumps(results[task]), flush=True)
        for task in ("parser", "tagger"):
            results[task]["predictions"] = predictions(folder / task / "model", base, tests, device)
            print(f"predictions, {task}:", json.dumps(results[task]["predictions"]), flush=True)
    if args.out:
        args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
