"""How much of the similarity of two languages is the length of their sentences? A control for any model.

Translations of each other are long and short together. Where a sentence's vector tells its length, as the mean of its
position vectors may, languages seem alike for that reason alone. For each layer, per language:

    as it is    CKA and ANC of English sentences with their translations
    strangers   CKA of English sentences with others of the same length as their translations: all that length can do
    apart       CKA and ANC of what is left of the vectors when a smooth function of the length is taken out

Usage: python benchmarks/sentence_length.py --model FOLDER --text en=FILE ru=FILE ... [--max-length 128] [--device cpu]
The first language is compared with each of the others; files hold parallel sentences, one a line.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))

from crossalign.analysis.similarity import anc, cka

ROOT = Path(__file__).resolve().parent.parent


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--text", required=True, nargs="+", metavar="LANG=FILE")
    parser.add_argument(
        "--max-length", type=int, default=200, help="tokens of a sentence, at most the positions of the model"
    )
    parser.add_argument("--device", default="auto")
    return parser.parse_args()


def lengths_of(tokenizer: Tokenizer, file: Path, most: int) -> np.ndarray:
    """Tokens of each sentence that its vector is a mean of: no special ones, none beyond the place where it is cut."""
    lines = file.read_text(encoding="utf-8").splitlines()
    counts = [len(one.ids) for one in tokenizer.encode_batch(lines, add_special_tokens=False)]
    return np.clip(np.array(counts, float), 1, most - 2)


def strangers(lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each sentence another one, as long as it or nearly so."""
    order = np.lexsort((rng.random(len(lengths)), lengths))
    others = np.empty(len(order), int)
    others[order] = np.roll(order, 1)
    return others


def apart(vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Vectors without what a smooth function of the length explains."""
    powers = [lengths**p for p in (0, 1, 2, 3, -1)] + [np.log(lengths)]
    basis, _ = np.linalg.qr(np.stack([p / np.abs(p).max() for p in powers], 1))
    return vectors - basis @ (basis.T @ vectors)


def main() -> None:
    """Embed, compare, print one table per language."""
    args = parse_args()
    files = {lang: Path(file) for lang, file in (text.split("=", 1) for text in args.text)}
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    lengths = {lang: lengths_of(tokenizer, file, args.max_length) for lang, file in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(ROOT / "scripts/embed_sentences.py"), "--model", str(args.model)]
        options = ["--max-length", str(args.max_length), "--device", args.device, "--out", folder]
        if subprocess.run([*program, "--text", *args.text, *options]).returncode:
            raise SystemExit(1)
        vectors = {lang: np.load(Path(folder) / f"{lang}.npy") for lang in files}
    first, *others = files
    left = [apart(layer, lengths[first]) for layer in vectors[first]]
    for lang in others:
        stranger = strangers(lengths[lang], np.random.default_rng(1))
        rest = [apart(layer, lengths[lang]) for layer in vectors[lang]]
        pairs = list(zip(vectors[first], vectors[lang], strict=True))
        rows = {
            "CKA as it is": [cka(a, b) for a, b in pairs],
            "CKA, strangers": [cka(a, b[stranger]) for a, b in pairs],
            "CKA, length apart": [cka(a, b) for a, b in zip(left, rest, strict=True)],
            "ANC as it is": [anc(a, b) for a, b in pairs],
            "ANC, length apart": [anc(a, b) for a, b in zip(left, rest, strict=True)],
        }
        print(f"\n| {first}-{lang}, layer | {' | '.join(map(str, range(len(pairs))))} |")
        print("|---" * (len(pairs) + 1) + "|")
        for name, values in rows.items():
            print(f"| {name} | {' | '.join(f'{value:.2f}' for value in values)} |")


if __name__ == "__main__":
    main()
