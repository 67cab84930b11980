"""What every declaration of a table or figure is given: the config, the results, and how to judge."""

from dataclasses import dataclass, field

from crossalign.catalog import Catalog
from crossalign.items import ITEMS
from crossalign.render.results import Results
from crossalign.render.verdict import POINTS, Judge, Scale


@dataclass
class Context:
    """One config with its results."""

    config: dict
    results: Results
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = Catalog(self.config)

    @property
    def artificial(self) -> bool:
        """Whether the languages are those of the demo world."""
        return bool(self.config.get("world"))

    def title(self, item: str) -> str:
        """The item's title, as the catalog has it."""
        return ITEMS[item].title

    def judge(self, paper: str, task: str = "", scale: Scale = POINTS, terms: int = 1) -> Judge:
        """The judge of numbers of this run."""
        return Judge(paper, task, scale, terms, self.artificial)
