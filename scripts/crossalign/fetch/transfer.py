"""Fetch one address over HTTP into a part file: resumed, retried, verified.

The library `requests` talks to servers and proxies. It cannot resume a transfer, so the retries are ours: one count
of failures covers connections, statuses and cut bodies alike.
"""

import contextlib
import re
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from crossalign.fetch.checksums import Expected, Measured, WrongContent
from crossalign.fetch.listing import size
from crossalign.fetch.part import Part
from crossalign.fetch.retry import RetryPolicy, SourceError, TransientError, retry

BLOCK = 1 << 18
RETRIED = (408, 425, 429)
SECONDS = 10  # between two lines of progress


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
    """Follows redirections, but never to plain text."""

    def __init__(self) -> None:
        super().__init__()
        self.mount("https://", _SystemTrust())
        self.headers.update({"User-Agent": "crossalign", "Accept-Encoding": "identity"})

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where the server sends us, if we may go there."""
        target = super().get_redirect_target(resp)
        if target is not None:
            old, new = urlsplit(resp.url), urlsplit(urljoin(resp.url, target))
            if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
                raise SourceError(f"refused the redirection from {resp.url} to {target}: not https")
        return target


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
        with open_url(url, {}, policy.timeout) as response:
            return b"".join(_blocks(response))

    try:
        return retry(action, url, policy).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{url}: not UTF-8 text") from error


def _blocks(response: requests.Response) -> Iterator[bytes]:
    """The body as it was sent."""
    try:
        while block := response.raw.read1(BLOCK, decode_content=False):
            yield block
    except (HTTPError, OSError) as error:
        text = _reason(error) if isinstance(_bottom(error), TimeoutError) else "the transfer was cut"
        raise TransientError(text) from error


def download(url: str, part: Part, expected: Expected, label: str, policy: RetryPolicy) -> Measured:
    """Fill `part` from `url` and verify it. Raises SourceError, or WrongContent after emptying the part."""
    retry(lambda: _attempt(url, part, expected, label, policy), label, policy, lambda: part.size)
    resumed = part.resumed
    try:
        return part.verify(expected)
    except WrongContent as error:
        if not resumed:
            raise
        # The first piece may be from another file of the same name; a whole transfer decides.
        print(f"{label}: {error}; starting over", file=sys.stderr, flush=True)
    retry(lambda: _attempt(url, part, expected, label, policy), label, policy, lambda: part.size)
    return part.verify(expected)


def _attempt(url: str, part: Part, expected: Expected, label: str, policy: RetryPolicy) -> None:
    # Bytes from elsewhere, or from a server that names no version, are kept only if a checksum will judge them.
    address, _, version = part.origin.partition("\n")
    same = address == url and bool(version)
    offset = part.size if same or expected.checksums else 0
    asked = {"Range": f"bytes={offset}-"} if offset else {}
    if offset and same:
        asked["If-Range"] = version
    # Nothing is thrown away yet: this source may not have the file at all.
    with open_url(url, asked, policy.timeout) as response:
        head, status = response.headers, response.status_code
        whole = head.get("Content-Range") == f"bytes */{offset}" and expected.bytes in (None, offset)
        if status == 416 and offset and whole:
            part.resumed = True
            return  # complete, but its process ended before it could say so
        match = re.fullmatch(rf"bytes {offset}-\d+/(\d+|\*)", head.get("Content-Range", ""))
        # Some servers ignore If-Range and would continue another version.
        if offset and (status == 416 or (status == 206 and (not match or (same and _version(head) != version)))):
            part.restart()
            raise TransientError("the server cannot continue this file from here; starting over", wait=0)
        if status == 206 and offset:
            part.resumed = True
            length = match[1]
        elif status == 200:
            part.restart(f"{url}\n{_version(head)}")
            length = head.get("Content-Length", "")
            _refuse_traps(part, response, expected)
        else:
            raise SourceError(f"unexpected HTTP status {status}")
        total = int(length) if length.isdigit() else expected.bytes
        if None not in (total, expected.bytes) and total != expected.bytes:
            part.restart()
            raise WrongContent(f"wrong length: expected {expected.bytes} bytes, the server offers {total}")
        _receive(response, part, total, label)


def _version(head: Mapping[str, str]) -> str:
    """What a server calls this version of a file. A weak entity tag may not be used to continue it."""
    tag = head.get("ETag", "W/")
    return head.get("Last-Modified", "") if tag.startswith("W/") else tag


def _refuse_traps(part: Part, response: requests.Response, expected: Expected) -> None:
    """Refuse answers that look like success but may not be the file. Without a checksum to tell, be strict."""
    head, name = response.headers, part.target.name
    encoding = head.get("Content-Encoding", "identity")
    if encoding != "identity" and not name.endswith((".gz", ".tgz")):
        raise SourceError(f"the server sends {encoding}-encoded data although that was not asked for")
    if expected.checksums:
        return
    if head.get("Content-Type", "").lower().startswith("text/html") and not name.endswith((".html", ".htm")):
        raise SourceError("the server sends a web page instead of the file (a log-in or a proxy's notice?)")
    if expected.bytes is None and "Content-Length" not in head and not response.raw.chunked:
        raise SourceError("the server does not say how long the file is, so a cut would go unnoticed: add its bytes")


def _receive(response: requests.Response, part: Part, total: int | None, label: str) -> None:
    told = time.monotonic()
    try:
        for block in _blocks(response):
            part.append(block)
            if total is not None and part.size > total:
                part.restart()
                raise WrongContent(f"wrong length: expected {total} bytes, the server sends more")
            if time.monotonic() - told > SECONDS:
                told = time.monotonic()
                print(f"{label}: {size(part.size)} of {size(total) if total else '?'}", file=sys.stderr, flush=True)
    except TransientError as error:
        raise TransientError(f"{error} after {part.size} of {total or '?'} bytes") from error
    if total is not None and part.size < total:
        raise TransientError(f"the transfer was cut after {part.size} of {total} bytes")
