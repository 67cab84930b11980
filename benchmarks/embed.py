"""Sentence embeddings: ours against a padded batch-32 loop with transformers, from text on disk to arrays on disk.

Both embed the same parallel sentences (PUD) with the same random weights of mBERT's shape, all layers, the mean over
all tokens, at most 100 of them. The loop takes sentences in their order, pads each 32 to the longest, averages on the
device, and writes a language when it is finished. Loading, imports included, is told apart. Every measurement is a
process of its own, so that its peak memory is its own; a last one has several times as many sentences, to show that
memory does not grow with them.

Usage: python benchmarks/embed.py --data DIR [--device cuda|cpu] [--sentences N] [--languages N] [--more N]
[--precisions fp32 bf16] [--quick]
DIR holds, anywhere below it, *pud*.conllu.gz (or .conllu) and mBERT's vocab.txt[.gz].
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from common import find, new_parser, own_process, print_row, print_table, text_of

MBERT = {
    "model_type": "bert", "vocab_size": 119547, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "max_position_embeddings": 512, "pad_token_id": 0, "hidden_act": "gelu",
    "initializer_range": 0.02, "hidden_dropout_prob": 0.1,
}  # fmt: skip
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
LENGTH = 100


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cuda", "cpu"))
    parser.add_argument("--sentences", type=int, default=1000, help="per language")
    parser.add_argument("--languages", type=int, default=99, help="at most so many")
    parser.add_argument("--more", type=int, default=5, help="how many times as many sentences for the memory check")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), help="default: both; on a CPU fp32")
    parser.add_argument(
        "--quick", action="store_true", help="64 sentences of 2 languages: whether it runs, not how fast"
    )
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def write_texts(data: Path, folder: Path, languages: int, sentences: int) -> None:
    """One file per language with its first sentences, from their beginning again if there are too few."""
    files = sorted(path for path in data.rglob("*pud*.conllu*") if path.suffix in (".gz", ".conllu"))[:languages]
    if not files:
        sys.exit(f"error: {data} holds no *pud*.conllu.gz")
    folder.mkdir()
    for path in files:
        lines = [line[9:] for line in text_of(path).split("\n") if line.startswith("# text = ")]
        chosen = (lines * (-(-sentences // len(lines))))[:sentences]
        (folder / f"{path.name.split('_')[0]}.txt").write_text("\n".join(chosen) + "\n", encoding="utf-8")


def make_model(folder: Path, raw: dict, data: Path, device: str, dtype: torch.dtype) -> int:
    """A folder with random weights for a config of the library, and mBERT's vocabulary; how many weights it has."""
    from transformers import AutoConfig, AutoModel

    from crossalign.engine.tokenizer import wordpiece_tokenizer

    folder.mkdir()
    (folder / "vocab.txt").write_text(text_of(find(data, "vocab.txt*")), encoding="utf-8")
    wordpiece_tokenizer(folder / "vocab.txt").save(str(folder / "tokenizer.json"))
    torch.manual_seed(1)
    with torch.device(device):
        network = AutoModel.from_config(AutoConfig.for_model(**raw), dtype=dtype)
    network.save_pretrained(folder)
    return network.num_parameters()


def embed_ours(
    model: Path, texts: Path, out: Path, device: str, precision: str = "auto", backend: str = "auto"
) -> dict[str, float]:
    """The program's own way."""
    start = time.perf_counter()
    from crossalign.embedding.model import load_model
    from crossalign.embedding.sentences import Options, embed_files
    from crossalign.engine.device import choose_device

    loaded = load_model(model, choose_device(device), precision, backend=backend)
    loading = time.perf_counter() - start
    files = {path.stem: path for path in sorted(texts.glob("*.txt"))}
    short = out / "warm.txt"
    short.write_text("\n".join(text_of(next(iter(files.values()))).splitlines()[:64]) + "\n", encoding="utf-8")
    embed_files(loaded, {"warm": short}, out, Options(LENGTH, "include"))
    return timed(lambda: embed_files(loaded, files, out, Options(LENGTH, "include")), device, loading)


def embed_padded(model: Path, texts: Path, out: Path, device: str, precision: str) -> dict[str, float]:
    """The straightforward way."""
    start = time.perf_counter()
    import transformers

    transformers.logging.set_verbosity_error()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    network = transformers.AutoModel.from_pretrained(model, dtype=dtype, use_safetensors=True).to(device).eval()
    loading = time.perf_counter() - start
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(model / "tokenizer.json"), pad_token="[PAD]", model_max_length=LENGTH
    )

    @torch.no_grad()
    def embed(lines: list[str]) -> np.ndarray:
        parts = []
        for place in range(0, len(lines), 32):
            batch = tokenizer(lines[place : place + 32], padding=True, truncation=True, return_tensors="pt").to(device)
            mask = batch["attention_mask"]
            states = network(batch["input_ids"], attention_mask=mask, output_hidden_states=True).hidden_states
            weights = mask[..., None].to(states[0].dtype)
            means = [(state * weights).sum(1) / weights.sum(1) for state in states]
            parts.append(torch.stack(means).float().cpu().numpy())
        return np.concatenate(parts, 1)

    def work() -> None:
        for path in sorted(texts.glob("*.txt")):
            np.save(out / f"{path.stem}.npy", embed(path.read_text(encoding="utf-8").splitlines()))

    embed(text_of(next(iter(sorted(texts.glob("*.txt"))))).splitlines()[:64])
    return timed(work, device, loading)


def timed(work, device: str, loading: float) -> dict[str, float]:
    """Seconds of the work, and what this process has needed until its end."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    # Not ru_maxrss: that one remembers the process which started this one.
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    gpu = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return {"seconds": seconds, "loading": loading, "host": peak, "gpu": gpu}


def difference(ours: Path, theirs: Path) -> float:
    """The largest difference in the first language, relative to the standard deviation of its layer."""
    path = sorted(theirs.glob("*.npy"))[0]
    a, b = np.load(ours / path.name, mmap_mode="r"), np.load(path, mmap_mode="r")
    return max(float(np.abs(x - y).max() / y.std()) for x, y in zip(a, b, strict=True))


def main() -> None:
    """Measure all ways, print the table."""
    args = parse_args()
    if args.job:
        way, *folders, device, precision = args.job
        Path(folders[-1]).mkdir()
        embed = embed_ours if way == "ours" else embed_padded
        print(json.dumps(embed(*map(Path, folders), device, precision)))
        return
    if args.data is None:
        sys.exit("error: --data is needed: a folder with PUD treebanks and mBERT's vocabulary")
    shape, args.languages = (MBERT | TINY, 2) if args.quick else (MBERT, args.languages)
    per_language = 64 if args.quick else args.sentences
    precisions = args.precisions or (["fp32", "bf16"] if args.device == "cuda" else ["fp32"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder / "model", shape, args.data, args.device, torch.float32)
        if args.device == "cuda":
            torch.cuda.empty_cache()
        write_texts(args.data, folder / "texts", args.languages, per_language)
        write_texts(args.data, folder / "more", args.languages, per_language * args.more)
        total = per_language * len(list((folder / "texts").iterdir()))
        print(f"{args.device}, torch {torch.__version__}: {total} sentences of PUD\n", flush=True)
        columns = ["way", "precision", "sentences/s", "x fp32 loop", "x bf16 loop", "peak host MB", "peak GPU MB",
                   "loading s", "difference"]  # fmt: skip
        print_table(columns)
        rates: dict[str, float] = {}
        for way in ("padded loop", "ours"):
            for precision in precisions:
                out = folder / f"{way[:4]}-{precision}"
                found = own_process("--job", way[:4], folder / "model", folder / "texts", out, args.device, precision)
                rate = total / found["seconds"]
                rates.setdefault(precision, rate)
                against = [f"{rate / rates[other]:.1f}" if other in rates else "" for other in ("fp32", "bf16")]
                first = folder / f"padd-{precisions[0]}"
                gap = f"{difference(out, first):.1e}"
                row(way, precision, f"{rate:.0f}", *against, found, gap)
                if out != first:
                    shutil.rmtree(out)
        found = own_process(
            "--job", "ours", folder / "model", folder / "more", folder / "longer", args.device, precisions[-1]
        )
        rate = args.more * total / found["seconds"]
        row(f"ours, {args.more} x as many", precisions[-1], f"{rate:.0f}", "", "", found, "")


def row(way: str, precision: str, rate: str, first: str, second: str, found: dict[str, float], gap: str) -> None:
    """A line of the table."""
    host, gpu = f"{found['host'] / 1e6:.0f}", f"{found['gpu'] / 1e6:.0f}"
    print_row([way, precision, rate, first, second, host, gpu, f"{found['loading']:.1f}", gap])


if __name__ == "__main__":
    main()
