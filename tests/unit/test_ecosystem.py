"""What other tools read agrees with the project: catalog, CI, pre-commit, containers, changelog and citation."""

import re
import shlex
import subprocess

import pytest
import yaml


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def scripts(root):
    """What CI and containers run."""
    jobs = load(root / ".github" / "workflows" / "ci.yml")["jobs"]
    found = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    dockerfile = re.sub(r"\\\n", " ", (root / "Dockerfile").read_text(encoding="utf-8"))
    found += re.findall(r"^RUN (.+)$", dockerfile, re.MULTILINE)
    parts = re.split(r"^%", (root / "apptainer.def").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found + [part.partition("\n")[2] for part in parts if part.startswith(("post", "environment", "runscript"))]


def test_every_script_is_a_shells_and_makes_what_there_is(root, scripts):
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))
    assert "make demo" in scripts and (root / ".ci" / "run").stat().st_mode & 0o100
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert done.returncode == 0, f"{done.stderr}\n{script}"
        for command in re.findall(r"(?<!git )\bmake ([^\n&|;]+)", script):
            for word in (word for word in shlex.split(command) if not word.startswith("--")):
                name, sign, _ = word.partition("=")
                known = re.search(rf"\$[({{]{name}\b|^{name} \?=", makefile, re.MULTILINE)
                assert known if sign else word in targets or word.startswith("/"), f"make {command}: {word}"


def test_the_catalog_knows_every_profile(root):
    usage = load(root / ".snakemake-workflow-catalog.yml")["usage"]
    profiles = {file.parent.name for file in (root / "profiles").glob("*/config.yaml")}
    assert all(f"({name})" in usage["mandatory-flags"]["desc"] for name in profiles)
    assert (root / "config" / "README.md").is_file() and usage["software-stack-deployment"] == {"conda": True}


def test_hooks_have_the_versions_of_the_linters(root):
    pins = dict(re.findall(r"^([a-z-]+)==(\S+)$", (root / "requirements-dev.txt").read_text(), re.MULTILINE))
    hooks = load(root / ".pre-commit-config.yaml")["repos"]
    revisions = {entry["repo"].rpartition("/")[2].removesuffix("-pre-commit"): entry["rev"] for entry in hooks}
    for name in ("ruff", "snakefmt", "codespell"):
        assert revisions[name].removeprefix("v") == pins[name]


def test_the_changelog_and_the_citation_have_the_same_version(root):
    citation = load(root / "CITATION.cff")
    headings = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    releases = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", heading).groups() for heading in headings[1:]]
    assert (citation["version"], str(citation["date-released"])) == releases[0]
