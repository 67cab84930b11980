"""Fetch one address over HTTP into a part file: resumed, retried, bounded in time and length, verified.

The library `requests` talks to servers and proxies. It cannot resume a transfer, so the retries are ours: one count
of failures covers connections, statuses and cut bodies alike.
"""

import contextlib
import re
import shutil
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TextIO
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from crossalign.fetch.checksums import Expected, Measured, WrongContent
from crossalign.fetch.listing import size
from crossalign.fetch.part import Origin, Part
from crossalign.fetch.retry import RetryPolicy, SourceError, TransientError, retry
from crossalign.runtime.errors import UserError

BLOCK = 1 << 18
LARGEST_TEXT = 64 << 20
RETRIED = (408, 425, 429)
TERMINAL_SECONDS = 2.0
LOG_SECONDS = 10.0


@cache
def trust() -> ssl.SSLContext:
    """The certificates of this machine, read once."""
    return ssl.create_default_context()


class _SystemTrust(HTTPAdapter):
    """Trusts the system's certificates and SSL_CERT_FILE, not only the list that comes with the library."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=trust(), **kwargs)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=trust(), **kwargs)


class Session(requests.Session):
    """Follows redirections, but never to plain text and never with a token to another host."""

    def __init__(self) -> None:
        super().__init__()
        self.mount("https://", _SystemTrust())
        self.headers.update({"User-Agent": "crossalign", "Accept-Encoding": "identity"})
        self.auth = lambda request: request  # otherwise ~/.netrc would replace our token

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where the server sends us, if we may go there."""
        target = super().get_redirect_target(resp)
        if target is not None:
            old, new = urlsplit(resp.url), urlsplit(urljoin(resp.url, target))
            if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
                raise SourceError(f"refused the redirection from {resp.url} to {target}: not https")
        return target

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Drop the token on the way to another host; the library would also look for one in ~/.netrc."""
        if self.should_strip_auth(response.request.url, prepared_request.url):
            prepared_request.headers.pop("Authorization", None)


@contextlib.contextmanager
def open_url(url: str, headers: Mapping[str, str], timeout: float) -> Iterator[requests.Response]:
    """Open an http(s) address through the configured proxies. A status of 416 is the caller's to handle."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise SourceError(f"{url}: only http and https can be fetched")
    with Session() as session:
        try:
            response = session.get(url, headers=headers, timeout=timeout, stream=True)
        except requests.TooManyRedirects as error:
            raise SourceError(f"{error} This looks like an infinite loop.") from error
        except ValueError as error:
            raise SourceError(f"bad address: {error}") from error
        except (HTTPError, OSError) as error:
            cause = _bottom(error)
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise SourceError(f"the server's certificate is not trusted: {cause.verify_message}") from error
            raise TransientError(_reason(error)) from error
        with response:
            _check_status(response)
            yield response


def _check_status(response: requests.Response) -> None:
    if response.status_code < 400 or response.status_code == 416:
        return
    text = f"HTTP {response.status_code} {response.reason or ''}".rstrip()
    if response.status_code not in RETRIED and response.status_code < 500:
        raise SourceError(text)
    try:
        wait = Retry().get_retry_after(response.raw)
    except InvalidHeader:
        wait = None
    raise TransientError(text, wait)


def _bottom(error: BaseException) -> BaseException:
    """The error that the libraries have wrapped, often several times."""
    inside = (*error.args, getattr(error, "reason", None), error.__cause__)
    inner = next((each for each in inside if isinstance(each, BaseException)), None)
    return error if inner is None else _bottom(inner)


def _reason(error: BaseException) -> str:
    cause = _bottom(error)
    text = str(cause) or type(cause).__name__
    return f"no answer in time ({text})" if isinstance(cause, TimeoutError) else text


def fetch_text(url: str, policy: RetryPolicy) -> str:
    """Fetch a small UTF-8 text."""

    def action() -> bytes:
        data = bytearray()
        with open_url(url, {}, policy.timeout) as response:
            for block in _blocks(response):
                data += block
                if len(data) > LARGEST_TEXT:
                    raise SourceError(f"{url}: larger than {LARGEST_TEXT} bytes")
        return data

    try:
        return retry(action, url, policy).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{url}: not UTF-8 text") from error


def _blocks(response: requests.Response, start: int = 0, limit: int | None = None) -> Iterator[bytes]:
    """The body as it was sent, one read from the socket at a time, so that a slow drip is seen as such."""
    position = start
    try:
        while block := response.raw.read1(BLOCK, decode_content=False):
            position += len(block)
            yield block
        cause = None
    except (HTTPError, OSError) as error:
        cause = error
    if isinstance(cause and _bottom(cause), TimeoutError):
        raise TransientError(_reason(cause)) from cause
    if cause or (limit is not None and position < limit):
        of = "" if limit is None else f" of {limit}"
        raise TransientError(f"the transfer was cut after {position}{of} bytes") from cause


def download(
    url: str, part: Part, expected: Expected, label: str, policy: RetryPolicy, headers: Mapping[str, str] | None = None
) -> Measured:
    """Fill `part` from `url` and verify it. Raises SourceError, or WrongContent after emptying the part."""
    while True:
        retry(lambda: _attempt(url, part, expected, label, policy, headers or {}), label, policy, lambda: part.size)
        resumed = part.resumed
        try:
            return part.verify(expected)
        except WrongContent as error:
            if not resumed:
                raise
            # The first piece may be from another file of the same name; a whole transfer decides.
            print(f"{label}: {error}; starting over", file=sys.stderr, flush=True)


def _attempt(
    url: str, part: Part, expected: Expected, label: str, policy: RetryPolicy, headers: Mapping[str, str]
) -> None:
    offset, asked = 0, dict(headers)
    origin = part.origin
    if origin and _can_resume(url, part, origin, expected):
        offset = part.size
        if offset == origin.total:
            part.resumed = True
            return  # complete, but its process ended before it could say so
        asked["Range"] = f"bytes={offset}-"
        if origin.url == url and origin.validator:
            asked["If-Range"] = origin.validator
    # Otherwise nothing is thrown away yet: this source may not have the file at all.
    with open_url(url, asked, policy.timeout) as response:
        if response.status_code == 416:
            if not offset:
                raise SourceError("HTTP 416 although no range was asked for")
            part.restart()
            raise TransientError("the server cannot continue from here; starting over", wait=0)
        total = _agree(url, response, part, offset, expected)
        _receive(response, part, total, expected, label, policy)


def _can_resume(url: str, part: Part, origin: Origin, expected: Expected) -> bool:
    """Bytes from elsewhere, or from a server that names no version, are kept only if a checksum will judge them."""
    provable = origin.url == url and origin.validator
    fits = origin.total is None or part.size <= origin.total
    return bool(part.size and fits and (provable or expected.checksums))


def _agree(url: str, response: requests.Response, part: Part, offset: int, expected: Expected) -> int | None:
    """Check the answer's head; return the whole file's length if known. The part is ready for what follows."""
    head = response.headers
    if response.status_code == 206 and offset:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", head.get("Content-Range", ""))
        total = int(match[2]) if match and match[2] != "*" else None
        if not match or int(match[1]) != offset or _changed(part.origin, Origin.of(url, head, total)):
            part.restart()
            raise TransientError("the server continues another file or from another place; starting over", wait=0)
        part.resumed = True
    elif response.status_code == 200:
        length = head.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        part.restart(Origin.of(url, head, total))
        if offset:
            print(f"{url}: cannot be resumed; starting over", file=sys.stderr, flush=True)
        _refuse_traps(part, head, expected, measurable=total is not None or response.raw.chunked)
    else:
        raise SourceError(f"unexpected HTTP status {response.status_code}")
    if expected.bytes is not None and total is not None and total != expected.bytes:
        part.restart()
        raise WrongContent(f"wrong length: expected {expected.bytes} bytes, the server offers {total}")
    free = shutil.disk_usage(part.path.parent).free
    if total is not None and total - part.size > free:
        raise UserError(f"{part.path.parent}: {size(total - part.size)} are needed, but only {size(free)} are free")
    return total


def _changed(old: Origin | None, new: Origin) -> bool:
    """Whether the server now has another file; some ignore If-Range and would continue it all the same."""
    if old is None or old.url != new.url:
        return False
    pairs = [(old.etag, new.etag), (old.modified, new.modified), (old.total, new.total)]
    return any(before != after for before, after in pairs if before is not None and after is not None)


def _refuse_traps(part: Part, head: Mapping[str, str], expected: Expected, measurable: bool) -> None:
    """Refuse answers that look like success but may not be the file. Without a checksum to tell, be strict."""
    name = part.target.name
    encoding = head.get("Content-Encoding", "identity")
    if encoding != "identity" and not name.endswith((".gz", ".tgz")):
        raise SourceError(f"the server sends {encoding}-encoded data although that was not asked for")
    if expected.checksums:
        return
    kind = head.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/html" and not name.endswith((".html", ".htm")):
        raise SourceError("the server sends a web page instead of the file (a log-in or a proxy's notice?)")
    if not measurable and expected.bytes is None:
        raise SourceError("the server does not say how long the file is, so a cut would go unnoticed: add its bytes")


def _receive(
    response: requests.Response, part: Part, total: int | None, expected: Expected, label: str, policy: RetryPolicy
) -> None:
    limit = total if total is not None else expected.bytes
    progress = Progress(label, part.size, limit)
    mark, bytes_then = time.monotonic(), part.size
    try:
        for block in _blocks(response, part.size, limit):
            if limit is not None and part.size + len(block) > limit:
                part.restart()
                raise WrongContent(f"wrong length: expected {limit} bytes, the server sends more")
            part.append(block)
            progress.update(part.size)
            now = time.monotonic()
            if now - mark >= policy.window:
                speed = (part.size - bytes_then) / (now - mark)
                if speed < policy.slowest:
                    raise TransientError(f"stalled: {speed:.0f} bytes/s over {policy.window:g} s")
                mark, bytes_then = now, part.size
    finally:
        progress.close()


class Progress:
    """Progress of one transfer on standard error: a line that renews itself on a terminal, a rare line in a log."""

    def __init__(
        self,
        label: str,
        start: int,
        total: int | None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.label, self.start, self.total, self.clock = label, start, total, clock
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.began = self.last = clock()
        self.dirty = False

    def update(self, done: int) -> None:
        """Say how many bytes there are; printed only when the last line is old enough."""
        now = self.clock()
        if now - self.last < (TERMINAL_SECONDS if self.terminal else LOG_SECONDS):
            return
        self.last = now
        speed = (done - self.start) / max(now - self.began, 1e-9)
        share = f"{100 * done / self.total:3.0f} % of {size(self.total)}" if self.total else size(done)
        line = f"{self.label}: {share}, {speed / 1e6:.1f} MB/s"
        self.stream.write(f"\r\033[K{line}" if self.terminal else line + "\n")
        self.stream.flush()
        self.dirty = self.terminal

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self.dirty:
            self.stream.write("\r\033[K")
            self.stream.flush()
