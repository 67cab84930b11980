r"""Prepare one split of an inference set: MultiNLI, SNLI, XNLI or its extension in, JSON lines with three labels out.

With --format mix, archives of MultiNLI and SNLI are read one after the other.
With --mix-with-english, either the premise or the hypothesis of each pair, as a fixed coin falls, is the English one.

Example:
    python scripts/prepare_nli.py --format xnli --lang es --split test --out test.jsonl \
        --source results/demo/downloads/nli/XNLI-1.0.zip
"""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from crossalign.data.command import only_source, parser, prepared
from crossalign.data.lines import Source, write_rows
from crossalign.data.nli import mix_with_english, read_multinli, read_pairs, read_xnli
from crossalign.data.report import Report
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main

MEMBERS = {
    "multinli": "multinli_1.0/multinli_1.0_{split}.jsonl",
    "snli": "snli_1.0/snli_1.0_{split}.jsonl",
    "xnli": "XNLI-1.0/xnli.{split}.tsv",
    "extension": "{lang}.tsv",
}


def parse_args() -> Namespace:
    """The command line."""
    args = parser(__doc__, [*sorted(MEMBERS), "mix"], lang="", split=True)
    args.add_argument("--mix-with-english", action="store_true")
    args.add_argument("--coin-seed", type=int, default=1)
    return read_args(args)


def read(form: str, args: Namespace, path: str | Path, lang: str, report: Report) -> Iterator[dict]:
    """The pairs of one language."""
    source = Source(path, MEMBERS[form].format(lang=lang, split=args.split))
    with source.open() as stream:
        if form == "xnli":
            yield from read_xnli(stream, source.name, lang, report)
        else:
            # SNLI has the form of MultiNLI.
            reader = read_pairs if form == "extension" else read_multinli
            yield from reader(stream, source.name, report)


def read_mix(args: Namespace, report: Report) -> Iterator[dict]:
    """The pairs of several archives, told by their names."""
    for path in args.source:
        form = path.name.partition("_")[0]
        if form not in ("multinli", "snli"):
            raise UserError(f"--source: {path} is neither MultiNLI nor SNLI by its name")
        yield from read(form, args, path, args.lang, report)


def main() -> None:
    """Read, mix, write."""
    args = parse_args()
    report = Report()
    path = None if args.format == "mix" else only_source(args)
    pairs = read(args.format, args, path, args.lang, report) if path else read_mix(args, report)
    if args.mix_with_english:
        if args.format != "xnli" or args.lang == "en":
            raise UserError("--mix-with-english: for a set that is parallel to English, in another language")
        english = read(args.format, args, path, "en", Report())
        pairs = mix_with_english(pairs, english, args.coin_seed, report)
        report.facts["coin_seed"] = args.coin_seed
    with prepared(args, report) as out:
        write_rows(pairs, out)


if __name__ == "__main__":
    run_main(main)
