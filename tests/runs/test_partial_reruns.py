"""What would run again after a change, in a demo that is complete: no more than docs/use/partial-reruns.md says."""

import os
import re

import pytest
from tests.reruns import project, run, would_run
from tests.workflow import shrink_world

CONFIG = {
    "extends": "config.demo.yaml",
    "items": ["anc/figure3", "adjust/table1"],
    "anc": {"sentences": 6, "known_languages": ["et", "fr"]},
}
CODE = (r"(?m)\n\n\n(?=@|def |class )", "\n\n\nADDED = 1\n\n\n")
END = {"make_verdicts": 1, "make_report": 1}
COMPARED = {"embed_sentences": 2, "compare_languages": 2, "make_figure": 1, "gather_results": 1} | END
CASES = {
    "scripts/crossalign/papers/common/draw.py": (r"(?m)\n\n\n(?=@|def |class )", "\n\n\n# Why not?\n", {}),
    "scripts/crossalign/papers/common/colours.py": ("#0072B2", "#0073B2", {"make_figure": 1} | END),
    "scripts/crossalign/analysis/similarity.py": (*CODE, COMPARED),
    "scripts/crossalign/engine/steps.py": (*CODE, {}),
    "resources/papers/tolerances.yaml": (r"(?m)^(near_zero: \{ value: )0\.1", r"\g<1>0.2", END),
    "resources/report/base.css": (r"\{", "{ /* plain */", {"make_report": 1}),
    "resources/demo/world.yaml": (
        r"(?m)^seed: \d+",
        "seed: 7",
        {"make_world": 1, "download_file": 3, "prepare_parallel": 3} | COMPARED,
    ),
}


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    """A project with a tiny demo world after one complete run."""
    folder = project(root, tmp_path_factory.mktemp("demo") / "project", CONFIG)
    shrink_world(folder)
    done = run(folder, warm=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("where", CASES)
def test_only_what_depends_on_a_file_runs_again(demo, where):
    old, new, jobs = CASES[where]
    file = demo / where
    text, status = file.read_text(encoding="utf-8"), file.stat()
    try:
        edited = re.sub(old, new, text, count=1)
        assert edited != text
        file.write_text(edited, encoding="utf-8")
        assert would_run(demo) == jobs
    finally:
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        ({}, {}),
        ({"reasons": {"anc/anc-deep": "its layers are flat"}}, END),
        ({"finetune": {"pos": {"epochs": 7}}}, {}),
        ({"similarity": {"svcca_directions": 3}}, COMPARED),
    ],
    ids=["nothing", "a reason", "a setting of others", "a setting"],
)
def test_only_what_uses_a_key_runs_again(demo, changes, jobs):
    assert would_run(demo, changes=changes) == jobs


def test_a_moved_project_has_nothing_to_do(demo):
    moved = demo.rename(demo.with_name("elsewhere, with spaces"))
    try:
        assert would_run(moved) == {}
    finally:
        moved.rename(demo)
