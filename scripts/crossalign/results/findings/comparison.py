"""What must hold of quantities, as text: `elsewhere < -2 and elsewhere < home`, `rho(similarity, transfer) > 0`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crossalign.runtime.errors import UserError

NAME, NUMBER = r"[a-z]\w*", r"-?\d+(?:\.\d+)?"
# A quantity, or the difference or the rank correlation of two.
VALUE = re.compile(rf"({NAME})|({NAME}) - ({NAME})|rho\(({NAME}), ({NAME})\)")


@dataclass(frozen=True)
class Comparison:
    """A value, told in `words` and made from the quantities `names`, that must lie below (or above) a bound."""

    words: str
    names: tuple[str, ...]
    below: bool
    bound: float

    @property
    def rule(self) -> str:
        """All of it: `elsewhere - home < 0`."""
        return f"{self.words} {'<' if self.below else '>'} {self.bound:g}"

    @property
    def ranked(self) -> bool:
        """Whether the value is a rank correlation."""
        return self.words.startswith("rho(")

    def value(self, of: Mapping[str, Any]) -> Any:
        """The quantity, or the difference of the two."""
        first, *others = (of[name] for name in self.names)
        return first - others[0] if others else first


def comparisons(text: str) -> list[Comparison]:
    """Every comparison of a text; all must hold."""
    found = []
    for part in text.split(" and "):
        sides = re.fullmatch(rf"(.+) ([<>]) (?:({NUMBER})|({NAME}))", part)
        words = f"{sides[1]} - {sides[4]}" if sides and sides[4] else sides[1] if sides else ""
        if not (value := VALUE.fullmatch(words)):
            raise UserError(
                f"'{part}': expected a < -2, a < b, a - b > 0.3 or rho(a, b) > 0; several are joined by and"
            )
        found.append(Comparison(words, tuple(filter(None, value.groups())), sides[2] == "<", float(sides[3] or 0)))
    return found
