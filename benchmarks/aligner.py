"""Measure the word aligner on English-French with gold links: time, memory, error rate, beside the original fast_align.

    python benchmarks/aligner.py

Real text is taken from the folder named by CROSSALIGN_SHARED (default: `../shared`); nothing is written outside a
temporary folder. The original is measured when `fast_align` is on PATH.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, Cost, cost_of, new_parser, print_table, shared_folder, text_of

from crossalign.alignment.links import METHODS, LinkSet, parse_links, symmetrise
from crossalign.runtime.errors import UserError, run_main

BUILTIN = [sys.executable, str(ROOT / "scripts" / "fast_align.py")]
# What the original printed on this very text elsewhere, for readers without it.
RECORDED = {"intersection": 17.6, "grow-diag-final-and": 22.1}
Gold = list[tuple[set[tuple[int, int]], set[tuple[int, int]]]]


def rates(links: LinkSet, gold: Gold) -> list[str]:
    """Precision, recall and error rate (Och and Ney 2003) in percent, of the last sentences."""
    found = sure = right = possible = 0
    for place, (known, doubtful) in enumerate(gold, len(links) - len(gold)):
        mine = set(links.pairs(place))
        found, sure = found + len(mine), sure + len(known)
        right, possible = right + len(mine & known), possible + len(mine & (known | doubtful))
    return [f"{100 * rate:.1f}" for rate in (possible / found, right / sure, 1 - (right + possible) / (found + sure))]


def parse_gold(line: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Sure and possible links of a line such as `1-1 2p3` (counted from 1, as in the shared tasks), counted from 0."""
    links = [(kind, int(i) - 1, int(j) - 1) for i, kind, j in re.findall(r"(\d+)([-p])(\d+)", line)]
    return tuple({(i, j) for kind, i, j in links if kind == wanted} for wanted in "-p")


def lines(path: Path) -> list[str]:
    """The lines of a gzip file."""
    return text_of(path).splitlines()


def bitext_of(data: Path) -> list[str]:
    """Lines of Tatoeba and of verses that both Bibles have, tokenised; then the sentences with gold links."""
    rows = [line.split("\t")[:2] for line in lines(data / "tatoeba" / "eng-fra.tsv.gz")]
    english, french = (
        dict(line.split("\t", 1) for line in lines(data / "bible" / f"{code}.tsv.gz")) for code in ("eng", "fra")
    )
    rows += [[text, french[verse]] for verse, text in english.items() if verse in french]
    pairs = [[" ".join(re.findall(r"\w+|[^\w\s]", text)) for text in row] for row in rows]
    pairs += [
        [" ".join(side.split()) for side in line.split("|||")] for line in lines(data / "wordalign/enfr.src-tgt.gz")
    ]
    return [f"{left} ||| {right}\n" for left, right in pairs if left and right]


def measure(args: argparse.Namespace, folder: Path) -> None:
    """Both directions of both programs, and the rates of each symmetrisation."""
    data = shared_folder() / "data"
    if not data.is_dir():
        raise UserError(f"no real text in {data.parent}; name the folder that holds data/ in CROSSALIGN_SHARED")
    gold = [parse_gold(line) for line in lines(data / "wordalign/enfr.gold.gz")]
    text = bitext_of(data)
    bitext, out = folder / "bitext", folder / "links"
    bitext.write_text("".join(text), encoding="utf-8")
    print(f"{len(text)} English-French pairs, the last {len(gold)} with gold links\n")
    many = [*BUILTIN, "--threads", str(args.threads)]
    programs = {
        "builtin, first run (compiles)": many,
        "builtin": many,
        "builtin, 1 thread": [*BUILTIN, "--threads", "1"],
    }
    if original := shutil.which("fast_align"):
        programs["fast_align, 1 thread"] = [original]
    rows, systems = [], {}
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    for name, program in programs.items():
        cost, systems[name] = Cost(), []
        for turn in ([], ["-r"]):
            command = [*program, "-i", str(bitext), "-d", "-o", "-v", *turn]
            cost += cost_of(command, out, environment, subprocess.DEVNULL)
            systems[name].append(parse_links(out.read_bytes().splitlines(), name))
        rows.append([name, *cost.columns()])
    print_table(["both directions", "seconds", "CPU seconds", "peak MB"], rows)
    shown = [name for name in programs if name in ("builtin", "fast_align, 1 thread")]
    header = [f"{name} {what}" for name in shown for what in ("precision", "recall", "AER")]
    rows = [
        [method, *(rate for name in shown for rate in rates(symmetrise(*systems[name], method), gold)),
         str(RECORDED.get(method, ""))]
        for method in METHODS
    ]  # fmt: skip
    print_table(["method", *header, "recorded AER of fast_align"], rows)


def main() -> None:
    """Measure in a temporary folder."""
    parser = new_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-aligner-") as folder:
        measure(args, Path(folder))


if __name__ == "__main__":
    run_main(main)
