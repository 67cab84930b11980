"""Labelled sets that the config describes: the section `datasets`.

An entry is a family of sets, one per language: `mine_wo` for entities, pairs and questions, `wo_mine` for tagged words,
which lie among the treebanks. Such a set may stand wherever a prepared set may.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crossalign.catalog.sets import DataSet, raw_files
from crossalign.data.columns import COLUMNS, LABELLED
from crossalign.fetch.labelled import HubSplit, files_in
from crossalign.fetch.register import Dataset, read_datasets
from crossalign.runtime.errors import UserError
from crossalign.tasks.declared import TASKS

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class LabelledSet:
    """One split of one language of an entry."""

    data: DataSet
    family: str
    lang: str
    entry: dict

    @property
    def files(self) -> str:
        """The pattern of its files."""
        languages = self.entry["languages"]
        theirs = languages[self.lang] if isinstance(languages, dict) else self.lang
        try:
            return self.entry["splits"][self.data.split].replace("{lang}", theirs)
        except KeyError:
            raise UserError(
                f"datasets.{self.family}.splits: no '{self.data.split}', which is needed of {self.data.name}; "
                f"there are {', '.join(self.entry['splits'])}"
            ) from None

    @property
    def on_hub(self) -> HubSplit | None:
        """What is fetched; None of a set that lies in a folder."""
        if not self.entry.get("hub"):
            return None
        told = {key: self.entry[key] for key in ("hub", "revision", "licence") if key in self.entry}
        return HubSplit(self.data.name, self.data.split, files=self.files, **told)

    def local_files(self) -> list[Path]:
        """The files of a set that lies in a folder."""
        return files_in(ROOT / self.entry["folder"], self.files)

    def tests(self) -> list[DataSet]:
        """What a model that is trained on it is tested on: the test sets of all languages of its entry."""
        return [set_of(self.entry["task"], self.family, lang, "test") for lang in self.entry["languages"]]


def set_of(task: str, family: str, lang: str, split: str) -> DataSet:
    """One set of a family."""
    kind = TASKS[task].data
    return DataSet(kind, f"{lang}_{family}" if kind == "trees" else f"{family}_{lang}", split)


def labelled(config: dict, data: DataSet) -> LabelledSet | None:
    """The set as the config describes it; None for a set of another origin."""
    first, _, second = data.name.partition("_")
    lang, family = (first, second) if data.kind == "trees" else (second, first)
    # A config of an earlier run, of which a page is made again, lacks the section.
    entry = (config.get("datasets") or {}).get(family)
    if not entry or lang not in entry["languages"] or set_of(entry["task"], family, lang, data.split) != data:
        return None
    return LabelledSet(data, family, lang, entry)


def hub_split(config: dict, name: str, split: str) -> HubSplit:
    """What is fetched of a set of the hub."""
    kinds = {TASKS[task].data for task in COLUMNS}
    found = [own for kind in sorted(kinds) if (own := labelled(config, DataSet(kind, name, split)))]
    if not found or not found[0].on_hub:
        raise UserError(f"datasets: no entry describes a set '{name}' of the hub")
    return found[0].on_hub


def wrong_datasets(config: dict, languages: set[str]) -> Iterator[str]:
    """What the keys of entries alone do not show."""
    for family, entry in (config.get("datasets") or {}).items():
        key = f"datasets.{family}"
        if not re.fullmatch("[a-z0-9]+", family):
            yield f"datasets: '{family}' is not a name of small letters and digits"
        if ("hub" in entry) == ("folder" in entry):
            yield f"{key}: give either 'hub' and 'revision', or 'folder'"
        elif ("hub" in entry) != ("revision" in entry):
            yield f"{key}: 'revision' belongs to 'hub': a commit, or a branch whose commit is locked"
        if unknown := [lang for lang in entry["languages"] if lang not in languages]:
            yield f"{key}.languages: '{unknown[0]}' is not in resources/languages.tsv"
        task = entry["task"]
        if unread := sorted(set(entry.get("columns", ())) - {*COLUMNS[task], "id"}):
            yield f"{key}.columns: '{unread[0]}' is nothing that {task} reads; it reads {', '.join(COLUMNS[task])}"
        if "labels" in entry and task not in LABELLED:
            yield f"{key}.labels: {task} has no labels"
        if taken := [
            data.name for lang in entry["languages"] if _is_built_in(data := set_of(task, family, lang, "test"))
        ]:
            yield f"{key}: this is the name of a set that the workflow has already ({taken[0]}); choose another"
        for split, files in entry["splits"].items():
            if len(entry["languages"]) > 1 and "{lang}" not in files:
                yield f"{key}.splits.{split}: '{files}' is the same for all languages; write {{lang}} where they differ"
            elif "folder" in entry:
                for lang in entry["languages"]:
                    try:
                        LabelledSet(set_of(task, family, lang, split), family, lang, entry).local_files()
                    except UserError as error:
                        yield f"{key}.splits.{split}: {error}"


@cache
def registered_files() -> dict[str, Dataset]:
    """The register of data sets, by path."""
    return read_datasets(ROOT / "resources" / "datasets.tsv")


def _is_built_in(data: DataSet) -> bool:
    if data.kind == "trees":
        return data.name in _treebanks()
    try:
        return bool(raw_files(data))
    except UserError:
        return False


@cache
def _treebanks() -> frozenset[str]:
    """The treebanks of the register; any other has a place there as well, but no files."""
    paths = (path.split("/") for path in registered_files())
    return frozenset(path[1] for path in paths if path[0] == "ud")
