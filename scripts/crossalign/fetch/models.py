"""Get one model of the register into a folder: weights as safetensors, configuration, tokeniser; nothing that runs.

A source (the mirror, the hub, or a person) makes an offer: which files it has of a model, and at which commit.
"""

import json
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure, parse_checksum
from crossalign.fetch.hub import RemoteFile, is_commit, model_files
from crossalign.fetch.listing import MODEL_MARK, size
from crossalign.fetch.lock import Locked, how_to_accept, read_lock, record
from crossalign.fetch.part import claim
from crossalign.fetch.retry import SourceError
from crossalign.fetch.sources import SUMS, Settings, fill
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json

CONFIGURATION = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("sentencepiece*.model", "special_tokens_map.json", "added_tokens.json"),
)
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARDS = "model-*-of-*.safetensors"
BY_HAND = "manual:"


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
    if WEIGHTS in plain:
        weights = [WEIGHTS]
    elif INDEX in plain:
        weights = [INDEX, *(name for name in plain if fnmatchcase(name, SHARDS))]
    else:
        weights = [name for name in plain if name.endswith(".safetensors")]
    return sorted([*weights, *(name for name in plain if _is_any(name, CONFIGURATION))])


def _is_any(name: str, forms: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, form) for form in forms)


def _version(revision: str, commit: str) -> str:
    """How the lock file names a version: a branch together with the commit that it was."""
    return commit if revision == commit else f"{revision}@{commit}"


def _locked_rows(name: str, settings: Settings) -> dict[str, Locked]:
    """What the lock file has of a model: file -> row."""
    prefix = f"models/{name}/"
    rows = read_lock(settings.lock).items()
    return {path.removeprefix(prefix): row for path, row in rows if path.startswith(prefix)}


def _locked_commit(name: str, revision: str, settings: Settings) -> str | None:
    """The commit that a revision was when this model was first seen."""
    if is_commit(revision):
        return revision
    versions = [row.version for row in _locked_rows(name, settings).values()]
    return next((v.removeprefix(f"{revision}@") for v in versions if v.startswith(f"{revision}@")), None)


def _locked_files(name: str, offer: Offer, settings: Settings) -> dict[str, Locked]:
    """The rows of the lock file for the very version that is offered."""

    def fits(row: Locked) -> bool:
        return row.version == offer.version or (offer.commit is not None and row.version.endswith(offer.commit))

    return {file: row for file, row in _locked_rows(name, settings).items() if fits(row)}


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
    if not settings.only_mirror:
        if hub.startswith(BY_HAND):
            return _brought(name, hub, revision, settings)
        if settings.offline:
            if offer := _in_place(name, revision, commit, settings):
                return offer
        else:
            try:
                current, files = model_files(hub, commit or revision, settings.policy)
                keep = wanted_names([file.name for file in files])
                items = [file for file in files if file.name in keep]
                return Offer(_version(revision, current), current, items, on_hub=True)
            except SourceError as error:
                problems.append(str(error))
    place = settings.downloads / "models" / name
    text = f"cannot get model {name} (its place: {place}/):"
    if settings.offline:
        text = (
            f"model {name} is missing or unknown to {settings.lock}, and the network is switched off: get it from "
            f"https://huggingface.co/{hub}/tree/{revision} and put it into {place}/"
        )
    raise UserError("\n  ".join([text, *problems]))


def _on_mirror(name: str, settings: Settings) -> list[RemoteFile]:
    prefix = f"models/{name}/"
    sums = settings.mirror.sums(settings.policy)
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
    absent = sorted(set(_locked_files(name, offer, settings)) - set(names))
    if absent or "config.json" not in names or not _has_weights(names):
        needed = ", ".join(absent) or "config.json, tokeniser files and *.safetensors"
        raise UserError(
            f"model {name} must be fetched by a person: see {hub.removeprefix(BY_HAND)} (revision {revision}), "
            f"then put {needed} into {folder}/"
        )
    return offer


def _has_weights(names: list[str]) -> bool:
    return any(name.endswith(".safetensors") for name in names)


def _in_place(name: str, revision: str, commit: str | None, settings: Settings) -> Offer | None:
    """Offline, the files in place will do if something says what they must be: the lock, or an earlier mark."""
    folder = settings.downloads / "models" / name
    mark = folder / MODEL_MARK
    items = [
        RemoteFile(file, row.url, row.expected)
        for file, row in _locked_rows(name, settings).items()
        if commit and row.version == _version(revision, commit)
    ]
    if not items and mark.exists():
        try:
            content = json.loads(mark.read_text(encoding="utf-8"))
            if content["revision"] == revision:
                commit = content["commit"]
                for file in content["files"]:
                    checksum = parse_checksum(f"sha256:{file['sha256']}")
                    items.append(RemoteFile(file["file"], "", Expected(file["bytes"], (checksum,))))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{mark}: not a list of files ({error}); delete it") from error
    if not items or not all((folder / item.name).exists() for item in items):
        return None
    return Offer("", commit, items, can_fetch=False)


def obtain_model(name: str, hub: str, revision: str, settings: Settings) -> Path:
    """Make sure that a model is complete in its folder; return the path of its `complete.json`, written last."""
    folder = settings.downloads / "models" / name
    offer = find_offer(name, hub, revision, settings)
    locked = {} if settings.only_mirror else _locked_files(name, offer, settings)
    names = [item.name for item in offer.items]
    _check_names(name, hub, revision, names)
    rows = []
    for item in offer.items:
        path = f"models/{name}/{item.name}"
        row = locked.get(item.name)
        measured = _get(item, path, folder / item.name, row.expected if row else Expected(), offer, settings)
        origin = hub if hub.startswith(BY_HAND) else f"hub://models/{hub}/{item.name}"
        rows.append(Locked(path, offer.version, measured.bytes, measured.sha256, origin))
    _check_index(folder, names)
    _remove_leftovers(folder, names)
    if offer.version and not settings.only_mirror:
        record(settings.lock, rows)
    files = [{"file": file, "bytes": row.bytes, "sha256": row.sha256} for file, row in zip(names, rows, strict=True)]
    content = {"name": name, "hub": hub, "revision": revision, "commit": offer.commit, "files": files}
    write_json(folder / MODEL_MARK, content)
    print(f"models/{name}: {len(files)} files, {size(sum(row.bytes for row in rows))}", file=sys.stderr)
    return folder / MODEL_MARK


def look_at(name: str, hub: str, revision: str, settings: Settings) -> tuple[str, list[str]]:
    """Fetch a model's config.json alone; return the commit that its revision is, and the names of its files."""
    offer = find_offer(name, hub, revision, settings)
    names = [item.name for item in offer.items]
    _check_names(name, hub, revision, names)
    target = settings.downloads / "models" / name / "config.json"
    (item,) = (item for item in offer.items if item.name == target.name)
    _get(item, f"models/{name}/{item.name}", target, Expected(), offer, settings)
    return offer.commit or revision, names


def _check_names(name: str, hub: str, revision: str, names: list[str]) -> None:
    if not _has_weights(names):
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


def _remove_leftovers(folder: Path, names: list[str]) -> None:
    """Weights or tokenisers of another revision would be loaded in place of the right ones."""
    for file in sorted(folder.iterdir()):
        if file.name not in names and _is_any(file.name, (*CONFIGURATION, INDEX, "*.safetensors")):
            print(f"{file}: not part of this revision; removed", file=sys.stderr)
            file.unlink()


def _get(item: RemoteFile, path: str, target: Path, lock: Expected, offer: Offer, settings: Settings) -> Measured:
    expected = item.expected.also(lock)
    advice = f". {how_to_accept(path, settings.lock)}" if lock.checksums else ""

    def present() -> Measured | None:
        if not target.exists():
            return None
        measured = measure(target, expected.needs_git)
        try:
            check(measured, expected)
            return measured
        except WrongContent as error:
            if not offer.can_fetch:
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
            measured = fill(part, item.url, expected, path, settings.policy, token=offer.on_hub)
        except (SourceError, WrongContent) as error:
            raise UserError(f"cannot get {path} (its place: {target}): {item.url}: {error}{advice}") from error
        part.finish()
        return measured
