r"""Prepare raw text of one language: articles or lines in, clean sentences out, a share of them held out.

Several sources are read one after the other.

Example:
    python scripts/prepare_text.py --format wikipedia --lang wo --out-train train.txt --out-dev dev.txt \
        --source results/demo/downloads/text/wikipedia/wo.parquet
"""

import argparse
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from crossalign.data.command import parser
from crossalign.data.lines import Source
from crossalign.data.parallel import read_text
from crossalign.data.report import Report, report_path
from crossalign.data.text import Apart, Cleaning, clean_sentences, is_held_out, read_articles, read_lines
from crossalign.data.transliteration import transliterator
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic

# Of the draw of held-out sentences, which is the same for all runs.
SEED = 1


def share(text: str) -> float:
    """A share between 0 and 1, both excluded."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value


def parse_args() -> argparse.Namespace:
    """The command line."""
    formats = ("wikipedia", "cc100", "lines", "open")
    args = parser(__doc__, formats, lang="", transliterate="write Latin letters", out=False)
    args.add_argument("--out-train", required=True, type=Path)
    args.add_argument("--out-dev", required=True, type=Path)
    args.add_argument("--dev-share", type=share, default=0.05, help="share of the sentences held out")
    args.add_argument("--max-sentences", type=int, default=0, help="stop after so many were kept (0: never)")
    args.add_argument("--apart", type=Path, nargs="*", default=[], help="prepared evaluation sets of the language")
    args.add_argument("--overlap", type=int, default=8, help="words in a row of theirs that a sentence may not have")
    return read_args(args)


def read(path: Path, args: argparse.Namespace, report: Report) -> Iterator[str]:
    """The raw sentences of one source; `open` goes by the folder that each lies in, and counts by it."""
    if args.format == "open":
        for sentence in read_text(path, args.lang):
            report.counts[f"from {path.parent.name}"] += 1
            yield sentence
    elif args.format == "wikipedia":
        yield from read_articles(path, report)
    else:
        yield from read_lines(Source(path).lines(), report)


def part_report(whole: Report, kept: int, other: str) -> Report:
    """The account of one part: what went into the other part counts as dropped here."""
    part = Report()
    part.read, part.kept, part.counts, part.facts = whole.read, kept, whole.counts, whole.facts
    part.dropped = whole.dropped.copy()
    part.dropped[f"in the {other} part"] = whole.kept - kept
    return part


def main() -> None:
    """Read, clean, part, write."""
    args = parse_args()
    report = Report()
    report.facts["language"] = args.lang
    latin = transliterator(args.transliterate) if args.transliterate else None
    if latin:
        report.facts["transliterated"] = args.transliterate
    raw = chain.from_iterable(read(path, args, report) for path in args.source)
    rules = Cleaning(max_sentences=args.max_sentences)
    apart = Apart(args.apart, args.lang, args.overlap) if args.apart else None
    kept = [0, 0]
    with write_atomic(args.out_train) as train, write_atomic(args.out_dev) as dev:
        for sentence in clean_sentences(raw, rules, report, apart):
            # Drawn by the sentence as it came, so that the transliterated copy holds out the same ones.
            held_out = is_held_out(sentence, args.dev_share, SEED)
            (dev if held_out else train).write((latin.line(sentence) if latin else sentence) + "\n")
            kept[held_out] += 1
        if not all(kept):
            raise UserError(
                f"{args.source[0]}: {kept[0]} sentences for training, {kept[1]} held out; "
                "each needs at least one: give a longer text"
            )
    part_report(report, kept[0], "dev").write(report_path(args.out_train))
    part_report(report, kept[1], "train").write(report_path(args.out_dev))
    print(f"{args.out_train}, {args.out_dev}: {kept[0]} + {kept[1]} of {report.read} kept")


if __name__ == "__main__":
    run_main(main)
