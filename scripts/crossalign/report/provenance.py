"""Where the numbers of an item come from: its runs and how they were trained, its data, its part of the config."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Mlm, Run, Tuned
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sheets import COVERED, Sheets
from crossalign.catalog.trained_models import MONO, trained_models
from crossalign.fetch.lock import read_lock
from crossalign.runtime.files import read_json, sha256

# The talk shows items of this paper again.
SHOWN_AGAIN = {"talk": ("align-predict",)}
# A fine-tuning has learnt nothing, or has lost it again, if its last epoch costs more than this share of the first. In
# the small run those that end at guessing have 0.96 or more, and all others less than 0.945.
FALLEN = 0.95


@dataclass(frozen=True)
class Provenance:
    """One item. `made` are the facts of its runs that are there, `inputs` the files that it was rendered from."""

    item: str
    runs: list[str]
    made: dict[str, dict]
    inputs: list[str]
    data: list[str]
    settings: list[str]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs that are there."""
        return sorted({facts["seed"] for facts in self.made.values() if "seed" in facts})

    @property
    def devices(self) -> dict[str, int]:
        """How many runs were trained on each kind of device."""
        return dict(sorted(Counter(facts["device"] for facts in self.made.values() if "device" in facts).items()))

    @property
    def seconds(self) -> float:
        """Time of training in all."""
        return round(sum(facts.get("seconds", 0.0) for facts in self.made.values()), 1)

    @property
    def versions(self) -> list[str]:
        """Versions of the libraries: `torch 2.13.0`."""
        pairs = (pair for facts in self.made.values() for pair in facts.get("versions", {}).items())
        return sorted({f"{name} {version}" for name, version in pairs})


@dataclass
class Sources:
    """Answers for all items of one run; the facts of a training are read once."""

    catalog: Catalog
    results: Path
    _facts: dict[str, dict | None] = field(default_factory=dict)

    @cached_property
    def sheets(self) -> Sheets:
        return Sheets(self.catalog)

    def facts(self, run: Run) -> dict | None:
        """What training.json says of a run; None when it was not run."""
        address = run.path()
        if address not in self._facts:
            found = read_json(self.results / address / "training.json")
            self._facts[address] = None if found is None else _plain(found, run)
        return self._facts[address]

    def of(self, item: str) -> Provenance:
        """The provenance of one item."""
        runs = sorted(self.catalog.runs([item]), key=lambda run: run.path())
        made = {run.path(): facts for run in runs if (facts := self.facts(run)) is not None}
        trained = [run.path() for run in runs if self.trained(run)]
        return Provenance(item, trained, made, self.inputs(item), self.data(item), self.settings(item, runs))

    def data(self, item: str) -> list[str]:
        """The downloaded files behind an item; those of a labelled set are the ones that the lock file has of it."""
        files, splits = self.catalog.files([item]), [f"{split.path}/" for split in self.catalog.hub_splits([item])]
        if splits:
            lock = self.results.resolve().parent.parent / self.catalog.config["downloads"]["lock"]
            files += sorted(path for path in read_lock(lock) if path.startswith(tuple(splits)))
        return files

    def trained(self, run: Run) -> bool:
        """Whether this workflow makes the model, and does not fetch it."""
        return isinstance(run, Tuned | Adapted) or self.catalog.made_here(run.name)

    def inputs(self, item: str) -> list[str]:
        """The result files that are there and that the item, and what stands below it, was rendered from."""
        below = f"{self.sheets.results}/"
        files = [*self.sheets.item_results(item), *([self.sheets.at("coverage.csv")] if item == COVERED else [])]
        paths = [file.removeprefix(below) for file in files if file.startswith(below)]
        return [path for path in paths if (self.results / path).is_file()]

    def settings(self, item: str, runs: Iterable[Run]) -> list[str]:
        """The keys of the config on which the item depends."""
        paper = item.partition("/")[0]
        runs = list(runs)
        tuned = [run for run in runs if isinstance(run, Tuned)]
        adaptations = [run.adaptation for run in runs if isinstance(run, Adapted)]
        keys = ["seeds", paper, *SHOWN_AGAIN.get(paper, ())]
        if any(data.kind == "parallel" for data in self.catalog.needs(item).sets):
            keys.append("similarity")
        if tuned:
            keys += ["finetune.defaults", *sorted({f"finetune.{run.preset}" for run in tuned})]
        if any(isinstance(made, Adjustment) for made in adaptations):
            keys += ["aligner", "pull"]
        if any(isinstance(made, Mlm) for made in adaptations):
            keys.append("mlm")
        bases = {run.name for run in runs if isinstance(run, Base)}
        entries = {MONO if name.startswith("mono-") else name for name in bases}
        trained = sorted(entries & {MONO, *trained_models(self.catalog.config)})
        keys += [f"pretrain.models.{name}" for name in (["defaults"] if trained else []) + trained]
        if any(run.model == "bilstm" for run in tuned):
            keys.append("bilstm")
        return [key for key in keys if _at(self.catalog.config, key) is not None]


def _plain(found: dict, run: Run) -> dict:
    """The facts that a reader asks for, where they are of the right kind."""
    facts: dict = {}
    if isinstance(seed := getattr(run, "seed", None), int):
        facts["seed"] = seed
    if isinstance(found.get("seconds"), int | float):
        facts["seconds"] = found["seconds"]
    for name in ("device", "recipe"):
        if isinstance(found.get(name), str):
            facts[name] = found[name]
    if isinstance(run, Tuned) and _learnt_nothing(found.get("loss")):
        facts["learnt_nothing"] = True
    if isinstance(found.get("versions"), dict):
        facts["versions"] = {str(name): str(version) for name, version in sorted(found["versions"].items())}
    return facts


def _learnt_nothing(losses: object) -> bool:
    """Whether the loss by epoch hardly fell."""
    if not isinstance(losses, list) or len(losses) < 2 or not all(isinstance(each, int | float) for each in losses):
        return False
    return losses[-1] > FALLEN * losses[0]


def _at(config: dict, key: str) -> object:
    """The value of a dotted key."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config


def chosen_settings(config: dict, keys: Iterable[str]) -> dict[str, object]:
    """The values of some dotted keys."""
    return {key: _at(config, key) for key in keys}


def full_record(
    found: Iterable[Provenance], results: Path, checksums: dict[str, str], commit: str, config: dict
) -> dict:
    """Everything that is known, for provenance.json: with a checksum of every result that an item was rendered from."""
    found = list(found)
    inputs = sorted({path for each in found for path in each.inputs})
    return {
        "commit": commit,
        # Folders and mirrors are the machine's own affair; the page may be passed on.
        "config": {key: value for key, value in config.items() if key != "downloads"},
        "data": {path: checksums.get(path, "") for path in sorted({path for each in found for path in each.data})},
        "inputs": {path: sha256(results / path) for path in inputs},
        "runs": dict(sorted({address: facts for each in found for address, facts in each.made.items()}.items())),
        "items": {
            each.item: {"runs": each.runs, "inputs": each.inputs, "data": each.data, "settings": each.settings}
            for each in found
        },
    }


def summary(each: Provenance, places: dict[str, int]) -> dict:
    """What the page shows of an item; `places` numbers the data files, which many items share."""
    trained = [address for address in each.runs if address in each.made]
    return {
        "runs": [len(trained), len(each.runs)],
        "seeds": each.seeds,
        "devices": each.devices,
        "seconds": each.seconds,
        "versions": each.versions,
        "settings": each.settings,
        "data": [places[path] for path in each.data],
        "inputs": len(each.inputs),
    }
