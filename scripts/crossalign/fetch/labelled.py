"""Get the files of one split of a labelled set of the hub, or find them in a folder: tables only, nothing that runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from crossalign.data.columns import FORMAT_NAMES, format_of
from crossalign.fetch.listing import COMPLETE
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from crossalign.fetch.sources import Settings

CONVERTED = "refs/convert/parquet"


@dataclass(frozen=True)
class HubSplit:
    """One split of a set of the hub; `files` is a pattern in which * stands for anything, / included."""

    name: str
    split: str
    hub: str
    revision: str
    files: str
    licence: str = "not-stated"
    bytes: int | None = None

    @property
    def path(self) -> str:
        """Its folder below the downloads and below any mirror."""
        return f"datasets/{self.name}/{self.split}"

    @property
    def complete(self) -> str:
        """The file there that is written last."""
        return f"{self.path}/{COMPLETE}"


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """The tables among some files whose names fit a pattern, in the order of their names."""
    return sorted(name for name in names if format_of(name) and name != COMPLETE and fnmatchcase(name, pattern))


def files_in(folder: Path, pattern: str) -> list[Path]:
    """The tables of a folder that fit a pattern."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    if not (found := matching(names, pattern)):
        raise UserError(f"{folder}: {_no_match(pattern, names)}")
    return [folder / name for name in found]


def _no_match(pattern: str, names: list[str]) -> str:
    tables = matching(names, "*")
    shown = ", ".join(tables[:5]) + (f" and {len(tables) - 5} more" if len(tables) > 5 else "")
    return f"no table fits '{pattern}' ({FORMAT_NAMES}); " + (f"it has {shown}" if tables else "it has none at all")


def obtain_split(asked: HubSplit, settings: Settings) -> Path:
    """Make sure that the files of a split are complete in their folder; return its `complete.json`, written last."""
    # The catalog imports this file and fetches nothing.
    from crossalign.fetch.repositories import Repository, find_offer, mark_complete, obtain_files

    names: list[str] = []

    def wanted(offered: list[str]) -> list[str]:
        names[:] = offered
        return matching(offered, asked.files)

    repository = Repository("dataset", f"{asked.name}/{asked.split}", asked.hub, asked.revision, wanted)
    offer = find_offer(repository, settings)
    if not offer.files:
        _refuse(asked, names)
    return mark_complete(repository, offer, obtain_files(repository, offer, settings), settings)


def _refuse(asked: HubSplit, names: list[str]) -> None:
    where = f"data set {asked.name}: {asked.hub} at revision {asked.revision}"
    if not matching(names, "*") and (scripts := [name for name in names if name.endswith(".py")]):
        raise UserError(
            f"{where} holds no tables but the loading script {scripts[0]}, which is never run; the revision {CONVERTED}"
            " of most data sets has parquet files"
        )
    raise UserError(f"{where}: {_no_match(asked.files, names)}")
