"""Read the registers of data sets and models; errors name file and line.

Imported while the workflow is planned, so it stays light: the standard library only.
"""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import urlsplit

from crossalign.fetch.checksums import parse_checksum
from crossalign.fetch.texts import SCHEME, TextSource, parse_texts
from crossalign.fetch.wheels import SCHEME as WHEEL
from crossalign.fetch.wheels import WheelFile, parse_wheel
from crossalign.runtime.errors import UserError

OBJECTIVES = ("mlm", "clm")
Row = TypeVar("Row")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Dataset:
    """One file of datasets.tsv; `bytes`, `checksum` and `mirror` are None where the register is silent."""

    path: str
    version: str
    url: str
    mirror: str | None
    bytes: int | None
    checksum: str | None
    licence: str
    use: str

    def by_hand(self, downloads: str | Path) -> Path | None:
        """Where a person puts a file that must not be fetched: not its final place, which the workflow may remake."""
        return Path(downloads) / "by-hand" / self.path if self.url.startswith("manual:") else None

    def texts(self) -> list[TextSource]:
        """What running text is read from; empty for a file that is fetched as it is."""
        return parse_texts(self.url) if self.url.startswith(SCHEME) else []


@dataclass(frozen=True)
class Model:
    """One model of models.tsv; the counts are None where the register is silent."""

    name: str
    hub: str
    revision: str
    bytes: int | None
    licence: str
    objective: str
    parameters: int | None
    layers: int | None
    neurons: int | None
    languages: str
    use: str
    trained_for: str = ""
    packages: tuple[str, ...] = ()  # addresses of files in wheels that the model can be made from

    @property
    def path(self) -> str:
        """The model's folder under the downloads folder and under any mirror."""
        return f"models/{self.name}"


DATASET_COLUMNS = tuple(field.name for field in fields(Dataset))
MODEL_COLUMNS = tuple(field.name for field in fields(Model) if field.name != "packages")
PACKAGE_COLUMNS = ("model", *(field.name for field in fields(WheelFile)))


def check_path(path: str) -> str:
    """Return a register path that stays inside its folder, or raise ValueError."""
    parts = PurePosixPath(path).parts
    plain = re.fullmatch(r"[^\\\x00-\x1f\x7f]+", path)
    if not plain or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path:
        raise ValueError(f"path {path!r} must be relative, without `..`, backslashes or needless slashes")
    return path


def check_url(url: str, checksum: str | None) -> str:
    """Return an address that this project can fetch, or raise ValueError."""
    scheme, colon, rest = url.partition(":")
    if not colon or not rest:
        raise ValueError(
            f"url {url!r} is not an address: write https://…, hub://datasets/…, text:…, wheel:… or manual:<page>"
        )
    if re.search(r"\s", url):
        raise ValueError(f"url {url!r} must not hold spaces")
    if scheme in ("https", "http"):
        host = urlsplit(url).hostname
        if not host:
            raise ValueError(f"url {url!r} names no host")
        # Plain http can be altered on its way; a checksum makes that harmless.
        if scheme == "http" and checksum is None and host not in LOOPBACK:
            raise ValueError(f"url {url!r} is plain http, which needs a checksum in its row")
    elif scheme == "hub":
        split_hub(url)
    elif url.startswith(WHEEL):
        parse_wheel(url)
    elif url.startswith(SCHEME):
        for source in parse_texts(url):
            if not source.url.startswith(("https:", "http:")):
                raise ValueError(f"url {url!r}: text comes from https://…, not from {source.url!r}")
            check_url(source.url, None)
            check_path(source.path)
    elif scheme != "manual":
        raise ValueError(f"url {url!r} has the unknown scheme {scheme!r}: known are https, hub, text, wheel and manual")
    return url


def split_hub(url: str) -> tuple[str, str, str]:
    """Split `hub://datasets/<owner>/<repo>/<file>` into kind (dataset, model), `<owner>/<repo>` and file."""
    match = re.fullmatch(r"hub://(dataset|model)s/([\w.-]+/[\w.-]+)/(.+)", url)
    if not match or ".." in match[3].split("/"):
        raise ValueError(f"url {url!r} should read hub://datasets/<owner>/<repository>/<file>")
    return match[1], match[2], match[3]


def read_datasets(path: str | Path) -> dict[str, Dataset]:
    """Read datasets.tsv: path -> row, in the order of the file."""

    def build(row: dict[str, str]) -> Dataset:
        if row["path"].startswith("models/"):
            raise ValueError(f"path {row['path']!r}: the folder models/ belongs to models.tsv")
        if row["mirror"].startswith("manual:"):
            raise ValueError(f"mirror {row['mirror']!r} must be an address that can be fetched")
        return dataset(row)

    return _read(Path(path), DATASET_COLUMNS, build)


def dataset(row: dict[str, str]) -> Dataset:
    """A row of datasets.tsv, or the same fields of a command line; raises ValueError for what cannot be."""
    checksum = parse_checksum(row["checksum"]) if row["checksum"] else None
    mirror = check_url(row["mirror"], checksum) if row["mirror"] else None
    path, url = check_path(row["path"]), check_url(row["url"], checksum)
    version, licence = _filled(row, "version"), _filled(row, "licence")
    return Dataset(path, version, url, mirror, _count(row, "bytes"), checksum, licence, row["use"])


def read_models(path: str | Path) -> dict[str, Model]:
    """Read models.tsv: name -> row, in the order of the file."""

    def build(row: dict[str, str]) -> Model:
        check_model(row["name"], row["hub"])
        if row["objective"] not in OBJECTIVES:
            raise ValueError(f"objective {row['objective']!r} is not one of {', '.join(OBJECTIVES)}")
        counts = {column: _count(row, column) for column in ("bytes", "parameters", "layers", "neurons")}
        return Model(**row | counts | {column: _filled(row, column) for column in ("revision", "licence")})

    return _read(Path(path), MODEL_COLUMNS, build)


def read_packages(path: str | Path) -> dict[str, list[WheelFile]]:
    """Read packages.tsv: model -> the files in wheels that it can be made from, in the order of the file."""
    found: dict[str, list[WheelFile]] = {}
    for number, row in read_table(Path(path), PACKAGE_COLUMNS, "register"):
        try:
            values = {name: _filled(row, name) for name in ("wheel", "file")} | {"bytes": _count(row, "bytes")}
            file = WheelFile(**values, sha256=row["sha256"], file_sha256=row["file_sha256"])
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
        found.setdefault(row["model"], []).append(file)
    return found


def check_model(name: str, hub: str) -> None:
    """Raise ValueError for a model's name that is no folder's, or a place that is neither on the hub nor a page."""
    if not re.fullmatch(r"[\w.-]*\w[\w.-]*", name):
        raise ValueError(f"name {name!r} must be made of letters, digits, `.`, `_` and `-`")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+|manual:\S+", hub):
        raise ValueError(f"hub {hub!r} should read <owner>/<repository> or manual:<page>")


def _read(path: Path, columns: tuple[str, ...], build: Callable[[dict[str, str]], Row]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    lines: dict[str, int] = {}
    for number, row in read_table(path, columns, "register"):
        key = row[columns[0]]
        if key in rows:
            raise UserError(f"{path}, line {number}: {columns[0]} {key!r} is already in line {lines[key]}")
        try:
            rows[key] = build(row)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
        lines[key] = number
    return rows


def read_table(path: Path, columns: tuple[str, ...], what: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a tab-separated file with exactly these columns, each with its line number."""
    try:
        stream = path.open(encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"{path}: cannot read this {what}: {error.strerror}") from error
    with stream:
        reader = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        try:
            header = next(reader, [])
            if missing := [column for column in columns if column not in header]:
                raise UserError(f"{path}, line 1: missing column {', '.join(missing)}; needed: {', '.join(columns)}")
            if len(header) != len(columns):
                unknown = [column for column in header if column not in columns]
                raise UserError(f"{path}, line 1: unknown or repeated column {', '.join(unknown or header)}")
            for fields in filter(None, reader):
                if len(fields) != len(header):
                    counts = f"{len(fields)} fields, but the header has {len(header)}"
                    raise UserError(f"{path}, line {reader.line_num}: {counts}")
                yield reader.line_num, {name: field.strip() for name, field in zip(header, fields, strict=True)}
        except (csv.Error, UnicodeDecodeError) as error:
            raise UserError(f"{path}: not a tab-separated UTF-8 file: {error}") from error


def _filled(row: dict[str, str], column: str) -> str:
    if not row[column]:
        raise ValueError(f"{column} is empty")
    return row[column]


def _count(row: dict[str, str], column: str) -> int | None:
    text = row[column]
    if text and not re.fullmatch(r"[0-9]+", text):
        raise ValueError(f"{column} {text!r} is not a whole number (leave it empty when it is not known)")
    return int(text) if text else None
