"""Fetch one address over HTTP into a part file: resumed, retried, bounded in time and length, verified."""

import http.client
import re
import shutil
import sys
import time
import urllib.error
from email.message import Message

from crossalign.fetch.checksums import Expected, Measured, WrongContent, check, measure
from crossalign.fetch.part import Origin, Part
from crossalign.fetch.progress import Progress, size
from crossalign.fetch.web import Passing, Patience, SourceError, open_url, reason, retry
from crossalign.runtime.errors import UserError

CHUNK = 1 << 18


def download(
    url: str,
    part: Part,
    expected: Expected,
    label: str,
    patience: Patience | None = None,
    headers: dict[str, str] | None = None,
) -> Measured:
    """Fill `part` from `url` and verify it. Raises SourceError, or WrongContent after emptying the part."""
    patience = patience or Patience()
    while True:
        retry(lambda: _attempt(url, part, expected, label, patience, headers or {}), label, patience, lambda: part.size)
        part.flush()
        measured = measure(part.path, expected.needs_git)
        try:
            check(measured, expected)
            return measured
        except WrongContent as error:
            resumed = part.resumed
            part.restart()
            if not resumed:
                raise
            # The first piece may be from another file of the same name; a whole transfer decides.
            print(f"{label}: {error}; starting over", file=sys.stderr, flush=True)


def _attempt(url: str, part: Part, expected: Expected, label: str, patience: Patience, headers: dict[str, str]) -> None:
    offset, origin = _resume_point(url, part, expected)
    if offset and origin and offset == origin.total:
        part.resumed = True
        return  # complete, but its process ended before it could say so
    asked = {"User-Agent": "crossalign", "Accept-Encoding": "identity", **headers}
    if offset:
        asked["Range"] = f"bytes={offset}-"
        if origin and origin.url == url and origin.validator:
            asked["If-Range"] = origin.validator
    try:
        response = open_url(url, asked, patience.timeout)
    except urllib.error.HTTPError as error:
        if not offset:
            raise SourceError("HTTP 416 although no range was asked for") from error
        part.restart()
        raise Passing("the server cannot continue from here; starting over", wait=0) from error
    with response:
        total = _agree(url, response, part, offset, expected)
        _receive(response, part, total, expected, label, patience)


def _resume_point(url: str, part: Part, expected: Expected) -> tuple[int, Origin | None]:
    """How many bytes can be kept, and where they came from."""
    origin = part.origin
    if part.size and origin:
        provable = origin.url == url and origin.validator
        # Bytes from elsewhere, or from a server that names no version, are kept only if a checksum will judge them.
        fits = origin.total is None or part.size <= origin.total
        if fits and (provable or expected.checksums):
            return part.size, origin
    # Nothing is thrown away yet: this source may not have the file at all.
    return 0, None


def _agree(url: str, response: http.client.HTTPResponse, part: Part, offset: int, expected: Expected) -> int | None:
    """Check the answer's head; return the whole file's length if known. The part is ready for what follows."""
    head = response.headers
    if response.status == 206 and offset:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", head.get("Content-Range", ""))
        total = int(match[2]) if match and match[2] != "*" else None
        if not match or int(match[1]) != offset or _changed(part.origin, Origin.of(url, head, total)):
            part.restart()
            raise Passing("the server continues another file or from another place; starting over", wait=0)
        part.resumed = True
    elif response.status == 200:
        length = head.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        part.restart(Origin.of(url, head, total))
        if offset:
            print(f"{url}: cannot be resumed; starting over", file=sys.stderr, flush=True)
        _refuse_traps(part, head, expected, measurable=total is not None or response.chunked)
    else:
        raise SourceError(f"unexpected HTTP status {response.status}")
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


def _refuse_traps(part: Part, head: Message, expected: Expected, measurable: bool) -> None:
    """Answers that look like success but may not be the file. A checksum would tell; without one, be strict."""
    name = part.target.name
    encoding = head.get("Content-Encoding", "identity")
    if encoding != "identity" and not name.endswith((".gz", ".tgz")):
        raise SourceError(f"the server sends {encoding}-encoded data although that was not asked for")
    if expected.checksums:
        return
    if head.get_content_type() == "text/html" and not name.endswith((".html", ".htm")):
        raise SourceError("the server sends a web page instead of the file (a log-in or a proxy's notice?)")
    if not measurable and expected.bytes is None:
        raise SourceError("the server does not say how long the file is, so a cut would go unnoticed: add its bytes")


def _receive(
    response: http.client.HTTPResponse,
    part: Part,
    total: int | None,
    expected: Expected,
    label: str,
    patience: Patience,
) -> None:
    limit = total if total is not None else expected.bytes
    progress = Progress(label, part.size, limit)
    mark, bytes_then = time.monotonic(), part.size
    try:
        while chunk := _read(response):
            if limit is not None and part.size + len(chunk) > limit:
                part.restart()
                raise WrongContent(f"wrong length: expected {limit} bytes, the server sends more")
            part.append(chunk)
            progress.update(part.size)
            now = time.monotonic()
            if now - mark >= patience.window:
                speed = (part.size - bytes_then) / (now - mark)
                if speed < patience.slowest:
                    raise Passing(f"stalled: {speed:.0f} bytes/s over {patience.window:g} s")
                mark, bytes_then = now, part.size
    finally:
        progress.close()
    if limit is not None and part.size < limit:
        raise Passing(f"the transfer was cut after {part.size} of {limit} bytes")


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        # One read from the socket at a time, so that a slow drip is seen as such.
        return response.read1(CHUNK)
    except (http.client.HTTPException, OSError) as error:
        raise Passing(f"the transfer was cut: {reason(error)}") from error
