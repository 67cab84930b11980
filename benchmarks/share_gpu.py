"""Several fine-tunings on one GPU at the same time against the same ones after each other.

Calls scripts/finetune.py as the workflow does, each with a seed of its own, so start-up is in the numbers. All work on
one GPU, through MPS where it is installed; on a CPU they share its cores. Data and weights are made up (sentences as
long as those of an English treebank, weights of mBERT's shape): what a step costs does not depend on
them.

Prints one Markdown row per way. The ratio is the time per fine-tuning of one after another over that of this way: above
1, sharing pays. The last column checks that sharing changes no result.
Usage: python benchmarks/share_gpu.py [--runs 4] [--at-once 1 2 4] [--gpu 0] [--device cuda|cpu]
[--model-size mbert|small|tiny] [--out FILE.json]
With --waves N each way makes N times as many fine-tunings as share the GPU, so that many ways take little time.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from common import ROOT, new_parser, print_row, print_table, write_results

from crossalign.runtime.gpus import share_by_mps

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TAGS = ["O", "O", "O", "O", "B-PER", "B-LOC", "B-ORG"]
# Shape, words, sentences, epochs, batch: mBERT and a treebank, the models of docs/results/pretrained-here with about
# as many steps as its fine-tunings have, or what a laptop does in seconds.
SIZES = {
    "mbert": ({}, 30_000, 10_000, 2, 16),
    "small": ({"hidden": 384, "heads": 6, "intermediate": 1536}, 30_000, 12_500, 4, 32),
    "tiny": ({"hidden": 16, "layers": 2, "heads": 2, "intermediate": 32}, 200, 60, 1, 16),
}
COLUMNS = {
    "at_once": "at once",
    "runs": "runs",
    "seconds": "seconds",
    "per_hour": "an hour",
    "ratio": "ratio",
    "training_seconds_of_one": "training of one, s",
    "steps_of_one": "steps of one",
    "mps": "MPS",
    "same_weights": "same weights",
}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--runs", type=int, default=4, help="fine-tunings of each way")
    parser.add_argument("--waves", type=int, help="instead: so many times what share the GPU")
    parser.add_argument("--at-once", nargs="+", type=int, default=[1, 2, 4], help="how many share the GPU; 1 is added")
    parser.add_argument("--gpu", default="0", help="the GPU, as nvidia-smi numbers them")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--model-size", default="mbert", choices=list(SIZES))
    parser.add_argument("--sentences", type=int, help="examples of a fine-tuning")
    parser.add_argument("--epochs", type=int, help="passes over them")
    parser.add_argument("--out", type=Path, help="also write the numbers as JSON")
    args = parser.parse_args()
    if min(args.runs, 1 if args.waves is None else args.waves, *args.at_once) < 1:
        parser.error("--runs, --waves and --at-once are numbers from 1")
    return args


def make_model(folder: Path, shape: dict, words: int) -> None:
    """A model folder with random weights."""
    from crossalign.engine.folders import save_encoder
    from crossalign.engine.random_init import fresh_encoder
    from crossalign.engine.shape import EncoderConfig
    from crossalign.engine.tokenizer import wordpiece_tokenizer

    folder.mkdir()
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*SPECIAL, *(f"w{number}" for number in range(words))]) + "\n", encoding="utf-8")
    tokenizer = wordpiece_tokenizer(vocabulary)
    config = EncoderConfig(vocab_size=tokenizer.get_vocab_size(), **shape)
    save_encoder(folder, fresh_encoder(config, 1), tokenizer)


def make_data(file: Path, words: int, sentences: int) -> None:
    """Tagged sentences; their lengths are spread like those of English-EWT (16 words on average, few above 50)."""
    random = Random(1)
    with file.open("w", encoding="utf-8") as stream:
        for number in range(sentences):
            count = min(100, 1 + int(random.gammavariate(1.6, 9.5)))
            tokens = [f"w{random.randrange(words)}" for _ in range(count)]
            tags = [random.choice(TAGS) for _ in tokens]
            print(json.dumps({"id": str(number), "tokens": tokens, "tags": tags}), file=stream)


def start(folder: Path, seed: int, args: argparse.Namespace, share: int, epochs: int, batch: int) -> subprocess.Popen:
    """One fine-tuning; seed 0 is the one before the first measurement, which finds the caches empty."""
    out = folder / f"{share}-at-once" / f"seed{seed}"
    out.mkdir(parents=True)
    # A benchmark inside of a job of a scheduler chooses its GPU all the same.
    chosen = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")
    environment = {name: value for name, value in os.environ.items() if name not in chosen}
    environment |= {"CROSSALIGN_GPUS": args.gpu, "OMP_NUM_THREADS": "1"}
    environment["CROSSALIGN_GPU_SHARE"] = str(share)
    command = [
        *(sys.executable, str(ROOT / "scripts" / "finetune.py"), "--task", "ner"),
        *("--model", str(folder / "model"), "--train", str(folder / "train.jsonl"), "--out", str(out)),
        *("--settings", json.dumps({"selection": "last", "batch": batch, "epochs": epochs})),
        *("--seed", str(seed), "--device", args.device),
    ]
    with (out / "log").open("w") as stream:
        return subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)


def said(folder: Path, seed: int, share: int) -> str:
    """What a fine-tuning wrote."""
    return (folder / f"{share}-at-once" / f"seed{seed}" / "log").read_text(encoding="utf-8")


def measure(folder: Path, args: argparse.Namespace, share: int, epochs: int, batch: int) -> tuple[dict, list[str]]:
    """All runs, `share` of them at the same time: what they took, and the checksums of the weights that they made."""
    runs = share * args.waves if args.waves else args.runs
    waiting, working, began = list(range(1, runs + 1)), {}, time.perf_counter()
    while waiting or working:
        while waiting and len(working) < share:
            working[waiting[0]] = start(folder, waiting[0], args, share, epochs, batch)
            del waiting[0]
        for seed in [seed for seed, process in working.items() if process.poll() is not None]:
            if working.pop(seed).returncode:
                for process in working.values():
                    process.kill()
                sys.exit(said(folder, seed, share))
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    made = [folder / f"{share}-at-once" / f"seed{seed}" for seed in range(1, runs + 1)]
    reports = [json.loads((place / "training.json").read_text()) for place in made]
    weights = [hashlib.sha256((place / "model/model.safetensors").read_bytes()).hexdigest() for place in made]
    row = {
        "at_once": share,
        "runs": runs,
        "seconds": round(seconds, 2),
        "per_hour": round(3600 * runs / seconds),
        "training_seconds_of_one": round(sum(report["seconds"] for report in reports) / len(reports), 2),
        "steps_of_one": reports[0]["steps"],
        "mps": args.mps,
        "device": reports[0]["device"],
    }
    return row, weights


def main() -> None:
    """Print a table."""
    args = parse_args()
    shape, words, sentences, epochs, batch = SIZES[args.model_size]
    sentences, epochs = args.sentences or sentences, args.epochs or epochs
    rows: list[dict] = []
    os.environ["CROSSALIGN_GPUS"] = args.gpu
    args.mps = args.device == "cuda" and share_by_mps(os.environ)
    print_table(list(COLUMNS.values()))
    with tempfile.TemporaryDirectory() as name:
        folder, expected = Path(name), []
        make_model(folder / "model", shape, words)
        make_data(folder / "train.jsonl", words, sentences)
        if start(folder, 0, args, 1, 1, batch).wait():
            sys.exit(said(folder, 0, 1))
        for share in sorted({1, *args.at_once}):
            row, weights = measure(folder, args, share, epochs, batch)
            rows.append(row)
            # With waves a way also has seeds that none before it had.
            same = all(one == other for one, other in zip(expected, weights, strict=False))
            expected += weights[len(expected) :]
            alone, each = (way["seconds"] / way["runs"] for way in (rows[0], row))
            row |= {"ratio": round(alone / each, 2), "same_weights": same}
            print_row(["yes" if row[key] is True else "no" if row[key] is False else row[key] for key in COLUMNS])
            write_results(args.out, rows)
    print(f"\n{args.model_size}: {sentences:,} sentences, {epochs} epochs, batches of {batch}, on {rows[0]['device']}")


if __name__ == "__main__":
    main()
