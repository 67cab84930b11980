"""Write config/README.md: every key of the config with its meaning, the values it takes and its default.

Meanings and allowed values come from resources/schemas/config.schema.yaml, defaults and notes from config.yaml.

Example:
    python scripts/document_config.py --out config/README.md
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from crossalign.catalog.config import ROOT, SCHEMA
from crossalign.runtime.errors import run_main
from crossalign.runtime.files import write_atomic

CONFIG = ROOT / "config.yaml"
INTRODUCTION = """\
# Configuration

<!-- Made by python scripts/document_config.py from resources/schemas/config.schema.yaml and config.yaml. -->

The settings are in `config.yaml`, at the top of the repository. It describes the four papers at full scale. Leave it as
it is: write the keys that differ into a file of your own, and Snakemake merges that file over `config.yaml`.

```yaml
run: mine
items: [align-predict/table1, align-predict/table6]
seeds: [1, 2]
```

```
snakemake --profile profiles/gpu --configfile mine.yaml all
```

- Mappings are merged key by key. Lists and single values are replaced.
- `run` names the folder of the results. Runs with different names do not mix.
- A wrong key or value stops the run before its first job. The message says what is allowed.
- When a key changes, only the jobs that depend on it run again.
- `config.demo.yaml` and `config.small.yaml` are such files, too.

In the tables below, AP is *First Align, then Predict*, ANC is *Cross-lingual Similarity of Multilingual Representations
Revisited* and ADJ is *The Impact of Cross-Lingual Adjustment*. "AP 3" is section 3 of that paper. "Our choice" marks
values that the papers do not state. A key without a default may be left out.
"""
HEAD = "| key | meaning | values | default |\n|---|---|---|---|"
FOLLOWS = "a mapping, as follows"

Node = yaml.MappingNode | yaml.SequenceNode | yaml.ScalarNode


class Schema:
    """The schema, with its references followed."""

    def __init__(self, tree: dict):
        self.top = tree["properties"]
        self.definitions = tree["$defs"]

    def definition(self, part: dict) -> dict:
        """What `part` refers to; nothing if it refers to nothing."""
        name = part.get("$ref", "").rpartition("/")[2]
        return self.definitions[name] if name else {}

    def full(self, part: dict) -> dict:
        return self.definition(part) | part

    def meaning(self, part: dict) -> str:
        """A title is written to be read here; a description also goes into error messages."""
        told = (schema.get(key) for schema in (part, self.definition(part)) for key in ("title", "description"))
        return next(filter(None, told))

    def values(self, part: dict) -> str:
        """The values that are allowed, in words."""
        full = self.full(part)
        if "enum" in full:
            return ", ".join(f"`{value}`" for value in full["enum"])
        if "const" in full:
            return f"`{full['const']}`"
        if "anyOf" in full:
            return " or ".join(self.values(choice) for choice in full["anyOf"])
        if isinstance(full["type"], list):
            words = self.values(full | {"type": full["type"][0]})
            return words if words.startswith("null") else f"{words} or `null`"
        return getattr(self, f"values_of_{full['type']}")(part, full)

    def values_of_boolean(self, part: dict, full: dict) -> str:
        return "`true` or `false`"

    def values_of_string(self, part: dict, full: dict) -> str:
        """A description, unless the row shows it as the meaning."""
        own = part.get("description") if "title" in part or "pattern" in part else None
        return self.definition(part).get("description") or own or "text"

    def values_of_integer(self, part: dict, full: dict) -> str:
        return f"a whole number{limits(full)}"

    def values_of_number(self, part: dict, full: dict) -> str:
        return f"a number{limits(full)}"

    def values_of_array(self, part: dict, full: dict) -> str:
        items, size = full["items"], full.get("maxItems")
        if "enum" in self.full(items):
            return f"a list of some of {self.values(items)}"
        each = self.values(items)
        return (
            full["description"]
            if each == "text" and "title" in part
            else f"a list{f' of {size}' if size else ''}, each {each}"
        )

    def values_of_object(self, part: dict, full: dict) -> str:
        others = full.get("additionalProperties")
        if not isinstance(others, dict):
            return f"a mapping with the keys {', '.join(f'`{key}`' for key in full['properties'])}"
        names = full.get("propertyNames", {})
        keys = self.values({"type": "string"} | names) if "pattern" not in names else "a name"
        return f"a mapping: {keys} → {self.values(others)}"


def limits(schema: dict) -> str:
    """` from 1`, ` above 0 and at most 1`."""
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    told = [f"{word} {schema[key]}" for key, word in words.items() if key in schema]
    if {"minimum", "maximum"} <= schema.keys():
        told = [f"from {schema['minimum']} to {schema['maximum']}"]
    return " " + " and ".join(told) if told else ""


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

    def value(self, path: tuple[str, ...]) -> str:
        place = self.find(path)
        return f"`{self.flow(place[1])}`" if place else ""

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


def cell(text: str) -> str:
    """Text that is safe in a table."""
    return text.replace("|", r"\|").replace("<", "&lt;")


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def row(schema: Schema, defaults: Defaults, path: tuple[str, ...], shown: str, part: dict, values: str = "") -> str:
    """The line of one key."""
    meaning, note = sentence(cell(schema.meaning(part))), cell(defaults.note(path))
    if note.lower() not in ("", meaning.lower()):
        meaning += f"<br>{note}"
    cells = (
        f"`{shown}`",
        meaning,
        cell(values or schema.values(part)),
        "" if values == FOLLOWS else defaults.value(path),
    )
    return f"| {' | '.join(cells)} |"


def rows(schema: Schema, defaults: Defaults, path: tuple[str, ...], part: dict, seen: dict[str, str]) -> Iterator[str]:
    """A row per key below `path`. What several keys refer to is spelt out below the first one."""
    for key, inner in schema.full(part)["properties"].items():
        below, reference = (*path, key), inner.get("$ref", "")
        shown = ".".join(below[1:])
        if "properties" not in schema.full(inner):
            yield row(schema, defaults, below, shown, inner)
        elif reference in seen:
            yield row(schema, defaults, below, shown, inner, f"as `{seen[reference]}`")
        else:
            seen |= {reference: shown} if reference else {}
            yield row(schema, defaults, below, shown, inner, FOLLOWS)
            yield from rows(schema, defaults, below, inner, seen)


def section(schema: Schema, defaults: Defaults, key: str, part: dict) -> str:
    """A heading, what the paper or the config says of it, and the table."""
    note = cell(defaults.note((key,)))
    others = part.get("additionalProperties")
    if isinstance(others, dict):
        lines = [
            row(schema, defaults, (key, "<name>", name), f"<name>.{name}", inner)
            for name, inner in schema.full(others)["properties"].items()
        ]
    else:
        lines = list(rows(schema, defaults, (key,), part, {}))
    told = f"{sentence(cell(schema.meaning(part)))}." + (f"\n\n{note.rstrip('.')}." if note else "")
    return "\n".join([f"## {key}\n\n{told}\n", HEAD, *lines, ""])


def document(schema: dict, config: str) -> str:
    """The whole page."""
    described, defaults = Schema(schema), Defaults(config)
    sections = {
        key: part
        for key, part in described.top.items()
        if "properties" in part or "$ref" in (part.get("additionalProperties") or {})
    }
    plain = [row(described, defaults, (key,), key, part) for key, part in described.top.items() if key not in sections]
    run = "\n".join(["## The run\n", HEAD, *plain, ""])
    return "\n".join([INTRODUCTION, run, *(section(described, defaults, *each) for each in sections.items())])


def main() -> None:
    """Read both files, write one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "config" / "README.md", help="default: config/README.md")
    args = parser.parse_args()
    text = document(yaml.safe_load(SCHEMA.read_text(encoding="utf-8")), CONFIG.read_text(encoding="utf-8"))
    with write_atomic(args.out) as file:
        file.write(text)


if __name__ == "__main__":
    run_main(main)
