"""`make clean` deletes the demo, and another run only when its name is given twice."""

import base64
import os
import pty
import shutil
import subprocess
import sys

import pytest

FILES = ("results/demo/a.csv", "results/demo-2/a.csv", "results/paper/tuned/weights", "results/paper/b.csv")


def record(kind, path):
    name = base64.urlsafe_b64encode(path.encode()).decode()
    parts = [name[start : start + 254] for start in range(0, len(name), 254)]
    return "/".join([".snakemake", kind, *(f"@{part}" for part in parts[:-1]), parts[-1]])


@pytest.fixture
def tree(root, tmp_path):
    """Results of three runs with Snakemake's records, and a copy of what `make clean` needs."""
    long = f"results/paper/{'x' * 300}.csv"
    for file in (
        *FILES,
        *(record("metadata", path) for path in (*FILES, long)),
        *(record("incomplete", path) for path in FILES),
        ".snakemake/log/a.log",
        "resources/downloads/corpus",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x" * 5000)
    shutil.copy(root / "Makefile", tmp_path)
    shutil.copytree(root / "scripts" / "crossalign" / "runtime", tmp_path / "scripts" / "crossalign" / "runtime")
    shutil.copy(root / "scripts" / "clean.py", tmp_path / "scripts")
    return tmp_path


def contents(folder):
    kept = ("results", ".snakemake", "resources")
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir()}
    return {file for file in files if file.startswith(kept)}


def clean(tree, *words, stdin=subprocess.DEVNULL):
    # What the user has in the environment of the same name would be taken by make.
    environment = {name: value for name, value in os.environ.items() if name not in ("RUN", "CONFIRM")}
    command = ["make", f"PYTHON={sys.executable}", "clean", *words]
    return subprocess.run(command, cwd=tree, stdin=stdin, env=environment, capture_output=True, text=True)


def gone(path):
    return {path, record("metadata", path), record("incomplete", path)}


def test_the_demo_alone_is_deleted(tree):
    before = contents(tree)
    done = clean(tree)
    assert done.returncode == 0, done.stderr
    assert before - contents(tree) == gone("results/demo/a.csv")
    assert "results/demo is deleted, with 2 records" in done.stdout
    assert "results/demo is not there" in clean(tree).stdout


@pytest.mark.parametrize("words", [["RUN=paper"], ["RUN=paper", "CONFIRM=demo"]])
def test_another_run_is_not_deleted_where_nobody_can_be_asked(tree, words):
    before = contents(tree)
    done = clean(tree, *words)
    assert done.returncode != 0
    assert "results/paper (" in done.stderr
    assert "make clean RUN=paper CONFIRM=paper" in done.stderr
    assert contents(tree) == before


def test_another_run_is_deleted_when_its_name_is_given_twice(tree):
    before = contents(tree)
    assert clean(tree, "RUN=paper", "CONFIRM=paper").returncode == 0
    left = contents(tree)
    assert not any(file.startswith("results/paper/") for file in left)
    long = record("metadata", f"results/paper/{'x' * 300}.csv")
    assert before - left == {long}.union(*(gone(path) for path in FILES if path.startswith("results/paper/")))
    assert not (tree / long).parent.exists()


@pytest.mark.parametrize(("answer", "deleted"), [("paper", True), ("yes", False), ("", False)])
def test_a_user_is_asked(tree, answer, deleted):
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = clean(tree, "RUN=paper", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert "type paper to delete results/paper (" in done.stdout
    assert (done.returncode == 0) == deleted
    assert (tree / "results" / "paper").exists() != deleted


@pytest.mark.parametrize("name", ["", "..", "paper/tuned", "../other", "/tmp"])
def test_only_names_of_runs_are_taken(tree, name):
    before = contents(tree)
    done = clean(tree, f"RUN={name}", f"CONFIRM={name}")
    assert done.returncode != 0
    assert f"RUN={name}: the name of a folder in results/ was expected" in done.stderr
    assert contents(tree) == before


def test_a_link_is_left_to_the_user(tree, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (tree / "results" / "linked").symlink_to(elsewhere)
    done = clean(tree, "RUN=linked", "CONFIRM=linked")
    assert f"results/linked is a link to {elsewhere}" in done.stderr
    assert elsewhere.is_dir()


def test_a_run_at_work_keeps_its_results(tree):
    (tree / ".snakemake" / "locks").mkdir()
    (tree / ".snakemake" / "locks" / "0.output.lock").write_text("results/demo/a.csv\n")
    # As a Snakemake looks to others: its command line and its folder.
    (tree / "snakemake").write_text("import sys; print('here', flush=True); sys.stdin.read()")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "snakemake"], cwd=tree, **pipes)
    try:
        process.stdout.readline()
        done = clean(tree)
        assert "results/demo is not deleted: a run works on it, or may. Another Snakemake works" in done.stderr
        assert str(process.pid) in done.stderr
        assert clean(tree, "RUN=demo-2", "CONFIRM=demo-2").returncode == 0
    finally:
        process.kill()
        process.communicate()
    assert (tree / "results" / "demo" / "a.csv").exists()
