"""The programs that render: one item, many, the verdicts of all, and the tidy files."""

import csv
import json
import subprocess
import sys
from collections import Counter

import pytest
from tests.unit.made_results import load, make_results

from crossalign.papers.all_items import ITEMS
from crossalign.results.published import PRINTED, published
from crossalign.results.verdict import LABELS


@pytest.fixture(scope="module")
def results(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    config = load(root, items=["align-predict/table1", "anc/table2", "anc/figure2", "talk/figure4"])
    (folder / "merged.json").write_text(json.dumps(config), encoding="utf-8")
    make_results(folder, config)
    return folder


@pytest.fixture
def program(root, results):
    def call(name, *args, config=None, folder=results):
        command = [sys.executable, str(root / "scripts" / name), *map(str, args)]
        command += ["--config", str(config or folder / "merged.json"), "--results", str(folder)]
        return subprocess.run(command, capture_output=True, text=True)

    return call


def test_verdicts_of_all_items(program, results, tmp_path):
    assert program("make_table.py", "--all", "--out", results / "tables").returncode == 0
    done = program("make_figure.py", "--all", "--out", results / "figures")
    assert done.returncode == 0, done.stderr
    forms = {"figures": ["csv", "pdf", "png", "svg"], "tables": ["csv", "html", "json", "tex"]}
    items = {"figures": ["anc/figure2", "talk/figure4"], "tables": ["align-predict/table1", "anc/table2"]}
    made = {str(path.relative_to(results)) for path in results.glob("[tf]*s/*/*.*")}
    assert made == {f"{kind}/{item}.{form}" for kind in forms for item in items[kind] for form in forms[kind]}
    done = program("make_verdicts.py", "--out", tmp_path / "verdicts.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "verdicts.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    counts = {("align-predict/table1", "number"): 126, ("anc/table2", "fact"): 45, ("anc/figure2", "reading"): 39}
    assert Counter((row["item"], row["kind"]) for row in rows) == counts
    assert {row["verdict"] for row in rows} <= set(LABELS)
    assert any("task=pos; source=ar; target=X" in row["cell"] for row in rows)
    counted = done.stdout.splitlines()
    assert sum(int(line.rpartition(": ")[2]) for line in counted) == len(rows)


def test_items_that_were_not_made_are_not_run(program, root, tmp_path):
    (tmp_path / "merged.json").write_text(json.dumps(load(root)), encoding="utf-8")
    done = program("make_verdicts.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    tables = list(map(published, ITEMS))
    printed = sum(len([*table.rest()]) for table in tables)
    assert done.stdout.startswith(f"not run: {printed}\n")
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in PRINTED.glob("*/table*.csv")]
    # Each language of talk/table3 has three facts.
    assert printed == sum(lines) - len(lines) + 2 * len(published("talk/table3").rows)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--out", "x"], "name the items with --item, or give --all, not both"),
        (["--item", "anc/table9", "--out", "x"], "--item anc/table9: no such item here; known are align-predict/"),
        (["--item", "anc/table1"], "say where to write: --out <folder>"),
        (["--item", "anc/table1", "anc/table2", "--out-csv", "x"], "--out-<format> is for a single item"),
    ],
)
def test_wrong_command_lines(program, args, message):
    done = program("make_table.py", *args)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {message}")


def test_wrong_config(program, results, tmp_path):
    done = program("make_table.py", "--all", "--out", "x", config=tmp_path / "none.json")
    assert done.returncode == 1 and "none.json: no config that can be read" in done.stderr
    config = json.loads((results / "merged.json").read_text(encoding="utf-8")) | {"sed": [1]}
    (tmp_path / "wrong.json").write_text(json.dumps(config), encoding="utf-8")
    done = program("make_figure.py", "--all", "--out", "x", config=tmp_path / "wrong.json")
    assert done.returncode == 1 and "unknown key 'sed'; did you mean 'seeds'?" in done.stderr
