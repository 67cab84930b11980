r"""Prepare one split of a named-entity set: column files in, JSON lines with IOB2 tags out.

Example:
    python scripts/prepare_ner.py --format wikiann --lang pt --split test --out test.jsonl \
        --source results/demo/downloads/ner/wikiann/panx_dataset.zip
"""

from itertools import islice

from crossalign.data.command import only_source, parser, positive, prepared
from crossalign.data.lines import Source, write_rows
from crossalign.data.ner import FORMATS, read_ner, tag_set
from crossalign.data.report import Report
from crossalign.data.transliteration import transliterator
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main


def main() -> None:
    """Read, transliterate, write."""
    latin_help = "write the tokens in Latin letters"
    options = parser(__doc__, sorted(FORMATS), lang="", split=True, transliterate=latin_help)
    options.add_argument("--max-sentences", type=positive, help="the first so many alone (default: all)")
    args = read_args(options)
    report = Report()
    form = FORMATS[args.format]
    # WikiANN is a zip of one packed folder a language.
    source = Source(only_source(args), f"{args.lang}.tar.gz!{args.split}")
    report.facts["tags"] = tag_set(form.classes)
    with source.open() as stream, prepared(args, report) as out:
        rows = islice(read_ner(stream, source.name, form, args.lang, args.split, report), args.max_sentences)
        if args.transliterate:
            latin = transliterator(args.transliterate)
            report.facts["transliterated"] = args.transliterate
            rows = ({**row, "tokens": [latin.form(token) for token in row["tokens"]]} for row in rows)
        write_rows(rows, out)


if __name__ == "__main__":
    run_main(main)
