r"""Prepare one split of a named-entity set: column files in, JSON lines with IOB2 tags out.

Example:
    python scripts/prepare_ner.py --format wikiann --lang pt --split test --out test.jsonl \
        --source results/demo/downloads/ner/wikiann/panx_dataset.zip
"""

from argparse import Namespace

from crossalign.data.command import check_kept, only_source, parser, write_report
from crossalign.data.jsonl import write_rows
from crossalign.data.lines import Source
from crossalign.data.ner import FORMATS, read_ner, tag_set
from crossalign.data.report import Report
from crossalign.data.transliteration import LANGUAGES, transliterator
from crossalign.runtime.errors import run_main
from crossalign.runtime.files import write_atomic


def parse_args() -> Namespace:
    """The command line."""
    args = parser(__doc__)
    args.add_argument("--format", choices=sorted(FORMATS), required=True)
    args.add_argument("--lang", required=True)
    args.add_argument("--split", choices=("train", "dev", "test"), required=True)
    args.add_argument("--transliterate", choices=LANGUAGES, metavar="LANG", help="write the tokens in Latin letters")
    return args.parse_args()


def main() -> None:
    """Read, transliterate, write."""
    args = parse_args()
    report = Report()
    form = FORMATS[args.format]
    # WikiANN is a zip of one packed folder a language.
    source = Source(only_source(args), f"{args.lang}.tar.gz!{args.split}")
    report.facts["tags"] = tag_set(form.classes)
    latin = transliterator(args.transliterate) if args.transliterate else None
    if latin:
        report.facts["transliterated"] = args.transliterate
    with source.open() as stream, write_atomic(args.out) as out:
        rows = read_ner(stream, source.name, form, args.lang, args.split, report)
        if latin:
            rows = ({**row, "tokens": [latin.form(token) for token in row["tokens"]]} for row in rows)
        write_rows(rows, out)
        check_kept(args, report)
    write_report(args, report)


if __name__ == "__main__":
    run_main(main)
