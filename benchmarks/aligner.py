"""Measure the word aligner: speed, memory, error rate, growth; beside the original fast_align where it is at hand.

    python benchmarks/aligner.py quality        English-French with gold links: time, memory, error rate, agreement
    python benchmarks/aligner.py growth         30K to 250K pairs: does time grow linearly?
    python benchmarks/aligner.py world DIR      the demo world in DIR, whose true links are known

Real text is taken from the folder named by CROSSALIGN_SHARED (default: `../shared`); nothing is written outside a
temporary folder. The original is used when `fast_align` is on PATH.
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

from common import ROOT, Cost, cost_of, new_parser, print_row, print_table, shared_folder, text_of

from crossalign.alignment.links import METHODS, LinkSet, parse_links, symmetrise
from crossalign.runtime.errors import UserError, run_main

BUILTIN = [sys.executable, str(ROOT / "scripts" / "fast_align.py")]
USUAL = ["-d", "-o", "-v"]
# What the original printed on this very text elsewhere, for readers without it.
RECORDED = {"intersection": 17.6, "grow-diag-final-and": 22.1}
GROWTH = (30_000, 60_000, 125_000, 250_000)
# Whole Bibles whose words are separated by spaces.
BIBLES = ("fra", "deu", "spa", "rus", "ces", "fin", "vie")
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

    @property
    def precision(self) -> float:
        """Share of the links that are possible."""
        return self.found_possible / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the sure links that were found."""
        return self.found_sure / self.sure if self.sure else 0.0

    @property
    def error_rate(self) -> float:
        """1 - (found sure + found possible) / (found + sure)."""
        total = self.found + self.sure
        return 1.0 - (self.found_sure + self.found_possible) / total if total else 0.0


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


def tatoeba(data: Path, other: str) -> Pairs:
    """English and another language, tokenised."""
    rows = (line.split("\t") for line in lines(data / "tatoeba" / f"eng-{other}.tsv.gz"))
    return [(words(row[0]), words(row[1])) for row in rows]


def bible(data: Path, other: str) -> Pairs:
    """Verses that both translations have, tokenised."""
    english, foreign = (
        dict(line.split("\t", 1) for line in lines(data / "bible" / f"{code}.tsv.gz")) for code in ("eng", other)
    )
    return [(words(text), words(foreign[verse])) for verse, text in english.items() if verse in foreign]


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
    return 1.0 - score.error_rate


def quality(args: argparse.Namespace, folder: Path) -> None:
    """English-French: time, memory, error rate on the gold sentences, agreement with the original."""
    data = data_folder()
    test = [
        tuple(" ".join(side.split()) for side in line.split("|||"))
        for line in lines(data / "wordalign/enfr.src-tgt.gz")
    ]
    gold = [parse_gold(line) for line in lines(data / "wordalign/enfr.gold.gz")]
    bitext = folder / "bitext"
    count = write_bitext(bitext, [*tatoeba(data, "fra"), *bible(data, "fra"), *test])
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
            print(f"{name} links of builtin and fast_align: F1 {100 * shared:.2f}")
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
            row += [f"{100 * score.precision:.1f}", f"{100 * score.recall:.1f}", f"{100 * score.error_rate:.1f}"]
        rows.append([*row, f"{RECORDED[method]:.1f}" if method in RECORDED else ""])
    header = [f"{name} {what}" for name in systems for what in ("precision", "recall", "AER")]
    print_table(["method", *header, "recorded AER of fast_align"], rows)


def growth(args: argparse.Namespace, folder: Path) -> None:
    """Time and memory against the number of pairs: Bible and Tatoeba text, English with seven languages."""
    data = data_folder()
    pairs: Pairs = []
    for other in BIBLES:
        pairs += [*bible(data, other), *(pair for pair in tatoeba(data, other) if pair[0].count(" ") > 8)]
    # A fixed stride instead of a shuffle: every size has the same mixture, in every run.
    pairs = [pairs[k * 100_003 % len(pairs)] for k in range(len(pairs))]
    original = shutil.which("fast_align") if args.original else None
    header = ["pairs", "mean words", f"seconds, {args.threads} threads", "CPU seconds", "peak MB", "CPU µs a pair"]
    theirs = ["fast_align seconds", "fast_align CPU seconds", "fast_align peak MB"]
    header += theirs if original else []
    print_table(header)
    for count in GROWTH[: args.sizes]:
        bitext = folder / "bitext"
        real = write_bitext(bitext, pairs[:count])
        mean = sum(a.count(" ") + b.count(" ") + 2 for a, b in pairs[:count]) / 2 / count
        command = [*BUILTIN, "-i", str(bitext), *USUAL, "--symmetrise", "intersection", "--threads", str(args.threads)]
        cost = measure(command, folder / "links")
        row = [str(real), f"{mean:.1f}", *cost.columns(), f"{1e6 * cost.cpu / real:.0f}"]
        if original:
            turns = [[original, "-i", str(bitext), *USUAL, *turn] for turn in ([], ["-r"])]
            forward, reverse = (measure(turn, folder / "links", OMP_NUM_THREADS="1") for turn in turns)
            row += (forward + reverse).columns()
        print_row(row)


def world(args: argparse.Namespace, folder: Path) -> None:
    """Precision, recall and error rate per language of the demo world, and English with itself in another script."""
    truths = sorted((args.folder / "truth").glob("links-*.txt"))
    if not truths:
        raise UserError(f"no truth/links-<language>.txt in {args.folder}; make the demo world there first")
    rows = []
    for truth in truths:
        code = truth.stem.removeprefix("links-")
        pool = args.folder / "truth" / f"bitext-{code}.tsv"
        rows.append(world_row(f"en-{code}", pool.read_text(encoding="utf-8"), read(truth), args, folder))
    # Letters of English moved to another part of Unicode: same words, same order, nothing in common to the eye.
    script = {k: chr(0x10A0 + k) for k in range(33, 127)}
    english = [line.split("\t")[1] for line in pool.read_text(encoding="utf-8").splitlines()]
    copied = "".join(f"1.0\t{text}\t{text.translate(script)}\n" for text in english)
    same = "".join(" ".join(f"{k}-{k}" for k in range(len(text.split()))) + "\n" for text in english)
    rows.append(
        world_row("en-en in another script", copied, parse_links(same.encode().splitlines(), "truth"), args, folder)
    )
    print_table(["pair", "lines", "true translations", "precision", "recall", "AER"], rows)


def world_row(name: str, pool: str, truth: LinkSet, args: argparse.Namespace, folder: Path) -> list[str]:
    """Align one pool as the workflow does; lines that do not translate each other have no truth to compare with."""
    (folder / "pool.tsv").write_text(pool, encoding="utf-8")
    command = [sys.executable, str(ROOT / "scripts" / "align_bitext.py"), str(folder / "pool.tsv")]
    command += ["--program", args.program, "--symmetrise", args.symmetrise, "--threads", str(args.threads)]
    measure([*command, "--out", str(folder / "links.pharaoh")], folder / "nothing")
    links = read(folder / "links.pharaoh")
    if len(links) != len(truth):
        raise UserError(f"{name}: {len(truth)} lines of true links for {len(links)} pairs")
    score, translations = Score(), 0
    for sentence in range(len(truth)):
        if true := truth.pairs(sentence):
            score.add(links.pairs(sentence), true)
            translations += 1
    rates = [f"{100 * rate:.1f}" for rate in (score.precision, score.recall, score.error_rate)]
    return [name, str(len(truth)), str(translations), *rates]


def main() -> None:
    """Run one of the three measurements."""
    parser = new_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("quality").set_defaults(run=quality)
    part = parts.add_parser("growth")
    part.add_argument("--sizes", type=int, default=len(GROWTH), help="only the first so many sizes")
    part.add_argument("--original", action="store_true", help="time fast_align, too (minutes)")
    part.set_defaults(run=growth)
    part = parts.add_parser("world")
    part.add_argument("folder", type=Path)
    part.add_argument("--program", default="builtin")
    part.add_argument("--symmetrise", default="intersection")
    part.set_defaults(run=world)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-aligner-") as folder:
        args.run(args, Path(folder))


if __name__ == "__main__":
    run_main(main)
