"""The programs that render: one item, many, and the verdicts of all."""

import csv
import json
import subprocess
import sys
from collections import Counter

import pytest
from tests.unit.made_results import load, make_results

from crossalign.papers.all_items import ITEMS
from crossalign.results.published import PAPERS, published
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
    def call(name, *args, config=None):
        command = [sys.executable, str(root / "scripts" / name), *map(str, args)]
        command += ["--config", str(config or results / "merged.json"), "--results", str(results)]
        return subprocess.run(command, capture_output=True, text=True)

    return call


def test_one_table(program, tmp_path):
    paths = [tmp_path / f"t.{form}" for form in ("csv", "tex", "html")]
    options = [part for path in paths for part in (f"--out-{path.suffix[1:]}", path)]
    done = program("make_table.py", "--item", "align-predict/table1", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "align-predict/table1: 18 rows, 0 models not run\n"
    assert all(path.stat().st_size > 1000 for path in paths)


def test_one_figure(program, tmp_path):
    done = program("make_figure.py", "--item", "talk/figure4", "--out-svg", tmp_path / "f.svg")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["f.svg"]


def test_verdicts_of_all_items(program, results, tmp_path):
    assert program("make_table.py", "--all", "--out", results / "tables").returncode == 0
    done = program("make_figure.py", "--all", "--out", results / "figures")
    assert done.returncode == 0, done.stderr
    made = sorted(str(path.relative_to(results)) for path in results.glob("[tf]*s/*/*.*"))
    assert made == [
        *(f"figures/anc/figure2.{form}" for form in ("csv", "pdf", "png", "svg")),
        *(f"figures/talk/figure4.{form}" for form in ("csv", "pdf", "png", "svg")),
        *(f"tables/align-predict/table1.{form}" for form in ("csv", "html", "json", "tex")),
        *(f"tables/anc/table2.{form}" for form in ("csv", "html", "json", "tex")),
    ]
    done = program("make_verdicts.py", "--out", tmp_path / "verdicts.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "verdicts.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert Counter(row["item"] for row in rows) == {"align-predict/table1": 126, "anc/table2": 45, "anc/figure2": 39}
    assert Counter(row["kind"] for row in rows) == {"number": 126, "fact": 45, "reading": 39}
    assert {row["verdict"] for row in rows} <= set(LABELS)
    assert "cell" in rows[0] and any("task=pos; source=ar; target=X" in row["cell"] for row in rows)
    counted = [line for line in done.stdout.splitlines() if line.startswith("numbers ")]
    assert sum(int(line.rpartition(": ")[2]) for line in counted) == len(rows)


def test_items_that_were_not_made_are_not_run(root, tmp_path):
    config = tmp_path / "merged.json"
    config.write_text(json.dumps(load(root)), encoding="utf-8")
    command = [sys.executable, str(root / "scripts/make_verdicts.py"), "--config", str(config)]
    command += ["--results", str(tmp_path), "--out", str(tmp_path / "verdicts.csv")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = sum(len(published(item).rows) for item in ITEMS)
    assert done.stdout.startswith(f"numbers not run: {printed}\nclaims holds: 0\nclaims does not hold: 0\n")
    assert printed == sum(
        len(path.read_text(encoding="utf-8").splitlines()) - 1 for path in PAPERS.glob("*/table*.csv")
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--out", "x"], "error: name the items with --item, or give --all, not both"),
        (
            ["--item", "anc/table9", "--out", "x"],
            "error: --item anc/table9: no such item here; known are align-predict/",
        ),
        (["--item", "anc/table1"], "error: say where to write: --out <folder>"),
        (["--item", "anc/table1", "anc/table2", "--out-csv", "x"], "error: --out-<format> is for a single item"),
    ],
)
def test_wrong_command_lines(program, args, message):
    done = program("make_table.py", *args)
    assert done.returncode == 1 and done.stderr.startswith(message)


def test_wrong_config(program, results, tmp_path):
    done = program("make_table.py", "--all", "--out", "x", config=tmp_path / "none.json")
    assert done.returncode == 1 and "none.json: no config that can be read" in done.stderr
    config = json.loads((results / "merged.json").read_text(encoding="utf-8")) | {"sed": [1]}
    (tmp_path / "wrong.json").write_text(json.dumps(config), encoding="utf-8")
    done = program("make_figure.py", "--all", "--out", "x", config=tmp_path / "wrong.json")
    assert done.returncode == 1 and "unknown key 'sed'; did you mean 'seeds'?" in done.stderr
