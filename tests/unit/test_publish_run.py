"""The folder that is tracked of a run: small, whole, and never in the place of somebody's files."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def results(tmp_path):
    """A run that has made one table and one figure, and pretrained one model."""
    place = tmp_path / "results"
    files = {
        "report/index.html": "<p>page</p>",
        "findings.csv": "id\n",
        "scores.parquet": "PAR1",
        "coverage.csv": "language\n",
        "plan/sets.tsv": "address\n",
        "plan/real_run.json": "[]",
        "tables/anc/table1.csv": "a\n",
        "tables/anc/table1.tex": "tex",
        "tables/anc/table1.json": "{}",
        "figures/anc/figure1.png": "png",
        "figures/anc/figure1.csv": "b\n",
        "figures/anc/figure1.svg": "svg",
        "tuned/small/pos-en_ewt/ref/seed1/predictions.jsonl.gz": "large",
        "models/small/model.safetensors": "weights",
        "models/small/training.json": json.dumps(
            {"settings": {"steps": 7}, "dev": [{"step": 0, "loss": 9.0}, {"step": 7, "loss": 2.5}], "sha256": "abc"}
        ),
    }
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def publish(root, results, out):
    command = [sys.executable, root / "tools/publish_run.py", "--results", results, "--out", out]
    return subprocess.run(command, capture_output=True, text=True)


def test_only_what_people_read_is_published_and_an_old_folder_is_replaced(root, results, tmp_path):
    out = tmp_path / "docs/outcome"
    for _ in range(2):
        done = publish(root, results, out)
        assert done.returncode == 0, done.stderr
        found = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
        assert found == {
            "report/index.html", "findings.csv", "scores.parquet", "coverage.csv", "models.csv", "published.txt",
            "plan/sets.tsv",
            "tables/anc/table1.csv", "tables/anc/table1.tex",
            "figures/anc/figure1.png", "figures/anc/figure1.csv", "figures/anc/figure1.svg",
        }  # fmt: skip
        assert not list(out.parent.glob(".publish-*"))
        assert (out / "models.csv").read_text().splitlines()[1] == "small,,,7,,2.5,,,,abc"
        (out / "old.txt").write_text("of an earlier run")
    assert "2 tables and figures" in done.stdout


def test_what_others_wrote_is_left_alone_and_a_run_without_a_page_is_told(root, results, tmp_path):
    (tmp_path / "mine").mkdir()
    done = publish(root, results, tmp_path / "mine")
    assert done.returncode == 1 and "did not write" in done.stderr
    (results / "report/index.html").unlink()
    done = publish(root, results, tmp_path / "out")
    assert done.returncode == 1 and "make report" in done.stderr and not (tmp_path / "out").exists()
