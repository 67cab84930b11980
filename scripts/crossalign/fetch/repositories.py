"""Get chosen files of one repository of the hub at a revision into a folder, checked and locked.

A source (the mirror, the hub, or a person) makes an offer: which files it has, and at which commit.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure
from crossalign.fetch.hub import is_commit, repository_files
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
    files: dict[str, Expected]
    source: Literal["mirror", "hub", "packages", ""] = ""  # empty where the files that are in place are all there is


@dataclass(frozen=True)
class Repository:
    """A `model` or `dataset` repository at a revision; `name` is its folder below `models/` or `datasets/`."""

    kind: str
    name: str
    hub: str
    revision: str
    wanted: Callable[[list[str]], list[str]]  # chooses among the names of its files
    brought: Callable[["Repository", Settings], Offer] | None = None  # finds what a person must put in place
    packages: tuple[str, ...] = ()  # addresses of files in wheels that it can be made from

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
            # A mirror cannot prove which commit it holds, but if a commit is asked for, this is what it says it is.
            version = repository.revision if is_commit(repository.revision) else ""
            return Offer(version, commit, _on_mirror(repository, settings), "mirror")
        except SourceError as error:
            problems.append(f"mirror {settings.mirror.base}: {error}")
    if repository.hub and not settings.only_mirror:
        if repository.brought:
            return repository.brought(repository, settings)
        if settings.offline:
            if offer := _in_place(repository, commit, settings):
                return offer
        else:
            try:
                revision = commit or repository.revision
                current, files = repository_files(repository.kind, repository.hub, revision, settings.policy)
                chosen = {name: files[name] for name in repository.wanted(list(files))}
                return Offer(repository.version(current), current, chosen, "hub")
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


def _on_mirror(repository: Repository, settings: Settings) -> dict[str, Expected]:
    prefix = f"{repository.path}/"
    sums = settings.mirror.sums(settings.policy)
    names = repository.wanted([path.removeprefix(prefix) for path in sums if path.startswith(prefix)])
    if not names:
        raise SourceError(f"its {SUMS} lists nothing under {prefix}")
    return {name: Expected(checksums=(f"sha256:{sums[prefix + name]}",)) for name in names}


def _in_place(repository: Repository, commit: str | None, settings: Settings) -> Offer | None:
    """Offline, the files in place will do if the lock says what they must be."""
    rows = repository.locked_rows(settings).items()
    files = {name: row.expected for name, row in rows if commit and row.version == repository.version(commit)}
    there = all((settings.downloads / repository.path / name).exists() for name in files)
    return Offer("", commit, files) if files and there else None


def obtain_files(repository: Repository, offer: Offer, settings: Settings) -> list[Locked]:
    """Make sure that the offered files are in the repository's folder; return their rows for the lock file."""
    locked = {} if settings.only_mirror else repository.locked_files(offer, settings)
    rows = []
    for name, expected in offer.files.items():
        path = f"{repository.path}/{name}"
        row = locked.get(name)
        on_hub = f"hub://{repository.kind}s/{repository.hub}/{name}"
        match offer.source:
            case "hub":
                address = f"{on_hub}@{offer.commit}"
            case "mirror":
                address = settings.mirror.address(path)
            case _:
                address = ""
        measured = _get(address, path, expected, row.expected if row else Expected(), settings)
        origin = repository.hub if repository.brought else on_hub
        rows.append(Locked(path, offer.version, measured.bytes, measured.sha256, origin))
    return rows


def mark_complete(repository: Repository, offer: Offer, rows: list[Locked], settings: Settings) -> Path:
    """Lock the files and write `complete.json`, which lists them; it comes last."""
    if offer.version and not settings.only_mirror:
        record(settings.lock, rows)
    files = [
        {"file": file, "bytes": row.bytes, "sha256": row.sha256} for file, row in zip(offer.files, rows, strict=True)
    ]
    content = {"name": repository.name, "hub": repository.hub, "revision": repository.revision, "commit": offer.commit}
    if offer.source == "packages":
        content = {"name": repository.name, "packages": list(repository.packages)}
    mark = settings.downloads / repository.path / COMPLETE
    write_json(mark, content | {"files": files})
    print(f"{repository.path}: {len(files)} files, {size(sum(row.bytes for row in rows))}", file=sys.stderr)
    return mark


def _get(address: str, path: str, expected: Expected, lock: Expected, settings: Settings) -> Measured:
    target, expected = settings.downloads / path, expected.also(lock)
    advice = f". {how_to_accept(path, settings.lock)}" if lock.checksums else ""

    def present() -> Measured | None:
        if not target.exists():
            return None
        measured = measure(target, expected.needs_git)
        try:
            check(measured, expected)
            return measured
        except WrongContent as error:
            if not address:
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
            measured = fill(part, address, expected, path, settings)
        except (SourceError, WrongContent) as error:
            raise UserError(f"cannot get {path} (its place: {target}): {address}: {error}{advice}") from error
        part.finish()
        return measured
