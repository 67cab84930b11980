"""What every declaration of a table or figure is given: the config, the results, and how to judge."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field

from crossalign.catalog.addresses import Run
from crossalign.catalog.stand_in import artificial, stand_in
from crossalign.results.published import Published, published, readings
from crossalign.results.reading import Results
from crossalign.results.verdict import POINTS, Judge, Scale


@dataclass
class Context:
    """One config with its results; `item` is the table or figure that is made, and `printed` the paper's numbers."""

    config: dict
    results: Results
    item: str = ""
    printed: Published = field(default_factory=lambda: Published([]))

    @property
    def artificial(self) -> bool:
        """Whether the languages are those of the demo world."""
        return artificial(self.config) is not None

    def of(self, item: str) -> "Context":
        """The same for one item."""
        found = copy(self)
        found.item = item
        found.printed = readings(item) if "/figure" in item else published(item)
        return found

    def judge(
        self, task: str = "", scale: Scale = POINTS, terms: int = 1, *, runs: Iterable[Run] = (), other: str = ""
    ) -> Judge:
        """The judge of numbers that depend on some runs; on none: of facts and counts of data. `other` says why they
        are not comparable with the printed ones."""
        return Judge(self.item.partition("/")[0], task, scale, terms, stand_in(self.config, runs), other)
