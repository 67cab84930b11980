"""What is installed: pip and conda agree, environments hold what rules import; licences, pins, lists of rules."""

import ast
import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from tests.rule_texts import rules

from crossalign.catalog import code_hash as recipe
from crossalign.tasks import file_of
from crossalign.tasks.declared import TASKS

ROOT = Path(__file__).resolve().parents[2]
# conda-forge's name -> the name on the Python index
RENAMED = {"pytorch": "torch", "huggingface_hub": "huggingface-hub"}


def pinned(root):
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "every line is name==version"
    return {name.lower(): version for name, version in pairs}


def conda_versions(root, name):
    found = {}
    for entry in yaml.safe_load((root / "envs" / name).read_text(encoding="utf-8"))["dependencies"]:
        for line in entry["pip"] if isinstance(entry, dict) else [entry]:
            package, _, version = re.sub("==", "=", line).partition("=")
            if package not in ("python", "pip"):
                found[RENAMED.get(package, package).lower()] = version
    return found


@pytest.mark.parametrize("name", ["data.yaml", "torch.yaml"])
def test_conda_versions_equal_the_pinned_ones(root, name):
    versions = conda_versions(root, name)
    assert versions == {package: pinned(root).get(package) for package in versions}


def test_everything_pinned_is_in_an_environment(root):
    in_conda = {package for file in (root / "envs").glob("*.yaml") for package in conda_versions(root, file.name)}
    # Snakemake itself runs outside the environments of its rules.
    assert set(pinned(root)) - in_conda == {
        "snakemake", "snakemake-executor-plugin-slurm", "snakemake-executor-plugin-slurm-jobstep"
    }  # fmt: skip


# The name in an import -> the name in lists, where they differ
LISTED_AS = {"yaml": "pyyaml", "huggingface_hub": "huggingface-hub"}
# Packages that come with one of the environment's own.
BROUGHT = {
    "httpx": "huggingface-hub",  # its own client, whose errors are told apart
    "urllib3": "requests",  # likewise
    "tqdm": "transformers",  # its own bars
    "triton": "torch",  # builds for GPUs; without it plain PyTorch does the same (crossalign/engine/kernels)
}
# Imported inside functions that no rule of the environment calls.
NOT_CALLED = {("torch.yaml", "sacremoses")}  # make_demo_model reads text only


def at_runtime(node):
    """All parts of a syntax tree but those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from at_runtime(child)


@cache
def imports_of(file):
    """Files in `scripts/` and packages of others that a file imports."""
    files, packages = set(), set()
    for node in at_runtime(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{name}" for name in names)]
        for name in names:
            top = name.split(".")[0]
            if recipe.modules(top):
                files.update(recipe.modules(name))
            elif top not in sys.stdlib_module_names:
                packages.add(top)
    return files, packages


@cache
def imported(program):
    """The packages of others that a file in `scripts/` imports, through all that it imports from there."""
    packages, seen, waiting = set(), set(), {program}
    while waiting:
        file = waiting.pop()
        seen.add(file)
        files, others = imports_of(file)
        packages |= others
        waiting |= files - seen
    return packages


def unlisted(root, rule):
    """What the programs of a rule import and the list of its environment lacks."""
    # Tasks are looked up by name, so that no import leads to them.
    tasks = set(map(file_of, TASKS)) if re.search(r"finetune|evaluate|bilstm", rule.name) else set()
    packages = set().union(*(imported(recipe.SCRIPTS / file) for file in {*rule.programs, *tasks}))
    return {LISTED_AS.get(name, name) for name in packages} - conda_versions(root, rule.environment).keys()


def missing(root, rule):
    """What the programs of a rule import and its environment does not hold."""
    held = conda_versions(root, rule.environment).keys()
    return {name for name in unlisted(root, rule) if BROUGHT.get(name) not in held}


RULES = rules(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_a_program_imports_is_in_its_environment(root, rule):
    assert rule.programs or rule.name == "write_config", "every other rule runs a program"
    assert {name for name in missing(root, rule) if (rule.environment, name) not in NOT_CALLED} == set()


@pytest.fixture(scope="module")
def names(root):
    return {rule.name for rule in rules(root)}


def test_the_profile_names_rules(root, names):
    text = (root / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    groups = dict(entry.split("=") for entry in yaml.safe_load(text)["groups"])
    shown = re.findall(r"^#   (\w+):", text, re.MULTILINE)
    assert {*groups, *shown} <= names
    assert "finetune" in shown
    # One submission does a whole run, whatever its layers start from.
    assert {rule for rule, group in groups.items() if group == "run"} == {"finetune", "finetune_and_test", "evaluate"}


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


HARM = {"vulns": [{"id": "MADE-UP-1"}]}


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (lambda queries: [{} for _ in queries], 0, r"^\d{2,} pins checked, 0 advisories"),
        (
            lambda queries: [HARM if query["package"]["name"] == "numpy" else {} for query in queries],
            1,
            r"^numpy \S+: MADE",
        ),
        (lambda queries: b"<html>log in first</html>", 0, "pins not checked"),
        (None, 0, "pins not checked"),
    ],
    ids=["no advisory", "an advisory", "another page", "no network"],
)
def test_pins_are_asked_for_and_no_answer_fails_nothing(root, database, answer, status, said):
    database.answer = answer
    done = audit(root, f"http://127.0.0.1:{database.server_port if answer else 9}")
    assert (done.returncode, done.stderr) == (status, "")
    assert re.search(said, done.stdout, flags=re.MULTILINE)


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
