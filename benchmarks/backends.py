"""The price of generality: our own encoder and the library's model behind the same engine, side by side.

Both load the same folder (mBERT's shape, random weights), fine-tune POS in batches of 16 and embed PUD sentences, all
layers. Each measurement is a process of its own: loading counts the imports. On a GPU
steps run in bf16.

Usage: python benchmarks/backends.py --data DIR [--device cuda|cpu] [--quick] [--out FILE.json]
DIR holds, anywhere below it, *pud*.conllu, *ewt*train.conllu, *ewt*dev.conllu and mBERT's vocab.txt, with or without
.gz.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from common import device_name, find, new_parser, own_process, print_table, text_of, write_results
from embed import MBERT, TINY, embed_ours, make_model, write_texts

BACKENDS = ("own", "library")
# What is measured, its unit, and whether more is better.
ROWS = {"load": ("seconds to load", False), "steps": ("POS steps per second", True),
        "sentences": ("sentences embedded per second", True)}  # fmt: skip


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cuda", "cpu"))
    parser.add_argument("--sentences", type=int, default=1000, help="per language (default: 1000)")
    parser.add_argument("--languages", type=int, default=15, help="at most so many (default: 15)")
    parser.add_argument(
        "--quick", action="store_true", help="two narrow layers, 32 sentences of 2 languages: whether it runs"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def embed(args: argparse.Namespace, folder: Path, backend: str) -> dict[str, float]:
    """Sentences per second of the whole way from text to arrays, seconds to load before it, peak memory in bytes."""
    with tempfile.TemporaryDirectory() as out:
        found = embed_ours(folder / "model", folder / "texts", Path(out), args.device, backend=backend)
    lines = sum(len(text_of(path).splitlines()) for path in (folder / "texts").glob("*.txt"))
    return found | {"sentences": lines / found["seconds"]}


def train(args: argparse.Namespace, folder: Path, backend: str) -> dict[str, float]:
    """Steps per second of a POS fine-tuning, seconds to load the encoder before it."""
    began = time.perf_counter()
    from crossalign.engine.folders import load_encoder

    encoder, _ = load_encoder(folder / "model", backend)
    loading = time.perf_counter() - began
    from train_step import Bench, ours

    with tempfile.TemporaryDirectory() as place:
        known = argparse.Namespace(data=args.data, device=args.device, quick=args.quick, demo=False, profile=False)
        bench = Bench(known, Path(place))
        bench._encoder = encoder
        found = ours(bench, "pos", "bf16" if bench.cuda else "fp32")
    return found | {"steps": 1000 / found["ms"], "load": loading}


def measure(args: argparse.Namespace, job: str, folder: Path, backend: str) -> dict[str, float]:
    """One measurement, in a process of its own."""
    shared = ["--data", args.data, "--device", args.device, *(["--quick"] if args.quick else [])]
    return own_process(*shared, "--job", job, folder, backend)


def compare(args: argparse.Namespace, folder: Path) -> dict[str, dict]:
    """Both backends, and their ratio: how many times as long the library takes."""
    found = {backend: measure(args, "train", folder, backend) for backend in BACKENDS}
    for backend in BACKENDS:
        found[backend]["embedding"] = vectors = measure(args, "embed", folder, backend)
        found[backend]["sentences"] = vectors["sentences"]
    rows = []
    for key, (label, more) in ROWS.items():
        own, library = (found[backend][key] for backend in BACKENDS)
        rows.append([label, f"{own:.2f}", f"{library:.2f}", f"{own / library if more else library / own:.2f}"])
    print_table(["mBERT's size", *BACKENDS, "library takes, times"], rows)
    return found


def main() -> None:
    """Measure, print, write."""
    args = parse_args()
    if args.job:
        job, folder, backend = args.job
        print(json.dumps((train if job == "train" else embed)(args, Path(folder), backend)))
        return
    count, languages = (32, 2) if args.quick else (args.sentences, args.languages)
    raw = MBERT | (TINY if args.quick else {})
    raw["vocab_size"] = len(text_of(find(args.data, "vocab.txt*")).splitlines())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder / "model", raw, args.data, args.device, torch.float32)
        write_texts(args.data, folder / "texts", languages, count)
        if args.device == "cuda":
            torch.cuda.empty_cache()
        name = device_name(torch.device(args.device))
        print(f"{name}, torch {torch.__version__}: {languages} x {count} sentences of PUD\n", flush=True)
        write_results(args.out, {"device": name, "found": compare(args, folder)})


if __name__ == "__main__":
    main()
