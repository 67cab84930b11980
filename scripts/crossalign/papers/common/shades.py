"""Colour classes of cells: by how much a score is below its reference. Black text stands out on all of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shade:
    """A class of cells: its name in files, its meaning, its colour (hex, no `#`)."""

    name: str
    meaning: str
    colour: str


@dataclass(frozen=True)
class Shading:
    """At least the reference, then ever larger losses; `limits` are the losses at which the next class begins."""

    limits: tuple[float, float]
    reference: str = "REF"

    @property
    def shades(self) -> list[Shade]:
        small, large = (f"{limit:g}" for limit in self.limits)
        return [
            Shade("atleast", f"at least {self.reference}", "D3E7F7"),
            Shade("small", f"less than {small} points below", "FFF8DA"),
            Shade("medium", f"{small} to {large} points below", "FCD9A6"),
            Shade("large", f"{large} points or more below", "F2A07C"),
        ]

    def classify(self, difference: float | None) -> str:
        """The class of a difference to the reference; empty when there is none."""
        if difference is None:
            return ""
        small, large = self.limits
        if difference >= 0:
            return "atleast"
        return "small" if difference > -small else "medium" if difference > -large else "large"


# `align-predict`, captions of tables 1, 2, 6, 7, 8 and of table 5.
PAIRS = Shading((2.0, 5.0))
SETS = Shading((5.0, 10.0))
