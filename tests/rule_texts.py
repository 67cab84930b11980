"""What the rules in `rules/*.smk` say, read as text: names, programs, environments.

Loading the workflow would show only the rules that one config switches on.
"""

import re
from dataclasses import dataclass
from pathlib import Path

HEADER = re.compile(r"^( *)(?:rule|use rule (\w+) as) (\w+)(?: with)?:$", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """One rule; `body` is its text, with that of the rule that it is a variant of."""

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
        if "{params.program}" in self.body:
            return [f"{self.name}.py", *(["prepare_labelled.py"] if self.name.startswith("prepare_") else [])]
        return sorted(set(re.findall(r"[\"/](\w+\.py)\b", self.body)))


def rules(root: Path) -> list[Rule]:
    """All rules of the workflow that do something, whatever the config."""
    found: dict[str, Rule] = {}
    for name in re.findall(r'^include: "(.+)"$', (root / "Snakefile").read_text("utf-8"), re.MULTILINE):
        text = (root / name).read_text("utf-8")
        for header in HEADER.finditer(text):
            indent, base, name = header.groups()
            body = re.match(rf"(?:{indent} +[^\n]*\n|\n)*", text[header.end() + 1 :])[0]
            found[name] = Rule(name, body + (found[base].body if base else ""))
    return list(found.values())
