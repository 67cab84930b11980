"""What other tools read agrees with the project: catalog, CI, pre-commit, containers, changelog and citation."""

import json
import re
import shlex
import subprocess
from datetime import date

import pytest
import yaml


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def check_shell(script, shell="sh"):
    """Nothing is run."""
    done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, f"{done.stderr}\n{script}"


def make_targets(root):
    return set(re.findall(r"^([a-z-]+):(?!=)", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def check_make(root, script):
    """Each `make` names a target, and variables that the Makefile knows."""
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"\bmake ([^\n&|;]+)", script):
        words = [word for word in shlex.split(command) if not word.startswith("--")]
        for word in words:
            name, sign, _ = word.partition("=")
            known = re.search(rf"\$[({{]{name}\b|^{name} \?=", makefile, re.MULTILINE)
            assert known if sign else word in make_targets(root) or word.startswith("/"), f"make {command}: {word}"


def test_the_catalog_finds_what_it_asks_for(root):
    """Flags of every profile, config/README.md, and an environment for every rule that runs a program."""
    usage = load(root / ".snakemake-workflow-catalog.yml")["usage"]
    profiles = {file.parent.name for file in (root / "profiles").glob("*/config.yaml")}
    assert all(f"({name})" in usage["mandatory-flags"]["desc"] for name in profiles)
    assert (root / "config" / "README.md").is_file() and usage["software-stack-deployment"] == {"conda": True}
    for file in (root / "rules").glob("*.smk"):
        for rule in re.split(r"^ *rule ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            assert "shell:" not in rule or "conda:" in rule, f"{file.name}: {rule.partition(':')[0]}"


# What CI and containers run


@pytest.fixture(scope="module")
def jobs(root):
    return load(root / ".github" / "workflows" / "ci.yml")["jobs"]


@pytest.fixture(scope="module")
def dockerfile(root):
    """(instruction, arguments), continued lines joined."""
    text = re.sub(r"\\\n", " ", (root / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


@pytest.fixture(scope="module")
def definition(root):
    """The header and the sections of apptainer.def."""
    header, *parts = re.split(r"^%", (root / "apptainer.def").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": header} | {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def test_every_script_is_a_shells_and_makes_what_there_is(root, jobs, dockerfile, definition):
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {"make lint", ".ci/run", "make demo", "make docs"} <= set(scripts) and (
        root / ".ci" / "run"
    ).stat().st_mode & 0o100
    scripts += [words for name, words in dockerfile if name == "RUN"]
    scripts += [definition[name] for name in ("post", "environment", "runscript", "test")]
    for script in scripts:
        check_shell(script, "bash")
        check_make(root, re.sub(r"\bgit make\b", "git", script))
    assert json.loads(dockerfile[-1][1]) == ["make", "help"]
    profiles = re.findall(r"snakemake --profile (\S+)", definition["help"])
    assert len(profiles) == 2 and all((root / profile).is_dir() for profile in profiles)


def test_what_containers_copy_is_there_and_results_stay_outside(root, dockerfile, definition):
    copied = [word for name, words in dockerfile if name == "COPY" for word in words.split()[:-1] if word[:2] != "--"]
    copied += [line.split()[0] for line in definition["files"].splitlines() if line]
    assert "requirements.txt" in copied and all((root / source).exists() for source in copied)
    ignored = (root / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".venv", "results", ".snakemake", "resources/downloads"} <= set(ignored)
    assert [words for name, words in dockerfile if name == "USER"] == ["crossalign"]
    # Whoever builds an image may choose where packages come from.
    assert ("ARG", 'PIP_ARGS=""') in dockerfile and 'PIP_ARGS="{{ PIP_ARGS }}"' in definition["post"]


# pre-commit


# Versions


def test_the_changelog_and_the_citation_have_the_same_version(root):
    citation = load(root / "CITATION.cff")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    releases = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", heading).groups() for heading in headings[1:]]
    assert (citation["version"], citation["date-released"]) == releases[0]
    dates = [date.fromisoformat(day) for _, day in releases]
    assert dates == sorted(dates, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds
