"""A mirror of everything: `<base>/<path>` for every path of the registers, on the web or on a disk."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from crossalign.fetch.checksums import parse_sums
from crossalign.fetch.web import Passing, Patience, SourceError, open_url, retry
from crossalign.runtime.errors import UserError

SUMS = "SHA256SUMS"
LARGEST_SUMS = 64 << 20


def local_path(url: str) -> Path | None:
    """The file that a `file:` address names, absolute or relative to the working folder; None for others."""
    if not url.startswith("file:"):
        return None
    rest = url.removeprefix("file:")
    if rest.startswith("//"):
        rest = rest.removeprefix("//")
        if rest.startswith("localhost/"):
            rest = rest.removeprefix("localhost")
    path = Path(rest)
    return path if path.exists() else Path(unquote(rest))


@dataclass(frozen=True)
class Mirror:
    """A base address; `own_checksums` makes its SHA256SUMS the law, and it the only source."""

    base: str
    own_checksums: bool = False

    def __post_init__(self) -> None:
        scheme = urlsplit(self.base).scheme
        if scheme not in ("https", "http", "file"):
            raise UserError(f"mirror {self.base!r} is not an address: write https://…, file:///… or file:<folder>")

    def address(self, path: str) -> str:
        """Where the mirror has the file `path`."""
        # A folder's name is taken as it stands, the web wants its quotes.
        return f"{self.base.rstrip('/')}/{path if self.base.startswith('file:') else quote(path)}"

    @property
    def is_local(self) -> bool:
        """Whether the mirror can be read without a network."""
        return self.base.startswith("file:")

    def sums(self, patience: Patience) -> dict[str, str]:
        """The mirror's own list: path -> sha256. Raises SourceError when there is none."""
        address = self.address(SUMS)
        if file := local_path(address):
            try:
                return parse_sums(file.read_text(encoding="utf-8"), str(file))
            except OSError as error:
                raise SourceError(f"{file}: {error.strerror}") from error
        return parse_sums(fetch_text(address, patience), address)


def fetch_text(url: str, patience: Patience) -> str:
    """Fetch a small text over HTTP."""
    texts: list[bytes] = []

    def action() -> None:
        with open_url(url, {"User-Agent": "crossalign", "Accept-Encoding": "identity"}, patience.timeout) as response:
            length = response.headers.get("Content-Length")
            try:
                data = response.read(LARGEST_SUMS + 1)
            except OSError as error:
                raise Passing(f"the transfer was cut: {error}") from error
        if len(data) > LARGEST_SUMS:
            raise SourceError(f"{url}: larger than {LARGEST_SUMS} bytes")
        if length and length.isdigit() and len(data) < int(length):
            raise Passing(f"the transfer was cut after {len(data)} of {length} bytes")
        texts.append(data)

    retry(action, url, patience)
    try:
        return texts[-1].decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{url}: not UTF-8 text") from error
