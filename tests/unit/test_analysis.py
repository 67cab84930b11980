"""The examples of docs/use/analysis.md run on the results of a demo, and its tables name every column."""

import re

import pandas as pd
import pytest
from tests.unit.made_results import load, make_results

from crossalign.papers.all_items import catalog_of
from crossalign.results.frames import SCORES, SIMILARITY, write_frames


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs/use/analysis.md").read_text(encoding="utf-8")


def test_the_examples(page, root, tmp_path, monkeypatch, capsys):
    config = load(root, "config.yaml", "config/demo.yaml", items=["align-predict/table6", "align-predict/figure1"])
    folder = tmp_path / "results/demo"
    make_results(folder, config)
    runs = set().union(*(catalog_of(config).needs(item).runs for item in config["items"]))
    write_frames(folder, {"align-predict": runs}, ["pud"], folder)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        assert len(block.splitlines()) <= 10
        exec(block, names)
    change, curves = names["change"], names["curves"]
    assert set(change.index) == {"ref", *(f"random-{pair}" for pair in config["align-predict"]["layer_pairs"])}
    # By hand: the mean over the seeds on one set.
    scores = names["scores"].set_index(["init", "set", "metric", "source"]).sort_index()["value"]
    one, ref = (scores[init, "trees/en_pud/test", "LAS", "en"].mean() for init in ("random-1-2", "ref"))
    assert change.loc["random-1-2", "English"] == pytest.approx(one - ref)
    assert change["others"].notna().all()
    assert set(curves["pair"]) == {"en-ru"} and set(curves["address"]) == {"models/mbert"}
    told = capsys.readouterr().out
    assert "random-1-2" in told and "strangers" in told


def test_every_column_is_explained(page):
    explained = {
        name
        for cell in re.findall(r"^\| (`[^|]+`) \|", page, flags=re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    }
    assert explained == {*SCORES, *SIMILARITY}
    assert pd.Index(SCORES).is_unique and pd.Index(SIMILARITY).is_unique
