"""docs/use/partial-reruns.md holds at paper scale: what runs again after a change, by dry run."""

import os
import re

import pytest
import yaml
from tests.recipes import apply, recipes_of
from tests.reruns import as_before, cases, edit, make_outputs, project, run, stated, table, would_run

from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of

pytestmark = pytest.mark.skipif("CROSSALIGN_SLOW" not in os.environ, reason="takes minutes; set CROSSALIGN_SLOW=1")

# What is complete before each change.
PAPER = {"seeds": [1], "items": [item for item in catalog_of(load([])).items if item != "align-predict/table3"]}

# Beside the page's.
END = "1 `make_verdicts`, 1 `make_report`"
CASES = [
    ("a docstring", "`scripts/finetune.py`", "nothing"),
    ("a value read off a figure", "`resources/papers/anc/figure_readings.csv`", f"9 `make_figure`, {END}"),
    ("code of tables", "`scripts/crossalign/papers/common/table.py`", f"23 `make_table`, 24 `make_figure`, {END}"),
    ("why a claim fails", "`reasons: {anc/anc-deep: its layers are flat}`", END),
    ("why an item is left out", "`skip: {align-predict/table3: its language has no test set}`", "1 `make_report`"),
    (
        "directions of SVCCA",
        "`similarity: {svcca_directions: 30}`",
        f"1 `embed_sentences`, 1 `compare_languages`, 4 `make_figure`, 1 `gather_results`, {END}",
    ),
    (
        "one more size",
        "`adjust: {sizes: {pairs: [5k, 10k, 30k, 50k, 100k, 250k]}}`",
        f"1 `adjust_model`, 3 `finetune`, 3 `evaluate`, 9 `make_table`, 2 `make_figure`, 1 `gather_results`, {END}",
    ),
]

# Outputs that are temporary: a complete run does not have them any more.
GONE = re.compile(r"/embeddings/|/(random|grid)-[^/]+/seed\d+/model/")


@pytest.fixture(scope="module")
def paper(root, tmp_path_factory):
    """A project whose run is complete as far as Snakemake can tell: every job on record, empty files for results."""
    folder = project(root, tmp_path_factory.mktemp("paper") / "project", PAPER)
    # There is no output yet: touching puts the jobs on record and is done in seconds.
    done = run(folder, "--touch", "--cores", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    make_outputs(folder, GONE)
    assert sum(1 for file in folder.glob("results/paper/**/*") if file.is_file()) > 1000
    assert would_run(folder) == {}
    return folder


@pytest.mark.parametrize(("change", "where", "jobs"), cases([*table("At paper scale"), *CASES]))
def test_at_paper_scale(paper, change, where, jobs):
    place = yaml.safe_load(where.strip("`")) if where.startswith("`") else None
    if isinstance(place, dict):
        assert would_run(paper, changes=place) == stated(jobs)
    elif place is not None:
        with as_before(paper / place):
            edit(paper / place, change)
            assert would_run(paper) == stated(jobs)
    else:
        steps = recipes_of(paper)[re.fullmatch(r"\[(.+)\]\(\.\./extend/[a-z]+\.md\)", where)[1]]
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
