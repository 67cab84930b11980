"""Get chosen files of one repository of the hub at a revision into a folder, checked and locked.

A source (the mirror, the hub, or a person) makes an offer: which files it has, and at which commit.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure, parse_checksum
from crossalign.fetch.hub import RemoteFile, is_commit, repository_files
from crossalign.fetch.listing import COMPLETE, size
from crossalign.fetch.lock import Locked, how_to_accept, read_lock, record
from crossalign.fetch.part import claim
from crossalign.fetch.retry import SourceError
from crossalign.fetch.sources import SUMS, Settings, fill
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json


@dataclass(frozen=True)
class Offer:
    """What a source has of a repository. `version` is empty where the source cannot prove it."""

    version: str
    commit: str | None
    items: list[RemoteFile]
    on_hub: bool = False
    can_fetch: bool = True


@dataclass(frozen=True)
class Repository:
    """A `model` or `dataset` repository at a revision; `name` is its folder below `models/` or `datasets/`."""

    kind: str
    name: str
    hub: str
    revision: str
    wanted: Callable[[list[str]], list[str]]  # chooses among the names of its files
    brought: Callable[["Repository", Settings], Offer] | None = None  # finds what a person must put in place

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def path(self) -> str:
        """Its folder below the downloads and below any mirror."""
        return f"{self.kind}s/{self.name}"

    @property
    def page(self) -> str:
        """Where a person sees its files."""
        folder = "datasets/" if self.kind == "dataset" else ""
        return f"https://huggingface.co/{folder}{self.hub}/tree/{self.revision}"

    def locked_rows(self, settings: Settings) -> dict[str, Locked]:
        """What the lock file has of it: file -> row."""
        rows = read_lock(settings.lock).items()
        return {path.removeprefix(f"{self.path}/"): row for path, row in rows if path.startswith(f"{self.path}/")}

    def locked_files(self, offer: Offer, settings: Settings) -> dict[str, Locked]:
        """The rows of the lock file for the very version that is offered."""

        def fits(row: Locked) -> bool:
            return row.version == offer.version or (offer.commit is not None and row.version.endswith(offer.commit))

        return {file: row for file, row in self.locked_rows(settings).items() if fits(row)}

    def locked_commit(self, settings: Settings) -> str | None:
        """The commit that its revision was when it was first seen."""
        if is_commit(self.revision):
            return self.revision
        versions = [row.version for row in self.locked_rows(settings).values()]
        return next((v.removeprefix(f"{self.revision}@") for v in versions if v.startswith(f"{self.revision}@")), None)

    def version(self, commit: str) -> str:
        """How the lock file names a version: a branch together with the commit that it was."""
        return commit if self.revision == commit else f"{self.revision}@{commit}"


def find_offer(repository: Repository, settings: Settings) -> Offer:
    """Ask the mirror, then the hub, then (offline) what is in place and locked."""
    problems = []
    commit = repository.locked_commit(settings)
    if settings.mirror and (settings.mirror.is_local or not settings.offline):
        try:
            items = _on_mirror(repository, settings)
            # A mirror cannot prove which commit it holds, but if a commit is asked for, this is what it says it is.
            return Offer(repository.revision if is_commit(repository.revision) else "", commit, items)
        except SourceError as error:
            problems.append(f"mirror {settings.mirror.base}: {error}")
    if not settings.only_mirror:
        if repository.brought:
            return repository.brought(repository, settings)
        if settings.offline:
            if offer := _in_place(repository, commit, settings):
                return offer
        else:
            try:
                revision = commit or repository.revision
                current, files = repository_files(repository.kind, repository.hub, revision, settings.policy)
                keep = repository.wanted([file.name for file in files])
                items = [file for file in files if file.name in keep]
                return Offer(repository.version(current), current, items, on_hub=True)
            except SourceError as error:
                problems.append(str(error))
    place = settings.downloads / repository.path
    text = f"cannot get {repository} (its place: {place}/):"
    if settings.offline:
        text = (
            f"{repository} is missing or unknown to {settings.lock}, and the network is switched off: get it from "
            f"{repository.page} and put it into {place}/"
        )
    raise UserError((" " if len(problems) == 1 else "\n  ").join([text, *problems]))


def _on_mirror(repository: Repository, settings: Settings) -> list[RemoteFile]:
    prefix = f"{repository.path}/"
    sums = settings.mirror.sums(settings.policy)
    names = repository.wanted([path.removeprefix(prefix) for path in sums if path.startswith(prefix)])
    if not names:
        raise SourceError(f"its {SUMS} lists nothing under {prefix}")
    return [
        RemoteFile(file, settings.mirror.address(prefix + file), Expected(checksums=(f"sha256:{sums[prefix + file]}",)))
        for file in names
    ]


def _in_place(repository: Repository, commit: str | None, settings: Settings) -> Offer | None:
    """Offline, the files in place will do if something says what they must be: the lock, or an earlier mark."""
    folder = settings.downloads / repository.path
    mark = folder / COMPLETE
    items = [
        RemoteFile(file, row.url, row.expected)
        for file, row in repository.locked_rows(settings).items()
        if commit and row.version == repository.version(commit)
    ]
    if not items and mark.exists():
        try:
            content = json.loads(mark.read_text(encoding="utf-8"))
            if content["revision"] == repository.revision:
                commit = content["commit"]
                for file in content["files"]:
                    checksum = parse_checksum(f"sha256:{file['sha256']}")
                    items.append(RemoteFile(file["file"], "", Expected(file["bytes"], (checksum,))))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{mark}: not a list of files ({error}); delete it") from error
    if not items or not all((folder / item.name).exists() for item in items):
        return None
    return Offer("", commit, items, can_fetch=False)


def obtain_files(repository: Repository, offer: Offer, settings: Settings) -> list[Locked]:
    """Make sure that the offered files are in the repository's folder; return their rows for the lock file."""
    folder = settings.downloads / repository.path
    locked = {} if settings.only_mirror else repository.locked_files(offer, settings)
    rows = []
    for item in offer.items:
        path = f"{repository.path}/{item.name}"
        row = locked.get(item.name)
        measured = _get(item, path, folder / item.name, row.expected if row else Expected(), offer, settings)
        origin = repository.hub if repository.brought else f"hub://{repository.kind}s/{repository.hub}/{item.name}"
        rows.append(Locked(path, offer.version, measured.bytes, measured.sha256, origin))
    return rows


def mark_complete(repository: Repository, offer: Offer, rows: list[Locked], settings: Settings) -> Path:
    """Lock the files and write `complete.json`, which lists them; it comes last."""
    if offer.version and not settings.only_mirror:
        record(settings.lock, rows)
    names = [item.name for item in offer.items]
    files = [{"file": file, "bytes": row.bytes, "sha256": row.sha256} for file, row in zip(names, rows, strict=True)]
    content = {"name": repository.name, "hub": repository.hub, "revision": repository.revision, "commit": offer.commit}
    mark = settings.downloads / repository.path / COMPLETE
    write_json(mark, content | {"files": files})
    print(f"{repository.path}: {len(files)} files, {size(sum(row.bytes for row in rows))}", file=sys.stderr)
    return mark


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
            only = settings.only_mirror
            measured = fill(part, item.url, expected, path, settings.policy, token=offer.on_hub, link=only)
        except (SourceError, WrongContent) as error:
            raise UserError(f"cannot get {path} (its place: {target}): {item.url}: {error}{advice}") from error
        part.finish()
        return measured
