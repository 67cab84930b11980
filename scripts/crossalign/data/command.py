"""What the programs of the prepare stage have in common on the command line."""

import argparse
from pathlib import Path

from crossalign.data.report import Report, report_path
from crossalign.runtime.errors import UserError


def parser(description: str | None, out: bool = True) -> argparse.ArgumentParser:
    """A parser with --source, --out and --report. Its help is the first line of the description and the example."""
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
    return made


def only_source(args: argparse.Namespace) -> Path:
    """The source of a format that has one."""
    if len(args.source) != 1:
        raise UserError(f"--source: {len(args.source)} files given, but this format has one")
    return args.source[0]


def need(args: argparse.Namespace, *names: str) -> None:
    """Complain about options that the chosen format needs and that were not given."""
    for name in names:
        if getattr(args, name) is None:
            raise UserError(f"--format {args.format} needs --{name.replace('_', '-')}")


def positive(text: str) -> int:
    """An option's value that must be a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def check_kept(args: argparse.Namespace, report: Report) -> None:
    """Refuse a set without a single item, before the file gets its name."""
    if not report.kept:
        dropped = ", ".join(f"{count} {reason}" for reason, count in report.dropped.items()) or "no items in it"
        raise UserError(f"{', '.join(map(str, args.source))}: nothing to keep ({dropped})")


def write_report(args: argparse.Namespace, report: Report) -> None:
    """Write the report where --report says, or beside the prepared file."""
    report.write(args.report or report_path(args.out))
    print(f"{args.out}: {report.kept} of {report.read} kept")
