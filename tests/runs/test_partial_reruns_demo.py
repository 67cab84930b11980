"""What runs again after a change, done for real in the demo: no more than that, and nothing else is different."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.reruns import as_before, cases, config_files, edit, project, run, would_run
from tests.workflow import planned, shrink_world

pytestmark = pytest.mark.skipif("CROSSALIGN_SLOW" not in os.environ, reason="takes minutes; set CROSSALIGN_SLOW=1")

DEMO = {"items": ["anc/figure3", "adjust/table1"], "anc": {"sentences": 6, "known_languages": ["et", "fr"]}}

END = {"make_verdicts": 1, "make_report": 1}
CASES = [
    ("a comment", "scripts/crossalign/papers/common/draw.py", {}),
    ("a figure's colour", "scripts/crossalign/papers/common/colours.py", {"make_figure": 1} | END),
    ("a claim's tolerance", "resources/papers/tolerances.yaml", END),
    ("the page's style", "resources/report/base.css", {"make_report": 1}),
    (
        "the demo world's seed",
        "resources/demo/world.yaml",
        {"make_world": 1, "download_file": 3, "prepare_parallel": 3, "embed_sentences": 2, "compare_languages": 2}
        | {"make_figure": 1, "gather_results": 1}
        | END,
    ),
]
# What is different after a change.
DIFFERENT = {
    "a comment": set(),
    "a figure's colour": {"svg", "pdf", "png", "html"},
    "a claim's tolerance": {"csv", "json", "html"},
    "the page's style": {"html"},
}


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    """A project with a tiny demo world after one complete run."""
    folder = project(root, tmp_path_factory.mktemp("demo") / "project", DEMO, "config.demo.yaml")
    shrink_world(folder)
    done = run(folder, warm=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All that the tables, figures, verdicts and the page consist of."""
    results = folder / "results" / "demo"
    files = [*results.glob("tables/**/*.*"), *results.glob("figures/**/*.*"), *results.glob("claims.*")]
    return {file.relative_to(results).as_posix(): file.read_bytes() for file in [*files, results / "report/index.html"]}


@pytest.mark.parametrize(("change", "where", "jobs"), cases(CASES))
def test_in_the_demo(demo, change, where, jobs):
    file = demo / where
    if change == "the demo world's seed":
        with as_before(file):
            edit(file, change)
            assert would_run(demo) == jobs
        return
    before, text = contents(demo), file.read_bytes()
    edit(file, change)
    try:
        assert planned(run(demo)) == jobs
        after = contents(demo)
    finally:
        # Written anew: Snakemake looks into a file that is newer than its results, and only then.
        file.write_bytes(text)
    different = {name.rpartition(".")[2] for name in before if after[name] != before[name]}
    assert different == DIFFERENT[change]
    # Back again: the same jobs, and the results of before; the page tells when it was made.
    assert planned(run(demo)) == jobs
    after = contents(demo)
    assert [name for name in before if after[name] != before[name]] in ([], ["report/index.html"])
    assert would_run(demo) == {}


def test_touch_accepts_results_as_they_are(demo):
    module = demo / "scripts" / "crossalign" / "analysis" / "similarity.py"
    edit(module, "code")
    assert set(would_run(demo)) == {
        *("embed_sentences", "compare_languages", "gather_results", "make_figure", "make_verdicts", "make_report")
    }
    before = contents(demo)
    assert run(demo, "--touch").returncode == 0
    assert would_run(demo) == {}
    assert contents(demo) == before


def test_parts_can_be_forced_chosen_and_left_out(demo):
    assert would_run(demo, "--forcerun", "make_table") == {"make_table": 1} | END
    assert would_run(demo, "--forcerun", "make_table", "--until", "make_verdicts") == {
        "make_table": 1, "make_verdicts": 1
    }  # fmt: skip
    assert would_run(demo, "--forcerun", "make_figure", "--omit-from", "make_verdicts") == {"make_figure": 1}
    assert would_run(demo, "--forcerun", "compare_languages") == {
        "embed_sentences": 2, "compare_languages": 2, "gather_results": 1, "make_figure": 1
    } | END  # fmt: skip


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
    assert planned(run(demo, "--rerun-incomplete")) == {"make_figure": 1} | END
    assert figure.read_bytes() == whole
    assert would_run(demo) == {}
