"""What a program is told: on its command line, or as JSON, which is what rules pass of a sheet."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError


def read_args(parser: argparse.ArgumentParser, settings: bool = False) -> argparse.Namespace:
    """The command line, where `--settings` may give options by name; what stands on the command line wins.

    With `settings` what is no option is left in `args.settings`, for the program to check;
    messages about it begin with `args.place`.
    """
    parser.add_argument(
        "--settings", nargs="+", action="extend", default=[], metavar="JSON",
        help=("hyper-parameters and options" if settings else "options") + " as JSON, or a file of them (JSON or YAML)",
    )  # fmt: skip
    alone = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    alone.add_argument("--settings", nargs="+", action="extend", default=[])
    options = {action.dest for action in parser._actions} - {"help", "settings"}
    told: dict[str, Any] = {}
    place = "--settings"
    for source in alone.parse_known_args()[0].settings:
        told |= read_mapping(source)
        place = place_of(source)
    words = [word for name, value in told.items() if name in options for word in as_words(name, value)]
    args = parser.parse_args([*words, *sys.argv[1:]])
    args.place = place
    args.settings = {name: value for name, value in told.items() if name not in options}
    if args.settings and not settings:
        unknown, known = next(iter(args.settings)), ", ".join(sorted(options))
        raise UserError(f"{place}: unknown option '{unknown}'; there are {known}")
    return args


def as_words(name: str, value: Any) -> list[str]:
    """An option as it stands on a command line; false and null leave it out."""
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    return [flag, *map(str, value)] if isinstance(value, list) else [f"{flag}={value}"]


def read_mapping(source: str) -> dict[str, Any]:
    """JSON that begins with a brace, or a file of JSON or YAML."""
    place = place_of(source)
    try:
        found = _parse(source if place == "--settings" else Path(source).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{place}: cannot read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{place}: neither JSON nor YAML: {error}") from None
    if not isinstance(found or {}, dict):
        raise UserError(f"{place}: expected names with values, found {found!r}")
    return found or {}


def place_of(source: str) -> str:
    """What messages about settings begin with."""
    return "--settings" if source.lstrip().startswith("{") else f"--settings {source}"


def _parse(text: str) -> Any:
    if text.lstrip().startswith("{"):
        return json.loads(text)

    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
