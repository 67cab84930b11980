"""Find out who has a model, at which commit, and which of its files are wanted: from a mirror, the hub, or a person."""

import fnmatch
import json
from dataclasses import dataclass
from pathlib import Path

from crossalign.fetch.checksums import Expected, parse_checksum
from crossalign.fetch.hub import RemoteFile, is_commit, model_files
from crossalign.fetch.listing import MODEL_MARK
from crossalign.fetch.lock import Locked, read_lock
from crossalign.fetch.mirror import SUMS
from crossalign.fetch.sources import Settings
from crossalign.fetch.web import SourceError
from crossalign.runtime.errors import UserError

CONFIGURATION = ("config.json",)
TOKENISER = (
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("sentencepiece*.model", "special_tokens_map.json", "added_tokens.json"),
)
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
BY_HAND = "manual:"
SHARDS = "model-*-of-*.safetensors"


@dataclass(frozen=True)
class Offer:
    """What a source has of a model. `version` is empty where the source cannot prove it."""

    version: str
    commit: str | None
    items: list[RemoteFile]
    on_hub: bool = False
    can_fetch: bool = True


def wanted_names(names: list[str]) -> list[str]:
    """Choose from a repository's files: only at its top, no pickles, no code, one copy of the weights."""
    plain = [name for name in sorted(names) if "/" not in name]
    chosen = [name for name in plain if any(fnmatch.fnmatchcase(name, form) for form in CONFIGURATION + TOKENISER)]
    if WEIGHTS in plain:
        weights = [WEIGHTS]
    elif INDEX in plain:
        weights = [INDEX, *(name for name in plain if fnmatch.fnmatchcase(name, SHARDS))]
    else:
        weights = [name for name in plain if name.endswith(".safetensors")]
    return sorted(chosen + weights)


def mirror_is_law(settings: Settings) -> bool:
    """Whether the mirror is the only source, and its checksums the only ones that count."""
    return settings.mirror is not None and settings.mirror.own_checksums


def _version(revision: str, commit: str) -> str:
    """How the lock file names a version: a branch together with the commit that it was."""
    return commit if revision == commit else f"{revision}@{commit}"


def _locked_commit(name: str, revision: str, settings: Settings) -> str | None:
    """The commit that a revision was when this model was first seen."""
    if is_commit(revision):
        return revision
    for path, row in read_lock(settings.lock).items():
        if path.startswith(f"models/{name}/") and row.version.startswith(f"{revision}@"):
            return row.version.removeprefix(f"{revision}@")
    return None


def locked_files(name: str, offer: Offer, settings: Settings) -> dict[str, Locked]:
    """The rows of the lock file that speak of the very version that is offered."""

    def fits(row: Locked) -> bool:
        same_commit = offer.commit is not None and row.version.endswith(offer.commit)
        return row.path.startswith(f"models/{name}/") and (same_commit or row.version == offer.version)

    return {path: row for path, row in read_lock(settings.lock).items() if fits(row)}


def find_offer(name: str, hub: str, revision: str, settings: Settings) -> Offer:
    """Ask the mirror, then the hub, then (offline) what is in place and locked."""
    problems = []
    commit = _locked_commit(name, revision, settings)
    if settings.mirror and (settings.mirror.is_local or not settings.offline):
        try:
            items = _on_mirror(name, settings)
            # A mirror cannot prove which commit it holds, but if a commit is asked for, this is what it says it is.
            return Offer(revision if is_commit(revision) else "", commit, items)
        except SourceError as error:
            problems.append(f"mirror {settings.mirror.base}: {error}")
    if not mirror_is_law(settings):
        if hub.startswith(BY_HAND):
            return _brought(name, hub, revision, settings)
        if settings.offline:
            if offer := _in_place(name, revision, commit, settings):
                return offer
        else:
            try:
                found, files = model_files(hub, commit or revision, settings.patience)
                keep = wanted_names([file.name for file in files])
                items = [file for file in files if file.name in keep]
                return Offer(_version(revision, found), found, items, on_hub=True)
            except SourceError as error:
                problems.append(str(error))
    told = "".join(f"\n  {problem}" for problem in problems)
    where = settings.downloads / "models" / name
    if settings.offline:
        raise UserError(
            f"model {name} is missing or unknown to {settings.lock}, and the network is switched off: get it from "
            f"https://huggingface.co/{hub}/tree/{revision} and put it into {where}/{told}"
        )
    raise UserError(f"cannot get model {name} (its place: {where}/):{told}")


def _on_mirror(name: str, settings: Settings) -> list[RemoteFile]:
    prefix = f"models/{name}/"
    sums = settings.mirror.sums(settings.patience)
    names = wanted_names([path.removeprefix(prefix) for path in sums if path.startswith(prefix)])
    if not names:
        raise SourceError(f"its {SUMS} lists nothing under {prefix}")
    return [
        RemoteFile(file, settings.mirror.address(prefix + file), Expected(checksums=(f"sha256:{sums[prefix + file]}",)))
        for file in names
    ]


def _brought(name: str, hub: str, revision: str, settings: Settings) -> Offer:
    """A model that no program may or can fetch: take what a person has put in its place."""
    folder = settings.downloads / "models" / name
    names = wanted_names([file.name for file in folder.iterdir()]) if folder.is_dir() else []
    offer = Offer(revision, None, [RemoteFile(file, "", Expected()) for file in names], can_fetch=False)
    locked = {Path(path).name for path in locked_files(name, offer, settings)}
    absent = sorted(locked - set(names))
    if absent or "config.json" not in names or not any(file.endswith(".safetensors") for file in names):
        needed = ", ".join(absent) or "config.json, tokeniser files and *.safetensors"
        raise UserError(
            f"model {name} must be brought by a person: see {hub.removeprefix(BY_HAND)} (revision {revision}), "
            f"then put {needed} into {folder}/"
        )
    return offer


def _in_place(name: str, revision: str, commit: str | None, settings: Settings) -> Offer | None:
    """Offline, the files in place will do if something says what they must be: the lock, or an earlier mark."""
    folder = settings.downloads / "models" / name
    prefix = f"models/{name}/"
    items = []
    if commit:
        for path, row in read_lock(settings.lock).items():
            if path.startswith(prefix) and row.version == _version(revision, commit):
                items.append(RemoteFile(path.removeprefix(prefix), row.url, row.expected))
    if not items and (folder / MODEL_MARK).exists():
        try:
            mark = json.loads((folder / MODEL_MARK).read_text(encoding="utf-8"))
            if mark["revision"] == revision:
                commit = mark["commit"]
                for file in mark["files"]:
                    checksum = parse_checksum(f"sha256:{file['sha256']}")
                    items.append(RemoteFile(file["file"], "", Expected(file["bytes"], (checksum,))))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{folder / MODEL_MARK}: not a list of files ({error}); delete it") from error
    if not items or not all((folder / item.name).exists() for item in items):
        return None
    return Offer("", commit, items, can_fetch=False)
