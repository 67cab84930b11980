"""scripts/run.py: which run it is, and what Snakemake is started with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossalign.runtime.holders import NOTES
from run import results_folder

FILES = {
    "config.yaml": "run: paper\nseeds: [1]\n",
    "config.demo.yaml": "run: demo\n",
    "other.yaml": "seeds: [2]\n",
    "broken.yaml": "run: [\n",
    "profiles/demo/config.yaml": "configfile: config.demo.yaml\ncores: 2\n",
    "profiles/gpu/config.yaml": "cores: 8\n",
    "bin/snakemake": """#!/bin/sh\nprintf '%s\\n' "$@"\nenv > environment\n""",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with configs, a profile, and a snakemake that tells how it was called."""
    monkeypatch.chdir(tmp_path)
    assert results_folder([]) == Path("results/unnamed")
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "bin" / "snakemake").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "results"),
    [
        ("all", "results/paper"),
        ("--profile profiles/gpu all", "results/paper"),
        ("--profile profiles/demo all", "results/demo"),
        ("--profile profiles/demo --configfile other.yaml -- all", "results/paper"),
        ("--configfile config.demo.yaml other.yaml --cores 2", "results/demo"),
        ("--configfile config.demo.yaml --config run=mine seeds=[3]", "results/mine"),
        ("--configfile broken.yaml none.yaml", "results/paper"),
        ("--directory elsewhere all", "elsewhere/results/paper"),
    ],
)
def test_the_run_is_that_of_the_configs(folder, arguments, results):
    assert results_folder(arguments.split()) == Path(results)


def start(folder, root, *words, **environment):
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    clean = {name: value for name, value in os.environ.items() if name != "CROSSALIGN_AGAIN"}
    command = [sys.executable, root / "scripts" / "run.py", *words]
    return subprocess.run(command, cwd=folder, env=clean | {"PATH": path} | environment, capture_output=True, text=True)


def test_snakemake_gets_the_logger_and_the_commands_to_tell(folder, root):
    words = ["--after", "make publish RUN={run}", "--", "--profile", "profiles/demo", "--", "a b"]
    done = start(folder, root, *words, CROSSALIGN_AGAIN="make demo ", PYTHONPATH="/some/where")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *("--logger", "crossalign"),
        "--logger-crossalign-results=results/demo",
        "--logger-crossalign-again=make demo",
        "--logger-crossalign-unlock=snakemake --unlock --profile profiles/demo -- 'a b'",
        "--logger-crossalign-after=make publish RUN=demo",
        *words[3:],
    ]
    environment = dict(line.split("=", 1) for line in (folder / "environment").read_text().splitlines() if "=" in line)
    assert environment["PYTHONPATH"].endswith("scripts/logger:/some/where")
    # The note is of this process, and its jobs are known by the token.
    (note,) = (folder / NOTES).glob("*.json")
    assert json.loads(note.read_text())["token"] == environment["CROSSALIGN_RUN"]


@pytest.mark.parametrize("question", ["-n", "--dry-run", "--unlock", "--help"])
def test_questions_are_snakemakes_own(folder, root, question):
    done = start(folder, root, "--", "--profile", "profiles/demo", question)
    assert done.stdout.splitlines() == ["--profile", "profiles/demo", question]
    assert not (folder / NOTES).exists()


def test_a_snakemake_that_is_missing_is_told(folder, root):
    done = start(folder, root, "--", "all", PATH="/nowhere")
    assert done.returncode == 1 and done.stderr == "error: snakemake cannot be started: No such file or directory\n"
