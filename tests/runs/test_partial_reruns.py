"""docs/partial-reruns.md holds: what runs again after a change, at paper scale by dry run and in the demo for real."""

import base64
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tests.recipes import apply, copy_repository, recipes
from tests.unit.world_for_tests import SETTINGS, small_override
from tests.workflow import planned, snakemake

from crossalign.items import ITEMS
from crossalign.world.settings import load_settings

pytestmark = pytest.mark.skipif("CROSSALIGN_SLOW" not in os.environ, reason="takes minutes; set CROSSALIGN_SLOW=1")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "partial-reruns.md"

# What is complete before each change of the first table, and of the second.
PAPER = {"seeds": [1], "items": [item for item in ITEMS if item != "align-predict/table3"]}
DEMO = {"items": ["anc/figure3", "adjust/table1"], "anc": {"sentences": 6, "known_languages": ["et", "fr"]}}

# Outputs that are temporary: a complete run does not have them any more.
GONE = re.compile(r"/embeddings/|/(random|grid)-[^/]+/seed\d+/model/")

# How the files of the tables are edited: a text that stands there, and what it becomes.
CODE = ("\n\n\ndef ", "\n\n\nADDED = 1\n\n\ndef ")
EDITS = {
    "a comment": ("\n\n\ndef ", "\n\n\n# Why not?\ndef "),
    "a docstring": ('"""', '"""To begin with: '),
    "a file's checksum": (r"(?m)^(ud/ru_pud/test\.conllu(?:\t[^\t]*){4}\t)[^\t]*", rf"\1sha256:{'0' * 64}"),
    "a figure's colour": ("#0072B2", "#0073B2"),
    "a claim's tolerance": (r"(?m)^(near_zero: \{ value: )0\.1", r"\g<1>0.2"),
    "a printed number": (",74.20,", ",74.30,"),
    "a value read off a figure": (",0.21,", ",0.22,"),
    "the page's style": ("{", "{ /* plain */"),
    "the demo world's seed": (r"(?m)^seed: \d+", "seed: 7"),
}


# What is different after a change of the second table.
DIFFERENT = {
    "a comment": set(),
    "a figure's colour": {"svg", "pdf", "png", "html"},
    "a claim's tolerance": {"csv", "json", "html"},
    "the page's style": {"html"},
}


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of the page: what changes, where, and what runs again."""
    part = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines]
    assert rows[0] == ["change", "where", "runs again"]
    return rows[1:]


def cases(heading: str) -> list:
    """The rows of a table as parameters of a test."""
    return [pytest.param(*row, id=row[0]) for row in table(heading)]


def stated(cell: str) -> dict[str, int]:
    """Jobs by rule, from a cell like: 23 `make_table`, 1 `make_report`."""
    if cell == "nothing":
        return {}
    jobs = re.findall(r"([\d,]+) `(\w+)`", cell)
    assert ", ".join(f"{count} `{rule}`" for count, rule in jobs) == cell, f"no list of jobs: {cell}"
    return {rule: int(count.replace(",", "")) for count, rule in jobs}


def edit(file: Path, change: str) -> None:
    """Make a change of a table in a file."""
    old, new = EDITS.get(change, CODE)
    pattern = old if old.startswith("(?m)") else re.escape(old)
    text = file.read_text(encoding="utf-8")
    edited = re.sub(pattern, new, text, count=1)
    assert edited != text, f"{file.name} has nothing like {old}"
    file.write_text(edited, encoding="utf-8")


@contextmanager
def as_before(*files: Path):
    """Whatever happens to these files inside, afterwards they are as they were, and as old."""
    saved = [(file, file.read_bytes(), file.stat()) for file in files]
    try:
        yield
    finally:
        for file, content, status in saved:
            file.write_bytes(content)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def run(folder: Path, *arguments: str, changes: dict | None = None, warm: bool = False):
    """Run the workflow of a project; `changes` come on top of its config."""
    (folder / "changes.json").write_text(json.dumps(changes or {}), encoding="utf-8")
    files = [str(folder / name) for name in (*config_files(folder), "changes.json")]
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--configfile", *files]
    return snakemake(folder, folder, *settings, *arguments, "--", "all", warm=warm)


def config_files(folder: Path) -> list[str]:
    return json.loads((folder / "files.json").read_text(encoding="utf-8"))


def would_run(folder: Path, *arguments: str, changes: dict | None = None) -> dict[str, int]:
    return planned(run(folder, "--dry-run", *arguments, changes=changes))


def project(root: Path, folder: Path, config: dict, *files: str) -> Path:
    """A copy of the repository with a config of its own."""
    folder.mkdir()
    copy_repository(root, folder)
    (folder / "own.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "files.json").write_text(json.dumps([*files, "own.json"]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def paper(root, tmp_path_factory):
    """A project whose run is complete as far as Snakemake can tell: every job on record, empty files for results."""
    folder = project(root, tmp_path_factory.mktemp("paper") / "project", PAPER)
    # There is no output yet: touching puts the jobs on record and is done in seconds.
    done = run(folder, "--touch", "--cores", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    records, now = folder / ".snakemake" / "metadata", time.time()
    for record in (file for file in records.rglob("*") if file.is_file()):
        # A long name is spread over folders that begin with @.
        key = record.relative_to(records).as_posix().replace("@", "").replace("/", "")
        output = folder / base64.urlsafe_b64decode(key).decode()
        if not GONE.search(output.as_posix()):
            output.parent.mkdir(parents=True, exist_ok=True)
            output.touch()
            os.utime(output, (now, now))
    assert sum(1 for file in folder.glob("results/paper/**/*") if file.is_file()) > 1000
    assert would_run(folder) == {}
    return folder


@pytest.mark.parametrize(("change", "where", "jobs"), cases("At paper scale"))
def test_at_paper_scale(paper, change, where, jobs):
    place = yaml.safe_load(where.strip("`")) if where.startswith("`") else None
    if isinstance(place, dict):
        assert would_run(paper, changes=place) == stated(jobs)
    elif place is not None:
        with as_before(paper / place):
            edit(paper / place, change)
            assert would_run(paper) == stated(jobs)
    else:
        heading = re.fullmatch(r"\[(.+)\]\(extending\.md#[a-z-]+\)", where)[1]
        steps = recipes((paper / "docs" / "extending.md").read_text(encoding="utf-8"))[heading]
        files = {paper / step.file for step in steps if step.file}
        with as_before(*sorted(files)):
            apply(steps, paper)
            assert would_run(paper) == stated(jobs)


def test_lost_results_are_made_again_when_they_are_needed(paper):
    # The model of the first is kept; the second's, with random layers, is not, and its vectors were taken as well.
    tuned, table8 = "results/paper/tuned/mbert/ner-wikiann_en", paper / "results/paper/tables/align-predict/table8.csv"
    lost = [paper / tuned / init / "seed1" / "scores.json" for init in ("ref", "random-1-2")]
    with as_before(*lost, table8):
        for score in lost:
            score.unlink()
        assert would_run(paper) == {}
        table8.unlink()
        jobs = would_run(paper)
    assert (jobs["evaluate"], jobs["finetune_random"]) == (2, 1)
    assert "finetune" not in jobs
    assert jobs["embed_sentences"] == jobs["compare_languages"] == 1


def test_a_moved_project_has_nothing_to_do(paper):
    moved = paper.rename(paper.with_name("elsewhere, with spaces"))
    try:
        assert would_run(moved) == {}
    finally:
        moved.rename(paper)


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    """A project with a tiny demo world after one complete run."""
    folder = project(root, tmp_path_factory.mktemp("demo") / "project", DEMO, "config.demo.yaml")
    settings = yaml.safe_dump(load_settings(SETTINGS, small_override()), allow_unicode=True, sort_keys=False)
    (folder / "resources" / "demo" / "world.yaml").write_text(settings, encoding="utf-8")
    done = run(folder, warm=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All that the tables, figures, verdicts and the page consist of."""
    results = folder / "results" / "demo"
    files = [*results.glob("tables/**/*.*"), *results.glob("figures/**/*.*"), *results.glob("claims.*")]
    return {file.relative_to(results).as_posix(): file.read_bytes() for file in [*files, results / "report/index.html"]}


@pytest.mark.parametrize(("change", "where", "jobs"), cases("In the demo"))
def test_in_the_demo(demo, change, where, jobs):
    file = demo / where.strip("`")
    if change == "the demo world's seed":
        with as_before(file):
            edit(file, change)
            assert would_run(demo) == stated(jobs)
        return
    before, text = contents(demo), file.read_bytes()
    edit(file, change)
    try:
        assert planned(run(demo)) == stated(jobs)
        after = contents(demo)
    finally:
        # Written anew: Snakemake looks into a file that is newer than its results, and only then.
        file.write_bytes(text)
    different = {name.rpartition(".")[2] for name in before if after[name] != before[name]}
    assert different == DIFFERENT[change]
    # Back again: the same jobs, and the results of before; the page tells when it was made.
    assert planned(run(demo)) == stated(jobs)
    after = contents(demo)
    assert [name for name in before if after[name] != before[name]] in ([], ["report/index.html"])
    assert would_run(demo) == {}


def test_touch_accepts_results_as_they_are(demo):
    module = demo / "scripts" / "crossalign" / "analysis" / "similarity.py"
    edit(module, "code")
    assert set(would_run(demo)) == {
        *("embed_sentences", "compare_languages", "make_figure", "make_verdicts", "make_report")
    }
    before = contents(demo)
    assert run(demo, "--touch").returncode == 0
    assert would_run(demo) == {}
    assert contents(demo) == before


def test_parts_can_be_forced_chosen_and_left_out(demo):
    end = {"make_verdicts": 1, "make_report": 1}
    assert would_run(demo, "--forcerun", "make_table") == {"make_table": 1} | end
    assert would_run(demo, "--forcerun", "make_table", "--until", "make_verdicts") == {
        "make_table": 1, "make_verdicts": 1
    }  # fmt: skip
    assert would_run(demo, "--forcerun", "make_figure", "--omit-from", "make_verdicts") == {"make_figure": 1}
    assert would_run(demo, "--forcerun", "compare_languages") == {
        "embed_sentences": 2, "compare_languages": 2, "make_figure": 1
    } | end  # fmt: skip


def test_a_result_edited_by_hand_is_drawn_again_but_not_computed_again(demo):
    score = demo / "results/demo/similarity/models/mbert/xnliext.csv"
    with as_before(score):
        score.write_text(score.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        assert would_run(demo) == {"make_figure": 1, "make_verdicts": 1, "make_report": 1}


def test_a_killed_run_is_found_again(demo):
    figure = demo / "results/demo/figures/anc/figure3.svg"
    whole = figure.read_bytes()
    # In the place of Python: leaves half a figure, tells its number, and never ends.
    stand_in = demo / "stuck" / "python"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\necho half > '{figure}'\necho $$ > begun\nexec sleep 600\n", encoding="utf-8")
    stand_in.chmod(0o755)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    files = [str(demo / name) for name in (*config_files(demo), "changes.json")]
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--forcerun", "make_figure", "--configfile", *files]
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    killed = subprocess.Popen([*command, "--", "all"], cwd=demo, env=os.environ | {"PATH": path}, **quiet)
    begun, end = demo / "begun", time.monotonic() + 120
    while not (begun.is_file() and begun.read_text().endswith("\n")):
        assert killed.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    killed.kill()
    killed.wait()
    os.kill(int(begun.read_text()), 9)
    assert figure.read_bytes() != whole
    refused = run(demo, "--rerun-incomplete")
    assert refused.returncode != 0 and "--unlock" in refused.stdout + refused.stderr
    assert run(demo, "--unlock").returncode == 0
    refused = run(demo)
    assert refused.returncode != 0 and "--rerun-incomplete" in refused.stdout + refused.stderr
    again = {"make_figure": 1, "make_verdicts": 1, "make_report": 1}
    assert planned(run(demo, "--rerun-incomplete")) == again
    assert figure.read_bytes() == whole
    assert would_run(demo) == {}
