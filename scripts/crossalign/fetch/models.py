"""Get one model of the register into a folder: weights as safetensors, configuration, tokeniser; nothing that runs."""

import fnmatch
import json
import sys
from pathlib import Path

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure
from crossalign.fetch.hub import RemoteFile
from crossalign.fetch.listing import MODEL_MARK
from crossalign.fetch.lock import Locked, how_to_accept, record
from crossalign.fetch.offers import (
    BY_HAND,
    CONFIGURATION,
    INDEX,
    TOKENISER,
    Offer,
    find_offer,
    locked_files,
    mirror_is_law,
)
from crossalign.fetch.part import claim
from crossalign.fetch.progress import size
from crossalign.fetch.sources import Settings, fill
from crossalign.fetch.web import SourceError
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json


def obtain_model(name: str, hub: str, revision: str, settings: Settings) -> Path:
    """Make sure that a model lies complete in its folder; return the path of its `complete.json`, written last."""
    folder = settings.downloads / "models" / name
    offer = find_offer(name, hub, revision, settings)
    locked = {} if mirror_is_law(settings) else locked_files(name, offer, settings)
    _check_names(name, hub, revision, [item.name for item in offer.items])
    rows, files = [], []
    for item in offer.items:
        path = f"models/{name}/{item.name}"
        row = locked.get(path)
        measured = _get(item, path, folder / item.name, row.expected if row else Expected(), offer, settings)
        rows.append(Locked(path, offer.version, measured.bytes, measured.sha256, origin(hub, item.name)))
        files.append({"file": item.name, "bytes": measured.bytes, "sha256": measured.sha256})
    _check_index(folder, [item.name for item in offer.items])
    _remove_leftovers(folder, {item.name for item in offer.items})
    if offer.version and not mirror_is_law(settings):
        record(settings.lock, rows)
    content = {"name": name, "hub": hub, "revision": revision, "commit": offer.commit, "files": files}
    write_json(folder / MODEL_MARK, content)
    print(f"models/{name}: {len(files)} files, {size(sum(row.bytes for row in rows))}", file=sys.stderr)
    return folder / MODEL_MARK


def origin(hub: str, file: str) -> str:
    """The address that the lock file notes."""
    return hub if hub.startswith(BY_HAND) else f"hub://models/{hub}/{file}"


def _check_names(name: str, hub: str, revision: str, names: list[str]) -> None:
    if not any(file.endswith(".safetensors") for file in names):
        raise UserError(
            f"model {name}: {hub} at revision {revision} holds no safetensors, and pickled weights are never fetched; "
            "a converted revision (such as refs/pr/N, one of the repository's pull requests) can be named in models.tsv"
        )
    if "config.json" not in names:
        raise UserError(f"model {name}: {hub} at revision {revision} holds no config.json")


def _check_index(folder: Path, names: list[str]) -> None:
    """A sharded model must have all the shards that its index names."""
    if INDEX not in names:
        return
    try:
        shards = set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError) as error:
        raise UserError(f"{folder / INDEX}: not an index of weights ({error})") from error
    if absent := sorted(shards - set(names)):
        raise UserError(f"{folder / INDEX} names files that the source does not have: {', '.join(absent)}")


def _remove_leftovers(folder: Path, names: set[str]) -> None:
    """Weights or tokenisers of another revision would be loaded in place of the right ones."""
    forms = (*CONFIGURATION, *TOKENISER, INDEX, "*.safetensors")
    for file in sorted(folder.iterdir()):
        if file.name not in names and any(fnmatch.fnmatchcase(file.name, form) for form in forms):
            print(f"{file}: not part of this revision; removed", file=sys.stderr)
            file.unlink()


def _get(item: RemoteFile, path: str, target: Path, lock: Expected, offer: Offer, settings: Settings) -> Measured:
    expected = item.expected.also(lock)

    def present() -> Measured | None:
        if not target.exists():
            return None
        measured = measure(target, expected.needs_git)
        try:
            check(measured, expected)
            return measured
        except WrongContent as error:
            if not offer.can_fetch:
                advice = f". {how_to_accept(path, settings.lock)}" if lock.checksums else ""
                raise UserError(f"{target}: {error}{advice}") from error
            # Another revision's, or damaged: the source has just said what it must be.
            print(f"{path}: {error}; fetching it again", file=sys.stderr, flush=True)
            return None

    if measured := present():
        return measured
    with claim(target) as part:
        if measured := present():
            part.restart()
            return measured
        try:
            measured = fill(part, item.url, expected, path, settings.patience, token=offer.on_hub)
        except (SourceError, WrongContent) as error:
            advice = f". {how_to_accept(path, settings.lock)}" if lock.checksums else ""
            raise UserError(f"cannot get {path} (its place: {target}): {item.url}: {error}{advice}") from error
        part.finish()
        return measured
