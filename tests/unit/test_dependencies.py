"""Dependencies: licences that go with this project's own, and the check of pins against known vulnerabilities."""

import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from packaging.requirements import Requirement

# Licences that let a project under MIT be used and passed on; with LGPL and MPL, changes of the library stay open.
ALLOWED = (
    r"mit( license)?|mit-cmu|isc( license.*)?|[a-z0-9 -]*bsd[a-z0-9 -]*|apache[a-z0-9 .,-]*|mpl-2.0|mozilla public.*"
    r"|psf-2.0|python software foundation license|cnri-python|zlib|cc0-1.0|bsl-1.0|public domain|lgpl[a-z0-9 .-]*"
)
# No licence in the metadata; what their own files say.
SAID_ELSEWHERE = {
    "conda-inject": "MIT",
    "snakemake-interface-common": "MIT",
    "snakemake-interface-logger-plugins": "MIT",
}
SAID_ELSEWHERE |= {f"snakemake-interface-{name}-plugins": "MIT" for name in ("report", "scheduler", "storage")}


def dependencies(root):
    """Everything that installing requirements.txt brings, by name."""
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    waiting = [Requirement(line) for line in lines if line and not line.startswith("#")]
    found = {}
    while waiting:
        wanted = waiting.pop()
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if name in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a CPU build of torch lacks CUDA's parts
            found[name] = importlib.metadata.distribution(wanted.name)
            waiting += [Requirement(line) for line in found[name].requires or []]
    return found


def licences(name, metadata):
    """Alternatives, each a list of licences that hold together."""
    if expression := metadata.get("License-Expression"):
        return [re.split(r" AND ", choice.strip("()")) for choice in expression.split(" OR ")]
    classifiers = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or [] if line.startswith("License")
    ]
    if classifiers:
        return [[classifier] for classifier in classifiers]
    told = (metadata.get("License") or SAID_ELSEWHERE.get(name, "")).splitlines()
    return [re.split(r" AND ", choice) for choice in re.split(r"/| OR ", told[0] if told else "")]


def allowed(licence):
    return re.fullmatch(ALLOWED, licence.removesuffix(" WITH LLVM-exception").lower()) is not None


def test_licences_of_all_dependencies_allow_an_mit_project(root):
    found = dependencies(root)
    assert {"snakemake", "torch", "numpy"} <= set(found)
    nvidia = re.compile(r"nvidia-|cuda-")  # proprietary, of GPU builds of torch only, and never passed on
    refused = {}
    for name, distribution in found.items():
        choices = licences(name, distribution.metadata)
        if not nvidia.match(name) and not any(all(map(allowed, choice)) for choice in choices):
            refused[name] = choices
    assert refused == {}


def test_gpl_alone_would_be_refused():
    assert not allowed("GPL-3.0-only")
    assert not allowed("GNU General Public License v3 (GPLv3)")
    assert not allowed("AGPL-3.0")
    assert not allowed("")
    assert allowed("Apache-2.0 WITH LLVM-exception")


@pytest.fixture
def database():
    """A server of advisories; `answer` makes its answer from the questions."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # the library's name
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            body = self.server.answer(queries)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps({"results": body}).encode())

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def audit(root, address, *files):
    environment = os.environ | {"CROSSALIGN_ADVISORIES": address, "no_proxy": "127.0.0.1"}
    command = [sys.executable, str(root / ".ci" / "audit-pins"), *map(str, files)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_pins_without_advisories_pass(root, database):
    asked = []
    database.answer = lambda queries: asked.extend(queries) or [{} for _ in queries]
    done = audit(root, f"http://127.0.0.1:{database.server_port}")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(asked)} pins checked, 0 advisories" in done.stdout
    names = {query["package"]["name"] for query in asked}
    assert {"torch", "snakemake", "pytest"} <= names


def test_a_pin_with_an_advisory_fails(root, database):
    harm = {"vulns": [{"id": "MADE-UP-1"}]}
    database.answer = lambda queries: [harm if query["package"]["name"] == "numpy" else {} for query in queries]
    done = audit(root, f"http://127.0.0.1:{database.server_port}")
    assert done.returncode == 1
    assert re.search(r"^numpy \S+: MADE-UP-1$", done.stdout, flags=re.MULTILINE)


@pytest.mark.parametrize("answer", [b"<html>log in first</html>", b'{"results": []}', b'{"message": "busy"}', b"[]"])
def test_an_answer_that_is_none_does_not_fail_and_is_told(root, database, answer):
    database.answer = lambda queries: answer
    done = audit(root, f"http://127.0.0.1:{database.server_port}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pins not checked" in done.stdout


def test_no_network_does_not_fail_and_is_told(root):
    done = audit(root, "http://127.0.0.1:9")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pins not checked" in done.stdout


def test_a_line_that_pins_nothing_is_an_error(root, tmp_path):
    (tmp_path / "list.txt").write_text("numpy==2.0\ntorch>=2\n")
    done = audit(root, "http://127.0.0.1:9", tmp_path / "list.txt")
    assert done.returncode == 1
    assert "list.txt, line 2: not name==version: torch>=2" in done.stderr


def test_no_package_index_is_named(root):
    """Whoever installs chooses where packages come from; nothing here points pip, conda or apt anywhere."""
    hosts = [
        "py" + "pi.org",
        "python" + "hosted.org",
        "ana" + "conda.org",
        "ana" + "conda.com",
        "download.py" + "torch.org",
    ]
    hosts += ["deb.deb" + "ian.org", "registry.np" + "mjs.org"]
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=root, capture_output=True, check=True
    )
    names = [name for name in listed.stdout.decode().split("\0") if name]
    assert ".ci/audit-pins" in names
    files = [root / name for name in names if (root / name).is_file()]
    found = [(str(file), host) for file in files for host in hosts if host.encode() in file.read_bytes()]
    assert found == []
