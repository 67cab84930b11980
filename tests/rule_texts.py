"""What the rules in `rules/*.smk` say, read as text: names, programs, environments, GPUs.

Loading the workflow would show only the rules that one config switches on.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

HEADER = re.compile(r"^( *)rule(?: (\w+))?:$", re.MULTILINE)
# A loop around rules that are alike; its values are literals, or tuples that begin with one.
LOOP = re.compile(r"^for (\w+)[^\n]* in (\(.*?\)):$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Rule:
    """One rule; `body` is its text with the values of a loop around it filled in."""

    name: str
    body: str

    @property
    def environment(self) -> str | None:
        """The file in `envs/`."""
        named = re.search(r"^ *conda:\n *\"\.\./envs/([^\"]+)\"", self.body, re.MULTILINE)
        return named[1] if named else None

    @property
    def programs(self) -> list[str]:
        """The files in `scripts/` that its jobs run, or start from what they run."""
        return sorted(set(re.findall(r"\"(\w+\.py)\"", self.body)))

    @property
    def gpus(self) -> str | None:
        """How many GPUs it asks for, as written."""
        asked = re.search(r"^ *gpu=(.+),$", self.body, re.MULTILINE)
        return asked[1] if asked else None


def rules(root: Path) -> list[Rule]:
    """All rules of the workflow that do something, whatever the config."""
    return [rule for file in sorted((root / "rules").glob("*.smk")) for rule in rules_of(file.read_text("utf-8"))]


def rules_of(text: str) -> list[Rule]:
    """The rules in the text of one file."""
    found = []
    for header in HEADER.finditer(text):
        indent = header[1]
        body = re.match(rf"(?:{indent} +[^\n]*\n|\n)*", text[header.end() + 1 :])[0]
        if header[2]:
            found.append(Rule(header[2], body))
            continue
        loop = list(LOOP.finditer(text, 0, header.start()))[-1]
        stated = re.search(r"^ *name:\n *(\S+)$", body, re.MULTILINE)[1]
        for value in values(loop[2]):
            filled = re.sub(rf"\bf(\"[^\"\n]*){{{loop[1]}}}", lambda part, value=value: part[1] + value, body)
            name = value if stated == loop[1] else stated[2:-1].replace(f"{{{loop[1]}}}", value)
            found.append(Rule(name, filled))
    return found


def values(iterated: str) -> list[str]:
    elements = ast.parse(iterated, mode="eval").body.elts
    firsts = [element.elts[0] if isinstance(element, ast.Tuple) else element for element in elements]
    return [ast.literal_eval(first) for first in firsts]
