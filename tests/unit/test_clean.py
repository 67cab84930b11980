"""`make clean` deletes the demo, and another run only when its name is typed."""

import os
import shutil
import subprocess
import sys

import pytest

from crossalign.runtime.workarounds import LOCKS


@pytest.fixture
def tree(root, tmp_path):
    """Results of three runs, and a copy of what `make clean` needs."""
    for run in ("demo", "demo-2", "paper"):
        (tmp_path / "results" / run).mkdir(parents=True)
        (tmp_path / "results" / run / "a.csv").touch()
    shutil.copy(root / "Makefile", tmp_path)
    shutil.copytree(root / "scripts" / "crossalign" / "runtime", tmp_path / "scripts" / "crossalign" / "runtime")
    shutil.copy(root / "scripts" / "clean.py", tmp_path / "scripts")
    return tmp_path


def runs(tree):
    return sorted(folder.name for folder in (tree / "results").iterdir())


def clean(tree, *words, answer=""):
    # What the user has in the environment of the same name would be taken by make.
    environment = {name: value for name, value in os.environ.items() if name != "RUN"}
    command = ["make", f"PYTHON={sys.executable}", "clean", *words]
    return subprocess.run(command, cwd=tree, input=answer, env=environment, capture_output=True, text=True)


def test_the_demo_alone_is_deleted_without_a_question(tree):
    assert clean(tree).returncode == 0 and runs(tree) == ["demo-2", "paper"]
    assert "results/demo is not there" in clean(tree).stdout


@pytest.mark.parametrize(("answer", "deleted"), [("paper\n", True), ("yes\n", False), ("", False)])
def test_another_run_needs_its_name(tree, answer, deleted):
    done = clean(tree, "RUN=paper", answer=answer)
    assert "type paper to delete results/paper" in done.stdout
    assert (done.returncode == 0) == deleted == ("paper" not in runs(tree))


@pytest.mark.parametrize("name", ["", "..", "paper/tuned", "/tmp"])
def test_only_names_of_runs_are_taken(tree, name):
    done = clean(tree, f"RUN={name}", answer=f"{name}\n")
    assert done.returncode != 0 and len(runs(tree)) == 3
    assert f"RUN={name}: the name of a folder in results/ was expected" in done.stderr


def test_a_link_is_left_to_the_user(tree, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (tree / "results" / "linked").symlink_to(elsewhere)
    assert f"results/linked is a link to {elsewhere}" in clean(tree, "RUN=linked", answer="linked\n").stderr
    assert elsewhere.is_dir()


def test_a_run_at_work_keeps_its_results(tree):
    (tree / LOCKS).mkdir(parents=True)
    (tree / LOCKS / "0.output.lock").write_text("results/demo/a.csv\n")
    assert "results/demo is not deleted: a run works on it" in clean(tree).stderr
    assert clean(tree, "RUN=demo-2", answer="demo-2\n").returncode == 0
    assert runs(tree) == ["demo", "paper"]
