"""Get one file of the register: from the mirror, its address, or its second address, verified or locked."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure
from crossalign.fetch.hub import authorisation, repository_file
from crossalign.fetch.listing import is_non_commercial
from crossalign.fetch.lock import Locked, how_to_accept, read_lock, record
from crossalign.fetch.mirror import SUMS, Mirror, local_path
from crossalign.fetch.part import Part, claim
from crossalign.fetch.progress import size
from crossalign.fetch.register import Dataset, split_hub
from crossalign.fetch.transfer import download
from crossalign.fetch.web import Patience, SourceError
from crossalign.runtime.errors import UserError


@dataclass(frozen=True)
class Settings:
    """Where downloads go and how they are made."""

    downloads: Path
    lock: Path
    mirror: Mirror | None = None
    offline: bool = False
    patience: Patience = field(default_factory=Patience)


def obtain(row: Dataset, settings: Settings) -> Path:
    """Make sure that the file of a row lies at its place and is the right one; return the place."""
    target = settings.downloads / row.path
    expected, lock_it = _expectations(row, settings)
    if _in_place(row, target, expected, lock_it, settings):
        return target
    _announce(row)
    with claim(target) as part:
        # While this process waited for its turn, another may have finished the file.
        if _in_place(row, target, expected, lock_it, settings):
            part.restart()
            return target
        measured = _from_any_source(row, part, expected, settings)
        if lock_it:
            record(settings.lock, [_locked(row, measured)])
        part.finish()
    print(f"{row.path}: {size(measured.bytes)}, sha256 {measured.sha256}", file=sys.stderr)
    return target


def fill(part: Part, url: str, expected: Expected, label: str, patience: Patience, token: bool = False) -> Measured:
    """Fill a part from one `file:` or web address. Raises SourceError or WrongContent."""
    source = local_path(url)
    if source is None:
        return download(url, part, expected, label, patience, authorisation() if token else None)
    try:
        with source.open("rb") as stream:
            part.restart()
            while block := stream.read(1 << 20):
                part.append(block)
    except OSError as error:
        raise SourceError(f"{source}: {error.strerror}") from error
    part.flush()
    measured = measure(part.path, expected.needs_git)
    try:
        check(measured, expected)
    except WrongContent:
        part.restart()
        raise
    return measured


def _expectations(row: Dataset, settings: Settings) -> tuple[Expected, bool]:
    """What the file must be, and whether it is to be locked because nobody publishes a checksum."""
    mirror = settings.mirror
    if mirror and mirror.own_checksums:
        if settings.offline and not mirror.is_local:
            raise UserError(_offline_text(row, settings))
        try:
            sums = mirror.sums(settings.patience)
        except SourceError as error:
            raise UserError(f"mirror {mirror.base}: cannot read its {SUMS}: {error}") from error
        if row.path not in sums:
            raise UserError(f"mirror {mirror.base}: its {SUMS} does not list {row.path}")
        return Expected(checksums=(f"sha256:{sums[row.path]}",)), False
    published = Expected(row.bytes, (row.checksum,) if row.checksum else ())
    if row.checksum:
        return published, False
    locked = read_lock(settings.lock).get(row.path)
    if locked and locked.version == row.version:
        if row.bytes not in (None, locked.bytes):
            raise UserError(
                f"{row.path}: the register says {row.bytes} bytes, but it was locked with {locked.bytes}. "
                f"{how_to_accept(row.path, settings.lock)}"
            )
        return locked.expected, True
    return published, True


def _in_place(row: Dataset, target: Path, expected: Expected, lock_it: bool, settings: Settings) -> bool:
    """Whether the right file is there already. A wrong one is an error, not overwritten: it may be somebody's work."""
    if not target.exists():
        return False
    if lock_it and not expected.checksums and row.path in read_lock(settings.lock):
        print(f"{row.path}: the file in place is of another version; fetching {row.version}", file=sys.stderr)
        return False
    measured = measure(target, expected.needs_git)
    try:
        check(measured, expected)
    except WrongContent as error:
        advice = f" {how_to_accept(row.path, settings.lock)}" if lock_it else ""
        raise UserError(f"{target}: {error}. Delete this file to have it fetched again.{advice}") from error
    if lock_it:
        record(settings.lock, [_locked(row, measured)])
    return True


def _from_any_source(row: Dataset, part: Part, expected: Expected, settings: Settings) -> Measured:
    only_mirror = settings.mirror is not None and settings.mirror.own_checksums
    addresses = [settings.mirror.address(row.path)] if settings.mirror else []
    if not only_mirror:
        by_hand = row.by_hand(settings.downloads)
        own = row.url if by_hand is None else f"file:{by_hand}" if by_hand.exists() else None
        addresses += [address for address in (own, row.mirror) if address]
    if settings.offline:
        addresses = [address for address in addresses if local_path(address)]
    problems, changed = [], False
    for address in addresses:
        try:
            return _from_source(row, part, address, expected, settings)
        except (SourceError, WrongContent) as error:
            problems.append(f"{address}: {error}")
            changed = changed or isinstance(error, WrongContent)
            if len(addresses) > 1:
                print(f"{row.path}: {problems[-1]}", file=sys.stderr, flush=True)
    locked = expected.checksums and not row.checksum and not only_mirror
    if changed and locked:
        problems.append(f"It was locked at first sight. {how_to_accept(row.path, settings.lock)}")
    told = "".join(f"\n  {problem}" for problem in problems)
    if settings.offline:
        raise UserError(_offline_text(row, settings) + told)
    if row.url.startswith("manual:") and not only_mirror:
        raise UserError(_manual_text(row, settings) + told)
    raise UserError(f"cannot get {row.path} (its place: {settings.downloads / row.path}):{told}")


def _from_source(row: Dataset, part: Part, address: str, expected: Expected, settings: Settings) -> Measured:
    if not address.startswith("hub:"):
        return fill(part, address, expected, row.path, settings.patience)
    file = repository_file(*split_hub(address), row.version, settings.patience)
    known = expected.also(file.expected)
    if expected.bytes is not None and file.expected.bytes not in (None, expected.bytes):
        raise WrongContent(f"wrong length: expected {expected.bytes} bytes, the hub has {file.expected.bytes}")
    return fill(part, file.url, known, row.path, settings.patience, token=True)


def _announce(row: Dataset) -> None:
    if is_non_commercial(row.licence):
        print(f"{row.path}: licence {row.licence}: for NON-COMMERCIAL use only", file=sys.stderr, flush=True)


def _locked(row: Dataset, measured: Measured) -> Locked:
    return Locked(row.path, row.version, measured.bytes, measured.sha256, row.url)


def _manual_text(row: Dataset, settings: Settings) -> str:
    page = row.url.removeprefix("manual:")
    return (
        f"{row.path} must be got by a person, because of its terms ({row.licence}): see {page}, "
        f"then put the file at {row.by_hand(settings.downloads)}"
    )


def _offline_text(row: Dataset, settings: Settings) -> str:
    place = row.by_hand(settings.downloads) or settings.downloads / row.path
    return (
        f"{row.path} is missing and the network is switched off: get it from "
        f"{row.url.removeprefix('manual:')} and put it at {place}"
    )
