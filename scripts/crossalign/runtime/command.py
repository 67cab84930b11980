"""Options of a program as JSON: rules pass what a sheet says; by hand a file with a few lines does the same."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError


def read_args(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line, where `--settings` may give options by name; what stands on the command line wins."""
    parser.add_argument(
        "--settings", nargs="+", default=[], metavar="JSON",
        help='options as JSON, or a file with it (JSON or YAML): {"lang": "wo"}',
    )  # fmt: skip
    alone = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    alone.add_argument("--settings", nargs="+", default=[])
    known = {action.dest for action in parser._actions}
    words: list[str] = []
    for source in alone.parse_known_args()[0].settings:
        told = read_mapping(source)
        if unknown := [name for name in told if name not in known]:
            raise UserError(f"--settings: unknown option '{unknown[0]}'; allowed are {', '.join(sorted(known))}")
        for name, value in told.items():
            words += as_words(name, value)
    return parser.parse_args([*words, *sys.argv[1:]])


def as_words(name: str, value: Any) -> list[str]:
    """An option as it stands on a command line; False and null leave it out."""
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    return [flag, *map(str, value)] if isinstance(value, list) else [f"{flag}={value}"]


def read_mapping(source: str) -> dict[str, Any]:
    """JSON that begins with a brace, or a file of JSON or YAML."""
    inline = source.lstrip().startswith("{")
    place = "--settings" if inline else f"--settings {source}"
    try:
        text = source if inline else Path(source).read_text(encoding="utf-8")
        found = _parse(text)
    except OSError as error:
        raise UserError(f"{place}: cannot read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{place}: neither JSON nor YAML: {error}") from None
    if not isinstance(found or {}, dict):
        raise UserError(f"{place}: expected names with values, found {found!r}")
    return found or {}


def _parse(text: str) -> Any:
    if text.lstrip().startswith("{"):
        return json.loads(text)

    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
