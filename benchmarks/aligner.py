"""Measure the word aligner: speed, memory, error rate; beside the original fast_align where it is at hand.

    python benchmarks/aligner.py

English-French with gold links: time, memory, error rate, agreement. Real text is taken from the folder named by
CROSSALIGN_SHARED (default: `../shared`); nothing is written outside a temporary folder. The original is used when
`fast_align` is on PATH.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from common import ROOT, Cost, cost_of, new_parser, print_table, shared_folder, text_of

from crossalign.alignment.links import METHODS, LinkSet, parse_links, symmetrise
from crossalign.runtime.errors import UserError, run_main

BUILTIN = [sys.executable, str(ROOT / "scripts" / "fast_align.py")]
USUAL = ["-d", "-o", "-v"]
# What the original printed on this very text elsewhere, for readers without it.
RECORDED = {"intersection": 17.6, "grow-diag-final-and": 22.1}
Pairs = list[tuple[str, str]]
Link = tuple[int, int]


@dataclass
class Score:
    """Links against known links, summed over sentences: the rates of Och and Ney (2003) follow."""

    found: int = 0
    sure: int = 0
    found_sure: int = 0
    found_possible: int = 0

    def add(self, links: Iterable[Link], sure: Iterable[Link], possible: Iterable[Link] = ()) -> None:
        """Add one sentence; sure links are possible too, whether or not they are repeated there."""
        links, sure = set(links), set(sure)
        self.found += len(links)
        self.sure += len(sure)
        self.found_sure += len(links & sure)
        self.found_possible += len(links & (sure | set(possible)))

    def rates(self) -> tuple[float, float, float]:
        """Precision, recall and error rate in percent."""
        right = self.found_sure + self.found_possible
        rates = self.found_possible / self.found, self.found_sure / self.sure, 1.0 - right / (self.found + self.sure)
        return tuple(100 * rate for rate in rates)


def parse_gold(line: str) -> tuple[set[Link], set[Link]]:
    """Sure and possible links of a line such as `1-1 2p3` (counted from 1, as in the shared tasks), counted from 0."""
    sure, possible = set(), set()
    for token in line.split():
        kind = "p" if "p" in token else "-"
        i, j = token.split(kind)
        (possible if kind == "p" else sure).add((int(i) - 1, int(j) - 1))
    return sure, possible


def data_folder() -> Path:
    """Where the real text is."""
    folder = shared_folder() / "data"
    if not folder.is_dir():
        raise UserError(f"no real text in {folder}; name the folder that holds data/ in CROSSALIGN_SHARED")
    return folder


def lines(path: Path) -> list[str]:
    """The lines of a gzip file."""
    return text_of(path).splitlines()


def words(text: str) -> str:
    """Runs of letters and digits, and single other characters."""
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def parallel(data: Path) -> Pairs:
    """English and French sentences of Tatoeba, and verses that both Bibles have; tokenised."""
    rows = [line.split("\t")[:2] for line in lines(data / "tatoeba" / "eng-fra.tsv.gz")]
    english, french = (
        dict(line.split("\t", 1) for line in lines(data / "bible" / f"{code}.tsv.gz")) for code in ("eng", "fra")
    )
    rows += [(text, french[verse]) for verse, text in english.items() if verse in french]
    return [(words(left), words(right)) for left, right in rows]


def write_bitext(path: Path, pairs: Pairs) -> int:
    """Write the pairs that have words on both sides; gives their number."""
    kept = [pair for pair in pairs if all(pair)]
    path.write_text("".join(f"{a} ||| {b}\n" for a, b in kept), encoding="utf-8")
    return len(kept)


def measure(command: list[str], out: Path, **environment: str) -> Cost:
    """What a command costs, with its output in a file."""
    return cost_of(command, out, {**os.environ, **environment}, subprocess.DEVNULL)


def read(path: Path) -> LinkSet:
    """Links of a file."""
    with path.open("rb") as stream:
        return parse_links(stream, path.name)


def agreement(ours: LinkSet, theirs: LinkSet) -> float:
    """F1 of two sets of links over the same sentences."""
    score = Score()
    for sentence in range(len(ours)):
        score.add(ours.pairs(sentence), theirs.pairs(sentence))
    return 100.0 - score.rates()[2]


def quality(args: argparse.Namespace, folder: Path) -> None:
    """English-French: time, memory, error rate on the gold sentences, agreement with the original."""
    data = data_folder()
    test = [
        tuple(" ".join(side.split()) for side in line.split("|||"))
        for line in lines(data / "wordalign/enfr.src-tgt.gz")
    ]
    gold = [parse_gold(line) for line in lines(data / "wordalign/enfr.gold.gz")]
    bitext = folder / "bitext"
    count = write_bitext(bitext, [*parallel(data), *test])
    print(f"{count} English-French pairs, the last {len(gold)} with gold links\n")

    threads = ["--threads", str(args.threads)]
    both = [*BUILTIN, "-i", str(bitext), *USUAL, "--symmetrise", "grow-diag-final-and"]
    cache = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    rows, times = [], {}
    runs = [("builtin, first run (compiles)", [*both, *threads]), ("builtin", [*both, *threads])]
    runs.append(("builtin, 1 thread", [*both, "--threads", "1"]))
    for name, command in runs:
        times[name] = measure(command, folder / "both", **cache)
        rows.append([name, *times[name].columns()])
    original = shutil.which("fast_align")
    systems: dict[str, list[LinkSet]] = {"builtin": []}
    for turn in ([], ["-r"]):
        measure([*BUILTIN, "-i", str(bitext), *USUAL, *turn, *threads], folder / "one", **cache)
        systems["builtin"].append(read(folder / "one"))
    if original:
        cost, systems["fast_align"] = Cost(), []
        for turn in ([], ["-r"]):
            cost += measure([original, "-i", str(bitext), *USUAL, *turn], folder / "one", OMP_NUM_THREADS="1")
            systems["fast_align"].append(read(folder / "one"))
        rows.append(["fast_align, 1 thread, without symmetrisation", *cost.columns()])
        for name, ours in times.items():
            print(f"{name}: {cost.wall / ours.wall:.1f} x faster than fast_align by the clock")
        for turn, name in enumerate(("forward", "reverse")):
            shared = agreement(systems["builtin"][turn], systems["fast_align"][turn])
            print(f"{name} links of builtin and fast_align: F1 {shared:.2f}")
        print()
    else:
        print("fast_align is not on PATH: no comparison in this run\n")
    print_table(["both directions and symmetrisation", "seconds", "CPU seconds", "peak MB"], rows)

    rows = []
    for method in METHODS:
        row = [method]
        for links in systems.values():
            score, final = Score(), symmetrise(*links, method)
            for k, (sure, possible) in enumerate(gold):
                score.add(final.pairs(len(final) - len(gold) + k), sure, possible)
            row += [f"{rate:.1f}" for rate in score.rates()]
        rows.append([*row, f"{RECORDED[method]:.1f}" if method in RECORDED else ""])
    header = [f"{name} {what}" for name in systems for what in ("precision", "recall", "AER")]
    print_table(["method", *header, "recorded AER of fast_align"], rows)


def main() -> None:
    """Measure in a temporary folder."""
    parser = new_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-aligner-") as folder:
        quality(args, Path(folder))


if __name__ == "__main__":
    run_main(main)
