"""Write the tables of config/README.md, with every key of the config, its meaning, its values and its default, and the
schema for editors, resources/schemas/config.schema.json.

Meanings and values come from the classes in crossalign/catalog/settings.py, defaults and notes from config.yaml. What
stands above the tables is written by hand.

Example:
    python scripts/document_config.py
"""

import argparse
import json
import re
from collections.abc import Iterator

import yaml

from crossalign.catalog.layers import ROOT
from crossalign.catalog.settings import json_schema
from crossalign.runtime.checks import resolve, values
from crossalign.runtime.errors import run_main
from crossalign.runtime.files import write_atomic

MARK = "<!-- Below: made by python scripts/document_config.py. -->"
HEAD = "| key | meaning | values | default |\n|---|---|---|---|"
FOLLOWS = "a mapping, as follows"

Node = yaml.MappingNode | yaml.SequenceNode | yaml.ScalarNode


class Defaults:
    """config.yaml: the values as they are written there, and the comments beside and above them."""

    def __init__(self, text: str):
        self.lines = text.splitlines()
        self.tree = yaml.compose(text, Loader=yaml.SafeLoader)
        self.text = text

    def find(self, path: tuple[str, ...]) -> tuple[Node, Node] | None:
        """Key and value at a place."""
        place = None
        node = self.tree
        for name in path:
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            place = next(((key, value) for key, value in pairs if key.value == name), None)
            if place is None:
                return None
            node = place[1]
        return place

    def flow(self, node: Node) -> str:
        """A value on one line, with numbers as they are written: 5.0e-5."""
        if isinstance(node, yaml.MappingNode):
            inner = ", ".join(f"{key.value}: {self.flow(value)}" for key, value in node.value)
            return f"{{ {inner} }}" if inner else "{}"
        if isinstance(node, yaml.SequenceNode):
            return f"[{', '.join(map(self.flow, node.value))}]"
        return self.text[node.start_mark.index : node.end_mark.index]

    def note(self, path: tuple[str, ...]) -> str:
        """The comment lines above a key and the comment behind it."""
        place = self.find(path)
        if place is None:
            return ""
        key, value = place
        first, indent = key.start_mark.line, key.start_mark.column
        if self.lines[first][:indent].strip():
            return ""  # within a mapping on one line, whose comment belongs to the mapping
        start = first
        while start and re.match(rf" {{{indent}}}# ", self.lines[start - 1]):
            start -= 1
        above = [line.strip(" #") for line in self.lines[start:first]]
        ends = {first} if not getattr(value, "flow_style", True) else {first, value.end_mark.line}
        behind = [found[1] for line in sorted(ends) if (found := re.search(r"\s#\s(.*)$", self.lines[line]))]
        return ". ".join(filter(None, (" ".join(above), *behind)))


class Page:
    """The tables of keys."""

    def __init__(self, schema: dict, config: str):
        self.schema, self.defaults = schema, Defaults(config)

    def row(self, path: tuple[str, ...], shown: str, part: dict, told: str = "") -> str:
        """The line of one key."""
        meaning = resolve(self.schema, part)["description"].rstrip(".")
        meaning = meaning[:1].upper() + meaning[1:]
        note = cell(self.defaults.note(path))
        if note.lower() not in ("", meaning.lower()):
            meaning += f"<br>{note}"
        place = None if told == FOLLOWS else self.defaults.find(path)
        default = f"`{self.defaults.flow(place[1])}`" if place else ""
        return f"| `{shown}` | {meaning} | {cell(told or values(self.schema, part))} | {default} |"

    def rows(self, path: tuple[str, ...], part: dict, seen: dict[str, str]) -> Iterator[str]:
        """A row per key below `path`. What several keys refer to is spelt out below the first one."""
        for key, inner in resolve(self.schema, part)["properties"].items():
            below, reference = (*path, key), inner.get("$ref", "")
            shown = ".".join(below[1:])
            full = resolve(self.schema, inner)
            entry = next(iter(full.get("patternProperties", {}).values()), {})
            if "$ref" in entry:
                # Entries with names of the user's choice: what each may say, with the defaults that all share.
                yield self.row(below, shown, inner, FOLLOWS)
                for name, each in resolve(self.schema, entry)["properties"].items():
                    yield self.row((*below, "defaults", name), f"{shown}.<name>.{name}", each)
            elif "properties" not in full:
                yield self.row(below, shown, inner)
            elif reference in seen:
                yield self.row(below, shown, inner, f"as `{seen[reference]}`")
            else:
                seen |= {reference: shown}
                yield self.row(below, shown, inner, FOLLOWS)
                yield from self.rows(below, inner, seen)

    def section(self, key: str, part: dict) -> str:
        """A heading, what the paper or the config says of it, and the table."""
        note = cell(self.defaults.note((key,)))
        told = resolve(self.schema, part)["description"] + (f"\n\n{note.rstrip('.')}." if note else "")
        return "\n".join([f"## {key}\n\n{told}\n", HEAD, *self.rows((key,), part, {}), ""])

    def text(self) -> str:
        """The whole page."""
        keys = self.schema["properties"].items()
        plain = [self.row((key,), key, part) for key, part in keys if "$ref" not in part]
        sections = [self.section(key, part) for key, part in keys if "$ref" in part]
        return "\n".join(["\n".join(["## The run\n", HEAD, *plain, ""]), *sections])


def cell(text: str) -> str:
    """Text that is safe in a table."""
    return text.replace("|", r"\|").replace("<", "&lt;")


def documents() -> dict[str, str]:
    """Both files, by their place in the repository."""
    schema, page = json_schema(), "config/README.md"
    above = (ROOT / page).read_text(encoding="utf-8").partition(MARK)[0]
    tables = Page(schema, (ROOT / "config.yaml").read_text(encoding="utf-8")).text()
    text = json.dumps(schema, indent=1, ensure_ascii=False)
    return {page: f"{above}{MARK}\n\n{tables}", "resources/schemas/config.schema.json": f"{text}\n"}


def main() -> None:
    """Write both files."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for place, text in documents().items():
        with write_atomic(ROOT / place) as file:
            file.write(text)


if __name__ == "__main__":
    run_main(main)
