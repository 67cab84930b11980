"""The catalog: which runs, data sets and downloads the chosen tables and figures need.

Plain Python over the config: the rules ask it for their inputs, the tests count it, the plan prices it.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Run, Tuned, model_of
from crossalign.catalog.search import trials_of
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.catalog.targets import evaluation_sets, training_sets
from crossalign.catalog.trained_models import texts_of, trained_model, trained_models, trained_vocabulary
from crossalign.papers.adjust.items import pool_set
from crossalign.papers.all_items import ITEMS, PAPERS
from crossalign.papers.common.needs import Item, Needs
from crossalign.papers.talk.items import text_set


class Catalog:
    """Answers for one config, which must have passed `crossalign.catalog.config.check`."""

    def __init__(self, config: dict) -> None:
        self.config = config
        self._needs: dict[str, Needs] = {}

    @cached_property
    def items(self) -> dict[str, Item]:
        """The chosen tables and figures by name, `align-predict/table1`."""
        chosen = self.config["items"]
        names = [f"{paper}/{item.id}" for paper in self.config["papers"] for item in PAPERS[paper]]
        left_out = self.config.get("skip") or {}
        return {name: ITEMS[name] for name in names if (chosen == "all" or name in chosen) and name not in left_out}

    def needs(self, item: str) -> Needs:
        """What one item needs; worked out once."""
        if item not in self._needs:
            self._needs[item] = ITEMS[item].needs(self.config)
        return self._needs[item]

    def runs(self, items: Iterable[str] | None = None) -> set[Run]:
        """All models behind the items, those that others start from included, and trials of their settings."""
        direct = set().union(*(self.needs(item).runs for item in self.items if items is None or item in items))
        direct |= {trial for run in direct if isinstance(run, Tuned) for trial in trials_of(self.config, run)}
        starts = {model_of(run) for run in direct if isinstance(run, Tuned)} - {None}
        adapted = {Base(run.base) for run in direct | starts if isinstance(run, Adapted)}
        found = direct | starts | adapted
        trained = [trained_model(self.config, run.name) for run in found if isinstance(run, Base)]
        names = {entry["vocabulary"] for entry in trained if entry}
        return found | {Base(name) for name in names if not trained_vocabulary(self.config, name)}

    def sets(self, items: Iterable[str] | None = None) -> set[DataSet]:
        """All data sets behind the items: for training, testing and comparing."""
        names = list(self.items) if items is None else [item for item in self.items if item in items]
        found = set().union(*(self.needs(item).sets for item in names))
        for run in self.runs(names):
            found.update(self.sets_of(run))
        return found

    def sets_of(self, run: Run) -> list[DataSet]:
        """The data sets that making and testing one run reads."""
        if isinstance(run, Tuned):
            return [*training_sets(self.config, run).values(), *evaluation_sets(self.config, run)]
        if isinstance(run, Adapted) and isinstance(run.adaptation, Adjustment):
            return [pool_set(self.config, run.adaptation.lang)]
        if isinstance(run, Adapted):
            return self._texts(run.adaptation.text)
        entry = trained_model(self.config, run.name)
        if not entry:
            return []
        vocabulary = trained_vocabulary(self.config, entry["vocabulary"])
        further = texts_of(vocabulary) if vocabulary else []
        return list(dict.fromkeys([*texts_of(entry), *texts_of(entry, "dev"), *further]))

    def _texts(self, text: str) -> list[DataSet]:
        return [text_set(self.config, text, split) for split in ("train", "dev")]

    def made_here(self, name: str) -> bool:
        """Whether a base model is pretrained by this workflow, not fetched."""
        return trained_model(self.config, name) is not None

    def files(self, items: Iterable[str] | None = None) -> list[str]:
        """The register's paths of every file to download for the items."""
        return sorted({path for data in self.sets(items) for path in raw_files(data)})

    def models(self, items: Iterable[str] | None = None) -> list[str]:
        """The names of every model to download for the items."""
        bases = {run.name for run in self.runs(items) if isinstance(run, Base)}
        return sorted(name for name in bases if not self.made_here(name))

    def vocabularies(self, items: Iterable[str] | None = None) -> list[str]:
        """The vocabularies that are trained here for the items' models, but for those of one language."""
        trained = trained_models(self.config)
        names = {trained[run.name]["vocabulary"] for run in self.runs(items) if getattr(run, "name", "") in trained}
        return sorted(name for name in names if trained_vocabulary(self.config, name))


def kind_of(run: Run) -> str:
    """What a run is counted as."""
    if isinstance(run, Tuned):
        return "grid trial" if run.init.startswith("grid-") else "fine-tuning"
    if isinstance(run, Adapted):
        return "adjustment" if isinstance(run.adaptation, Adjustment) else "masked language modelling"
    return "masked language modelling" if run.name.startswith("mono-") else "base model"


def count(runs: Iterable[Run]) -> Counter[str]:
    """How many runs of each kind."""
    return Counter(map(kind_of, runs))
