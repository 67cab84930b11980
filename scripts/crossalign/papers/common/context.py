"""What every declaration of a table or figure is given: the config, the results, and how to judge."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from crossalign.catalog.addresses import Run
from crossalign.catalog.runs import Catalog
from crossalign.catalog.stand_in import artificial, stand_in
from crossalign.papers.all_items import ITEMS, catalog_of
from crossalign.results.reading import Results
from crossalign.results.verdict import POINTS, Judge, Scale


@dataclass
class Context:
    """One config with its results."""

    config: dict
    results: Results
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = catalog_of(self.config)

    @property
    def artificial(self) -> bool:
        """Whether the languages are those of the demo world."""
        return artificial(self.config) is not None

    def title(self, item: str) -> str:
        """The item's title, as the catalog has it."""
        return ITEMS[item].title

    def judge(
        self, paper: str, task: str = "", scale: Scale = POINTS, terms: int = 1, *, runs: Iterable[Run] = ()
    ) -> Judge:
        """The judge of numbers that depend on some runs; on none: of facts and counts of data."""
        return Judge(paper, task, scale, terms, stand_in(self.config, runs))
