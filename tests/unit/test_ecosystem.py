"""What other tools read agrees with the project: catalog, CI, pre-commit, containers, changelog and citation."""

import json
import re
import shlex
import subprocess
from datetime import date

import pytest
import yaml

SUPPORTED = ("3.11", "3.12", "3.13")
SECTIONS = {"arguments", "files", "post", "environment", "runscript", "test", "labels", "help"}


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


# The catalog


def test_the_catalog_finds_what_it_asks_for(root):
    """Its rules: a Snakefile, rules with a .smk file, a README with two words, config/README.md, and known keys."""
    usage = load(root / ".snakemake-workflow-catalog.yml")["usage"]
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["mandatory-flags"].keys() == {"desc", "flags"}
    assert usage["software-stack-deployment"] == {"conda": True}
    assert usage["report"] is True
    assert (root / "Snakefile").is_file() and list((root / "rules").glob("*.smk"))
    assert (root / "config" / "README.md").is_file()
    readme = (root / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme and "workflow" in readme
    profiles = {file.parent.name for file in (root / "profiles").glob("*/config.yaml")}
    assert all(f"({name})" in usage["mandatory-flags"]["desc"] for name in profiles)


def test_deployment_by_conda_is_true(root):
    """Every rule that runs a program names its environment."""
    for file in (root / "rules").glob("*.smk"):
        for rule in re.split(r"^ *rule ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            assert "shell:" not in rule or "conda:" in rule, f"{file.name}: {rule.partition(':')[0]}"


# GitHub


@pytest.fixture(scope="module")
def jobs(root):
    return load(root / ".github" / "workflows" / "ci.yml")["jobs"]


def test_ci_lints_tests_and_runs_the_demo(root, jobs):
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands["lint"] == ["make lint"]
    assert commands["test"] == [".ci/run"]
    assert commands["docs"] == ["make docs"]
    assert commands["demo"][0] == "make demo"
    for script in (command for each in commands.values() for command in each):
        check_shell(script, "bash")
        check_make(root, script)
    assert (root / ".ci" / "run").stat().st_mode & 0o100


def test_ci_runs_the_oldest_and_the_newest_python(jobs):
    """As text: 3.10 would be read as 3.1."""
    for name in ("test", "demo"):
        assert jobs[name]["strategy"]["matrix"]["python"] == [SUPPORTED[0], SUPPORTED[-1]]


def test_ci_caches_what_pip_fetches_and_keeps_the_page(jobs):
    for job in jobs.values():
        steps = {step.get("uses", "").partition("@")[0]: step for step in job["steps"]}
        assert steps["actions/setup-python"]["with"]["cache"] == "pip"
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
        assert job["timeout-minutes"]
    kept = [step["with"] for step in jobs["demo"]["steps"] if "upload-artifact" in step.get("uses", "")]
    published = next(step["run"] for step in jobs["demo"]["steps"] if "make publish" in step.get("run", ""))
    assert published.rpartition("TO=")[2] in kept[0]["path"].split()


# pre-commit


@pytest.fixture(scope="module")
def precommit(root):
    return load(root / ".pre-commit-config.yaml")


def test_hooks_have_the_versions_of_the_linters(root, precommit):
    pins = dict(re.findall(r"^([a-z-]+)==(\S+)$", (root / "requirements-dev.txt").read_text(), re.MULTILINE))
    revisions = {entry["repo"].rpartition("/")[2]: entry["rev"] for entry in precommit["repos"]}
    assert revisions["ruff-pre-commit"] == f"v{pins['ruff']}"
    assert revisions["snakefmt"] == f"v{pins['snakefmt']}"
    assert revisions["codespell"] == f"v{pins['codespell']}"
    hooks = {hook["id"] for entry in precommit["repos"] for hook in entry["hooks"]}
    assert {
        "ruff-check",
        "ruff-format",
        "snakefmt",
        "codespell",
        "check-yaml",
        "trailing-whitespace",
        "end-of-file-fixer",
    } <= hooks


def test_hooks_leave_the_tracked_files_as_they_are(root, precommit):
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True
    )
    names = [name for name in listed.stdout.split("\0") if name and not re.search(precommit["exclude"], name)]
    assert {"README.md", "Makefile", "config.yaml"} <= set(names)
    for name in names:
        content = (root / name).read_bytes() if (root / name).is_file() else b""
        if b"\0" not in content:
            assert not re.search(rb"[ \t]\n|\r", content), (
                f"{name}: blanks at the end of a line, or another line ending"
            )
            assert not content or re.search(rb"[^\n]\n\Z", content), f"{name}: should end with one line break"


# Containers


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


def test_the_base_of_both_containers_is_a_python_that_is_supported(dockerfile, definition):
    arguments = dict(words.split("=", 1) for name, words in dockerfile if name == "ARG")
    base = next(words for name, words in dockerfile if name == "FROM").replace("${PYTHON}", arguments["PYTHON"])
    assert re.fullmatch(r"python:(3\.\d+)-slim-\w+", base)[1] in SUPPORTED
    header = dict(line.split(": ") for line in definition[""].split("\n") if line)
    assert header == {"Bootstrap": "docker", "From": base}


def test_what_the_dockerfile_copies_and_runs(root, dockerfile):
    known = {"ARG", "FROM", "RUN", "USER", "WORKDIR", "COPY", "ENV", "CMD"}
    assert {name for name, _ in dockerfile} == known
    for name, words in dockerfile:
        if name == "COPY":
            sources = [word for word in words.split() if not word.startswith("--")][:-1]
            assert sources and all((root / source).exists() for source in sources)
        elif name == "RUN":
            check_shell(words)
            check_make(root, words.replace("install --yes --no-install-recommends git make", ""))
    installs = next(words for name, words in dockerfile if name == "RUN" and "make environment" in words)
    assert 'PIP_ARGS="${PIP_ARGS}"' in installs
    before = dockerfile[: dockerfile.index(("RUN", installs))]
    assert any(name == "COPY" and "requirements.txt" in words for name, words in before)
    assert ("ARG", 'PIP_ARGS=""') in before[before.index(next(line for line in before if line[0] == "FROM")) :]


def test_the_image_runs_as_a_plain_user_and_shows_what_there_is(root, dockerfile):
    assert [words for name, words in dockerfile if name == "USER"] == ["crossalign"]
    assert any("useradd" in words and words.split("&&")[0].split()[-1] == "crossalign" for _, words in dockerfile)
    assert json.loads(dockerfile[-1][1]) == ["make", "help"]
    assert "help" in make_targets(root)


def test_an_environment_or_results_do_not_go_into_the_image(root):
    ignored = (root / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".venv", "results", ".snakemake", "resources/downloads"} <= set(ignored)


def test_the_definition_for_apptainer(root, definition):
    assert definition.keys() - {""} == SECTIONS
    for line in filter(None, definition["files"].splitlines()):
        source, target = line.split()
        assert (root / source).is_file() and target.startswith("/opt/crossalign/")
    assert "requirements.txt" in definition["files"]
    assert 'PIP_ARGS="{{ PIP_ARGS }}"' in definition["post"] and 'PIP_ARGS=""' in definition["arguments"]
    for name in ("post", "environment", "runscript", "test"):
        check_shell(definition[name])
    check_make(root, definition["post"].replace("git make\n", "git\n"))
    check_make(root, definition["runscript"])
    for command in re.findall(r"python (scripts/\S+) .*--profile (\S+)", definition["help"]):
        assert all((root / path).exists() for path in command)


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


def test_the_citation_names_the_papers(root):
    from crossalign.catalog.papers import STUDY, papers

    titles = [reference["title"] for reference in load(root / "CITATION.cff")["references"]]
    reproduced = [paper.title for name, paper in papers().items() if name != STUDY]
    assert all(any(title.startswith(paper) for title in titles) for paper in reproduced)
