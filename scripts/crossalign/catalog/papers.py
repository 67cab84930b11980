"""Which papers there are: every folder of `papers/` that declares items is one.

Its `__init__.py` says in constants where the paper comes on the page (PLACE), what it is called (TITLE) and where it
appeared (SOURCE). They are read without importing it: what a paper declares may need what the catalog knows.
"""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOMS = Path(__file__).resolve().parents[1] / "papers"


class Paper(NamedTuple):
    """A paper: its title, and where it appeared."""

    title: str
    source: str


@cache
def papers() -> dict[str, Paper]:
    """The papers by name, in the order of the page. A folder has the name of its paper, with `_` for `-`."""
    found = {}
    for file in ROOMS.glob("*/items.py"):
        said = constants(file.with_name("__init__.py"))
        found[file.parent.name.replace("_", "-")] = (said["PLACE"], Paper(said["TITLE"], said["SOURCE"]))
    return {name: paper for name, (_, paper) in sorted(found.items(), key=lambda each: (each[1][0], each[0]))}


def constants(file: Path) -> dict:
    """The constants that a module sets."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
