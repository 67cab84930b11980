"""Ask the web: open an address safely, tell trouble that may pass from trouble that stays, and ask again."""

import http.client
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from typing import IO
from urllib.parse import quote, urlsplit

RETRIED = (408, 425, 429)


@dataclass(frozen=True)
class Patience:
    """How long to bear with a bad connection."""

    attempts: int = 5  # in a row without real progress
    timeout: float = 60.0  # seconds of silence
    first_wait: float = 1.0  # doubled after each failure
    longest_wait: float = 60.0
    window: float = 30.0  # seconds over which the speed is judged
    slowest: float = 1024.0  # bytes per second; less counts as stalled
    real_progress: int = 1 << 20  # bytes that make the failures before them forgotten
    sleep: Callable[[float], None] = time.sleep

    def wait(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        return min(self.first_wait * 2 ** (failures - 1), self.longest_wait)


class SourceError(Exception):
    """This source will not give the file, however often it is asked."""


class Passing(Exception):
    """Trouble that may pass. `wait` is what the server asked for, in seconds."""

    def __init__(self, text: str, wait: float | None = None):
        super().__init__(text)
        self.wait = wait


def retry(action: Callable[[], object], label: str, patience: Patience, done: Callable[[], int] = lambda: 0) -> None:
    """Repeat `action` with growing waits while its trouble may pass."""
    failures = 0
    best = done()
    while True:
        try:
            action()
            return
        except Passing as error:
            # Counted from the best so far, so that a server which always starts over cannot keep us busy for ever.
            if done() >= best + patience.real_progress:
                failures, best = 0, done()
            failures += 1
            if failures >= patience.attempts:
                raise SourceError(f"{error} (gave up after {failures} attempts without progress)") from error
            wait = min(error.wait, patience.longest_wait) if error.wait is not None else patience.wait(failures)
            print(f"{label}: {error}; trying again in {wait:g} s", file=sys.stderr, flush=True)
            patience.sleep(wait)


def open_url(url: str, headers: dict[str, str], timeout: float) -> http.client.HTTPResponse:
    """Open an http(s) address through the configured proxies. HTTPError 416 is the caller's to handle."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise SourceError(f"{url}: only http and https can be fetched")
    try:
        request = urllib.request.Request(quote(url, safe="/:?=&%#@+,;~!$'()*[]"), headers=headers)
        return urllib.request.build_opener(_Redirects).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                raise
            text = f"HTTP {error.code} {str(error.reason).splitlines()[0] if error.reason else ''}".rstrip()
            if error.code in RETRIED or error.code >= 500:
                after = error.headers.get("Retry-After", "")
                raise Passing(text, float(after) if after.isdigit() else None) from error
            raise SourceError(text) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise SourceError(f"the server's certificate is not trusted: {error.reason.verify_message}") from error
        raise Passing(reason(error.reason)) from error
    except (http.client.InvalidURL, ValueError) as error:
        raise SourceError(f"bad address: {error}") from error
    except (http.client.HTTPException, OSError) as error:
        raise Passing(reason(error)) from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but never to plain text and never with a password to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        """Judge where the server sends us."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
            raise SourceError(f"refused the redirection from {req.full_url} to {newurl}: not https")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and old.netloc != new.netloc:
            request.remove_header("Authorization")
        return request


def reason(error: object) -> str:
    """An error in a few words."""
    text = str(error) or type(error).__name__
    return f"no answer in time ({text})" if isinstance(error, TimeoutError) else text
