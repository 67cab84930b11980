"""The two ways to install, pip and conda, give the same versions; environments hold what their programs import."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from tests.rule_texts import Rule, rules

from crossalign.catalog import code_hash as recipe
from crossalign.tasks import declared, file_of

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
    assert set(pinned(root)) - in_conda == {"snakemake", "snakemake-executor-plugin-slurm"}


def test_every_environment_of_a_rule_exists(root):
    named = {
        name for file in (root / "rules").glob("*.smk") for name in re.findall(r"\.\./envs/(\S+?)\"", file.read_text())
    }
    assert named
    assert all((root / "envs" / name).is_file() for name in named)


# The name in an import -> the name in lists, where they differ
LISTED_AS = {"yaml": "pyyaml", "huggingface_hub": "huggingface-hub"}
# Packages that come with one of the environment's own.
BROUGHT = {
    "httpx": "huggingface-hub",  # its own client, whose errors are told apart
    "urllib3": "requests",  # likewise
    "triton": "torch",  # builds for GPUs; without it plain PyTorch does the same (crossalign/engine/kernels)
}
# Imported inside functions that no rule of the environment calls.
NOT_CALLED: set[tuple[str, str]] = set()


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
    tasks = {file_of(name) for name in declared()} if "task_code(" in rule.body else set()
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


def test_a_lacking_package_is_found(root):
    """As matplotlib and scipy once were."""
    figure = next(rule for rule in RULES if rule.name == "make_figure")
    moved = Rule(figure.name, figure.body.replace("data.yaml", "torch.yaml"))
    assert missing(root, moved) >= {"pydantic", "matplotlib"}
