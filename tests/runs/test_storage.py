"""Results may lie in remote storage: two items, made with nothing but what their jobs declare."""

import csv
import importlib.util
import os

import pytest
from tests.workflow import copy_project, run_project

pytestmark = [
    pytest.mark.skipif("CROSSALIGN_SLOW" not in os.environ, reason="takes minutes; set CROSSALIGN_SLOW=1"),
    pytest.mark.skipif(
        importlib.util.find_spec("snakemake_storage_plugin_fs") is None,
        reason="no storage: snakemake-storage-plugin-fs is not installed",
    ),
]

ITEMS = {"items": ["anc/figure3", "adjust/table1"], "anc": {"sentences": 6, "known_languages": ["et", "fr"]}}


def test_two_items_in_a_store(root, tmp_path):
    project, store = tmp_path / "project", tmp_path / "store"
    copy_project(root, project)
    storage = ["--default-storage-provider", "fs", "--default-storage-prefix", str(store)]
    storage += ["--local-storage-prefix", str(tmp_path / "local")]
    storage += ["--shared-fs-usage", "persistence", "sources", "source-cache", "software-deployment"]
    done = run_project(project, ITEMS, ["anc", "adjust"], *storage)
    assert done.returncode == 0, done.stdout + done.stderr
    with (store / "results/demo/figures/anc/figure3.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows and not any(row["missing"] for row in rows)
    assert (store / "results/demo/tables/adjust/table1.html").is_file()
    # Nothing is left where a shared file system would have it, but the demo world's mirror and logs.
    assert not list((project / "results").rglob("*.csv"))
    again = run_project(project, ITEMS, ["anc", "adjust"], "--dry-run", *storage)
    assert "Nothing to be done" in again.stdout + again.stderr
