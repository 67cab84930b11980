"""The catalog: which runs, data sets and downloads the chosen tables and figures need.

Plain Python over the config: the rules ask it for their inputs, the tests count it, the plan prices it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from crossalign.analysis.indexes import INDEXES
from crossalign.catalog.addresses import Adapted, Adjustment, Base, Run, Tuned, model_of
from crossalign.catalog.items import CONFIGURED, Item, Needs
from crossalign.catalog.labelled import labelled
from crossalign.catalog.sets import DataSet, pool_set, raw_files, text_set
from crossalign.catalog.targets import evaluation_sets, training_sets, trials_of
from crossalign.catalog.trained_models import texts_of, trained_model, trained_models, trained_vocabulary
from crossalign.fetch.labelled import HubSplit


class Catalog:
    """Answers for one config, which must have passed `crossalign.catalog.config.check`."""

    def __init__(self, config: dict, known: Mapping[str, Item]) -> None:
        self.config, self.known = config, known
        self._needs: dict[str, Needs] = {}

    @cached_property
    def items(self) -> dict[str, Item]:
        """The chosen tables and figures by name, `align-predict/table1`."""
        chosen = self.config["items"]
        names = [name for paper in self.config["papers"] for name in self.known if name.startswith(f"{paper}/")]
        wanted = [name for name in names if (chosen == "all" or name in chosen) and not self.left_out(name)]
        return {name: self.known[name] for name in wanted}

    def left_out(self, item: str) -> str:
        """Why an item is not made, whatever else the config chooses; empty where nothing speaks against it."""
        return (self.config.get("skip") or {}).get(item) or self.known[item].lacks(self.config)

    def needs(self, item: str) -> Needs:
        """What one item needs; worked out once."""
        if item not in self._needs:
            self._needs[item] = self.known[item].needs(self.config)
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
        further = [*texts_of(vocabulary), *texts_of(vocabulary.get("letters"))] if vocabulary else []
        earlier = self.sets_of(Base(entry["init"])) if "init" in entry else []
        return list(dict.fromkeys([*earlier, *texts_of(entry), *texts_of(entry, "dev"), *further]))

    @cached_property
    def _evaluated(self) -> list[DataSet]:
        return sorted(data for data in self.sets() if data.kind not in ("text", "bitext") and data.split != "train")

    def evaluated(self, lang: str) -> list[DataSet]:
        """Every set of a language that some chosen item tests or compares models on."""
        # Mixed pairs are half English.
        mixed = {"xnlimixed"} if lang == "en" else set()
        return [
            data
            for data in self._evaluated
            if not data.latin and (lang in data.languages or data.kind == "nli" and data.family in mixed)
        ]

    def _texts(self, text: str) -> list[DataSet]:
        return [text_set(self.config, text, split) for split in ("train", "dev")]

    def made_here(self, name: str) -> bool:
        """Whether a base model is pretrained by this workflow, not fetched."""
        return trained_model(self.config, name) is not None

    def languages(self, run: Run, corpus: str) -> list[str]:
        """The languages of a parallel corpus that some item compares in a model, sorted; English is always there."""
        found = {data.split for _, sets in self._comparisons(run, corpus) for data in sets}
        return sorted({"en", *found})

    def indexes(self, run: Run, corpus: str) -> list[str]:
        """The similarity indexes that some item asks of a model, so that no job compares more."""
        found = {index for item, _ in self._comparisons(run, corpus) for index in item.indexes}
        if CONFIGURED in found:
            found.add(self.config["similarity"]["index"])
        return [index for index in INDEXES if index in found]

    def _comparisons(self, run: Run, corpus: str) -> Iterator[tuple[Item, list[DataSet]]]:
        """The items that compare languages in a model, each with its sets of the corpus."""
        for name, item in self.items.items():
            needs = self.needs(name)
            if (
                run in needs.runs
                and isinstance(run, item.compares)
                and (sets := [data for data in needs.sets if data.kind == "parallel" and data.name == corpus])
            ):
                yield item, sets

    def files(self, items: Iterable[str] | None = None) -> list[str]:
        """The register's paths of every file to download for the items."""
        plain = (data for data in self.sets(items) if not labelled(self.config, data))
        return sorted({path for data in plain for path in raw_files(data)})

    def hub_splits(self, items: Iterable[str] | None = None) -> list[HubSplit]:
        """The splits of labelled sets to download for the items."""
        found = (labelled(self.config, data) for data in sorted(self.sets(items)))
        return [split for one in found if one and (split := one.on_hub)]

    def models(self, items: Iterable[str] | None = None) -> list[str]:
        """The names of every model to download for the items."""
        bases = {run.name for run in self.runs(items) if isinstance(run, Base)}
        return sorted(name for name in bases if not self.made_here(name))

    def vocabularies(self, items: Iterable[str] | None = None) -> list[str]:
        """The vocabularies that are trained here for the items' models, but for those of one language."""
        trained = trained_models(self.config)
        names = {trained[run.name]["vocabulary"] for run in self.runs(items) if getattr(run, "name", "") in trained}
        return sorted(name for name in names if trained_vocabulary(self.config, name))


def covers_language(run: Run, lang: str) -> bool:
    """Whether a model belongs to a language's column of distances: it is the original, or adjusted to that language."""
    start = model_of(run) if isinstance(run, Tuned) else run
    return not isinstance(start, Adapted) or start.adaptation.lang == lang


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
