"""What the programs that render share: their options, the merged config, and where each item goes."""

import json
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable
from pathlib import Path

import yaml

from crossalign.catalog.config import check
from crossalign.papers.common.context import Context
from crossalign.results.reading import Results
from crossalign.runtime.errors import UserError


def run_parser(description: str | None, out: str, required: bool = False, epilog: str | None = None) -> ArgumentParser:
    """Options of a program that works on a run; `out` is what it writes."""
    args = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter, epilog=epilog)
    args.add_argument("--config", type=Path, required=True, help="the merged config, as JSON or YAML")
    args.add_argument("--results", type=Path, required=True, help="results/<run>")
    args.add_argument("--out", type=Path, required=required, help=out)
    return args


def parser(description: str | None, formats: Iterable[str]) -> ArgumentParser:
    """Options of a program that renders items."""
    example = "python scripts/%(prog)s --all --config results/demo/config.json --results results/demo --out items"
    args = run_parser(
        description, "folder for <paper>/<id>.*; several items need it", epilog=f"Example:\n    {example}"
    )
    args.add_argument("--item", nargs="+", metavar="PAPER/ID", default=[], help="such as align-predict/table1")
    args.add_argument("--all", action="store_true", help="every item of this kind that the config chooses")
    for form in formats:
        args.add_argument(f"--out-{form}", type=Path, help=f"the {form.upper()} of a single item")
    return args


def read_config(path: Path) -> dict:
    """The checked config of a file."""
    try:
        # JSON is YAML as well, but a hundred times slower to read as such.
        text = path.read_text(encoding="utf-8")
        config = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path}: no config that can be read ({error})") from None
    check(config)
    return config


def config_of(args: Namespace) -> dict:
    """The config that a command line names, once the folder of results is there."""
    if not args.results.is_dir():
        raise UserError(f"--results {args.results}: no such folder; it is made by the first job of a run")
    return read_config(args.config)


def context_of(args: Namespace) -> Context:
    """The config and the results that a command line names."""
    return Context(config_of(args), Results(args.results))


def chosen(args: Namespace, configured: Iterable[str], known: Iterable[str]) -> list[str]:
    """The items of the `known` ones that a command line asks for; --all are those that are configured."""
    if args.all == bool(args.item):
        raise UserError("name the items with --item, or give --all, not both")
    known = list(known)
    if args.all:
        return [item for item in configured if item in known]
    for item in args.item:
        if item not in known:
            raise UserError(f"--item {item}: no such item here; known are {', '.join(known)}")
    return args.item


def destinations(args: Namespace, item: str, many: bool, formats: Iterable[str]) -> dict[str, Path]:
    """Where each format of an item is written."""
    single = {form: getattr(args, f"out_{form}") for form in formats if getattr(args, f"out_{form}")}
    if many and single:
        raise UserError("--out-<format> is for a single item; several go below --out")
    if not many and single:
        return single
    if args.out is None:
        raise UserError("say where to write: --out <folder>, or --out-<format> <file> for a single item")
    return {form: args.out / f"{item}.{form}" for form in formats}
