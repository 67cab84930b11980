"""How many entries a set has: counted where it is prepared, else as published, or as the demo world says."""

from __future__ import annotations

import csv
import json
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from crossalign.catalog.sets import DataSet
from crossalign.runtime.errors import UserError

# Where nothing is known of a set.
USUAL = 1000


class Sizes:
    """Answers for one config; `folder` is where its results lie, `register` the file of published sizes."""

    def __init__(self, config: dict, folder: Path, register: Path, root: Path) -> None:
        self._config = config
        self._folder = folder
        self._known: dict[DataSet, int] = {}
        world = config.get("world")
        self._world = yaml.safe_load((root / world).read_text(encoding="utf-8")) if world else None
        self._published = [] if world else _read(register)

    def of(self, data: DataSet) -> int:
        """The number of entries of a set."""
        if data not in self._known:
            self._known[data] = self._counted(data) or self._fold(data) or self._stated(data) or USUAL
        return self._known[data]

    def _counted(self, data: DataSet) -> int | None:
        report = (self._folder / data.path()).with_suffix(".report.json")
        try:
            return json.loads(report.read_text(encoding="utf-8"))["kept"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _fold(self, data: DataSet) -> int | None:
        """Of five folds three are for training and one each for choosing and testing."""
        if not data.fold:
            return None
        whole = self.of(DataSet(data.kind, data.plain, "test"))
        return max(1, whole * 3 // 5 if data.split == "train" else whole // 5)

    def _stated(self, data: DataSet) -> int | None:
        if data.kind == "bitext":
            return self._config["adjust"]["pool"]
        if data.kind == "parallel" and data.name == "xnliext":
            return self._config["anc"]["sentences"]
        if self._world is not None:
            return _of_world(self._world, data)
        name = f"{data.kind}/{data.plain}/{data.split}"
        return next((size for pattern, size in self._published if fnmatchcase(name, pattern)), None)


def _read(register: Path) -> list[tuple[str, int]]:
    """Patterns of sets with their sizes; the first that fits holds."""
    with register.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        try:
            return [(row["set"], int(row["size"])) for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{register}, line {rows.line_num}: expected set, size and source: {error}") from error


def _of_world(world: dict, data: DataSet) -> int | None:
    """What the settings of the demo world say of a set."""
    family, split = data.family, data.split
    if data.kind == "trees":
        return world["pud"]["sentences"] if family.endswith("_pud") else world["treebanks"].get(family, {}).get(split)
    if data.kind == "parallel":
        return world["pud"]["sentences"]
    if data.kind == "ner":
        entry = world["conll2003"] if family == "conll2003" else world["wikiann"]
        if family == "wikiann":
            entry = entry["small" if data.languages[0] in entry["small"]["languages"] else "large"]
        return entry.get(split)
    if data.kind == "nli":
        return world["nli"]["train"] if split == "train" else world["nli"]["xnli"].get(split)
    if data.kind == "qa":
        entry = {
            "squad": world["qa"],
            "squadmt": world["qa"]["translated"],
            "xquad": {"test": world["qa"]["xquad"]["questions"]},
        }
        return (entry | {key: world["qa"][key] for key in ("mlqa", "tydiqa")}).get(family, {}).get(split)
    unseen = world["text"]["demo"]
    return unseen["narabizi"] if family == "narabizi" else unseen["cc100" if family == "cc100" else "unseen"]
