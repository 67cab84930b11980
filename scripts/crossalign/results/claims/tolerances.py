"""The named tolerances of resources/papers/tolerances.yaml."""

from functools import cache
from pathlib import Path

import yaml

from crossalign.results.published import PRINTED
from crossalign.runtime.errors import UserError

PATH = PRINTED / "tolerances.yaml"


@cache
def tolerances(path: Path = PATH) -> dict[str, float]:
    """Every tolerance by name."""
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    found = {}
    for name, entry in (entries or {}).items():
        value = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(
                f"{path}: {name}: expected {{ value: <number from 0 on>, unit: …, meaning: … }}, found {entry!r}"
            )
        found[name] = float(value)
    return found


def tolerance(name: str) -> float:
    """One tolerance."""
    try:
        return tolerances()[name]
    except KeyError:
        raise UserError(f"{PATH}: no tolerance '{name}'; there are {', '.join(tolerances())}") from None
