"""What the programs of the prepare stage have in common: options, the prepared file, its report."""

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from crossalign.data.report import Report, report_path
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic


def parser(
    description: str | None,
    formats: Sequence[str] = (),
    lang: str | None = None,
    split: bool = False,
    transliterate: str | None = None,
    out: bool = True,
) -> argparse.ArgumentParser:
    """A parser with --source, --out, --report and, where asked for, --format, --lang, --split, --transliterate.

    Its help is the first line of the description and the example; `lang` and `transliterate` are the help of theirs.
    """
    made = argparse.ArgumentParser(
        description=(description or "").strip().split("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="".join((description or "").partition("Example:")[1:]),
    )
    made.add_argument(
        "--source", nargs="+", required=True, type=Path, metavar="FILE", help="downloaded files, as they came"
    )
    if out:
        made.add_argument("--out", required=True, type=Path, help="the prepared file")
        made.add_argument("--report", type=Path, help="the account of it (default: <out>.report.json beside it)")
    if formats:
        made.add_argument("--format", choices=formats, required=True)
    if lang is not None:
        made.add_argument("--lang", required=True, help=lang or None)
    if split:
        made.add_argument("--split", choices=("train", "dev", "test"), required=True)
    if transliterate:
        from crossalign.data.transliteration import LANGUAGES

        made.add_argument("--transliterate", choices=LANGUAGES, metavar="LANG", help=transliterate)
    return made


def only_source(args: argparse.Namespace) -> Path:
    """The source of a format that has one."""
    if len(args.source) != 1:
        raise UserError(f"--source: {len(args.source)} files given, but this format has one")
    return args.source[0]


def positive(text: str) -> int:
    """An option's value that must be a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


@contextlib.contextmanager
def prepared(args: argparse.Namespace, report: Report) -> Iterator[IO[str]]:
    """The prepared file, to be written; a set without a single item is refused. The report follows."""
    with write_atomic(args.out) as out:
        yield out
        if not report.kept:
            dropped = ", ".join(f"{count} {reason}" for reason, count in report.dropped.items()) or "no items in it"
            raise UserError(f"{', '.join(map(str, args.source))}: nothing to keep ({dropped})")
    report.write(args.report or report_path(args.out))
    print(f"{args.out}: {report.kept} of {report.read} kept")
