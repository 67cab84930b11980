"""docs/use/partial-reruns.md holds at paper scale: what runs again after a change, by dry run."""

import re

import pytest
import yaml
from tests.recipes import apply, recipes_of
from tests.reruns import as_before, cases, edit, make_outputs, project, run, stated, table, would_run

from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of

# What is complete before each change.
PAPER = {"seeds": [1], "items": [item for item in catalog_of(load([])).items if item != "align-predict/table3"]}

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
    return folder


ROWS = table("At paper scale")
NOTHING = [row for row in ROWS if row[2] == "nothing"]


@pytest.mark.parametrize(("change", "where", "jobs"), cases([row for row in ROWS if row not in NOTHING]))
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


def test_changes_without_effect_and_a_move_run_nothing(paper):
    """All at once."""
    assert len(NOTHING) == 3
    with as_before(*{paper / where.strip("`") for _, where, _ in NOTHING}):
        for change, where, _ in NOTHING:
            edit(paper / where.strip("`"), change)
        moved = paper.rename(paper.with_name("elsewhere, with spaces"))
        try:
            assert would_run(moved) == {}
        finally:
            moved.rename(paper)
