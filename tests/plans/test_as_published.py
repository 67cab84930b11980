"""Numbers are judged again when a model that is pretrained here comes to count as the paper's, or no longer does."""

from tests.reruns import make_outputs, project, run, would_run
from tests.workflow import planned

CONFIG = {"papers": ["anc"], "items": ["anc/table1", "anc/figure4"], "anc": {"norm_models": "pretrain"}}


def test_tables_figures_and_verdicts_are_made_again_and_nothing_else(root, tmp_path):
    folder = project(root, tmp_path / "project", CONFIG)
    assert planned(run(folder, "--touch"))["pretrain"] == 3
    make_outputs(folder)
    assert would_run(folder) == {}
    changes = {"pretrain": {"models": {"scale-pre": {"as_published": False}}}}
    again = dict.fromkeys(("make_table", "make_figure", "make_verdicts", "make_report"), 1)
    assert would_run(folder, changes=changes) == again
