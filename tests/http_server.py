"""A web server on the loopback that misbehaves as told, and remembers what it was asked.

Test files use it with `pytest_plugins = ("tests.http_server",)` and the fixtures `web` and `place`.
"""

import hashlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from crossalign.fetch.retry import RetryPolicy
from crossalign.fetch.sources import Settings


@dataclass
class Resource:
    """What is served at one path, and how badly. Lists are used up, one entry per GET."""

    content: bytes = b""
    etag: str | None = '"one"'
    modified: str | None = None
    ranges: bool = True
    obeys_if_range: bool = True
    statuses: list[int] = field(default_factory=list)  # answered before anything else works
    cuts: list[int] = field(default_factory=list)  # body bytes after which the connection is dropped
    content_length: int | None = None  # a lie
    chunked: bool = False
    close_delimited: bool = False
    redirect: str | None = None
    drip: tuple[int, float] | None = None  # bytes at a time, seconds between
    range_status: int = 206
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """One request, and how many body bytes it got."""

    method: str
    path: str
    headers: dict[str, str]
    sent: int = 0


class Web:
    """The server's content and memory."""

    def __init__(self) -> None:
        self.resources: dict[str, Resource] = {}
        self.asked: list[Asked] = []
        web = self

        class Handler(_Handler):
            owner = web

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def serve(self, path: str, content: bytes, **how) -> str:
        """Put content at a path; return its address."""
        self.resources[path] = Resource(content, **how)
        return self.url + path

    def gets(self, path: str | None = None) -> list[Asked]:
        """The GET requests so far."""
        return [asked for asked in self.asked if asked.method == "GET" and path in (None, asked.path)]

    def ranges(self, path: str | None = None) -> list[str | None]:
        """The Range header of each GET request so far."""
        return [asked.headers.get("range") for asked in self.gets(path)]

    def publish(
        self, kind: str, repository: str, commit: str, files: dict[str, bytes], branches: tuple[str, ...] = ()
    ) -> None:
        """Play the model hub: a repository (kind: models or datasets) at one commit, which branches may name.

        As on the hub, files whose names end like binaries are identified by sha256 and the others by git blob id.
        """
        siblings = []
        for name, content in files.items():
            large = name.endswith((".safetensors", ".bin", ".parquet", ".model"))
            sha256 = hashlib.sha256(content).hexdigest()
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            sibling = {"rfilename": name, "size": len(content), "blobId": blob}
            if large:
                sibling["lfs"] = {"size": len(content), "sha256": sha256, "pointerSize": 130}
            siblings.append(sibling)
            folder = "" if kind == "models" else f"{kind}/"
            identity = f'"{sha256 if large else blob}"'
            for revision in (commit, *branches):
                path = f"/{folder}{repository}/resolve/{revision}/{name}"
                self.serve(path, content, etag=identity, headers={"X-Repo-Commit": commit})
        for revision in (commit, *branches):
            answer = {"id": repository, "sha": commit, "siblings": siblings}
            self.serve(f"/api/{kind}/{repository}/revision/{revision}", json.dumps(answer).encode())

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    owner: Web
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        # A proxy is asked with the whole address.
        path = unquote(urlsplit(self.path).path)
        asked = Asked(self.command, path, {name.lower(): value for name, value in self.headers.items()})
        asked.headers[":target"] = self.path
        self.owner.asked.append(asked)
        self.close_connection = True
        resource = self.owner.resources.get(path)
        if resource is None:
            self._plain(404)
        elif self.command == "GET" and resource.statuses and (status := resource.statuses.pop(0)) != 200:
            self._plain(status, resource.headers)
        elif resource.redirect is not None:
            # As the model hub does, what the file is stands in the answer that leads to it.
            linked = {"X-Linked-Etag": resource.etag or "", "X-Linked-Size": str(len(resource.content))}
            self._plain(302, {"Location": resource.redirect, **linked, **resource.headers})
        else:
            self._content(resource, asked)

    def _plain(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", "Connection": "close", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _content(self, resource: Resource, asked: Asked) -> None:
        body, status = resource.content, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", asked.headers.get("range", ""))
        condition = asked.headers.get("if-range")
        fresh = not resource.obeys_if_range or condition in (None, resource.etag, resource.modified)
        headers = {"Connection": "close", **resource.headers}
        if wanted and resource.ranges and fresh:
            start = int(wanted[1])
            if start >= len(body) or resource.range_status == 416:
                self._plain(416, {"Content-Range": f"bytes */{len(body)}"})
                return
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            body, status = body[start:], resource.range_status
        if resource.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif not resource.close_delimited:
            headers["Content-Length"] = str(len(body) if resource.content_length is None else resource.content_length)
        if resource.etag:
            headers["ETag"] = resource.etag
        if resource.modified:
            headers["Last-Modified"] = resource.modified
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self._send(resource, body, asked)

    def _send(self, resource: Resource, body: bytes, asked: Asked) -> None:
        cut = resource.cuts.pop(0) if resource.cuts else None
        pieces = [body if cut is None else body[:cut]]
        pause = 0.0
        if resource.drip:
            step, pause = resource.drip
            pieces = [pieces[0][at : at + step] for at in range(0, len(pieces[0]), step)]
        try:
            for piece in pieces:
                # Counted first: a client that has everything may look before this thread goes on.
                asked.sent += len(piece)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if resource.chunked else piece)
                if pause:
                    time.sleep(pause)
            if resource.chunked and cut is None:
                self.wfile.write(b"0\r\n\r\n")
            if cut is not None:
                self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the client has gone, which is what some tests want


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A fresh server; no proxy of this machine stands between."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    server = Web()
    yield server
    server.close()


@pytest.fixture
def place(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Where downloads go, with the server for a hub."""
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    policy = RetryPolicy(attempts=3, timeout=5, sleep=lambda seconds: None)
    return Settings(tmp_path / "downloads", tmp_path / "lock.tsv", policy=policy)
