"""A published run is laid out as results again, and the rules of today say of it what was published."""

import csv
import subprocess
import sys

import pandas as pd
import pytest

PUBLISHED = "docs/results/pretrained-here"
CONFIG = f"{PUBLISHED}/config.yaml"

# Claims that tell more since the run was published, with what they say now. No verdict is another.
TOLD_SINCE = {
    # Counted in the tables of all tasks: the run has no parsing from Arabic.
    ("align-predict", "sources"): "3 source languages",
    # Read from the settings of all three tasks, with schedule and selection.
    ("align-predict", "warmup"): "warm-up over 10 % of the steps, then linear decay",
    ("align-predict", "epochs-pos-ner"): "best of 3 epochs (POS and NER)",
}


def restore(root, out, *words, published=PUBLISHED):
    command = [sys.executable, "tools/restore_run.py", published, "--configs", CONFIG, "--out", out]
    return subprocess.run([*command, *words], cwd=root, capture_output=True, text=True)


@pytest.fixture(scope="module")
def again(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("restored") / "again"
    done = restore(root, out)
    assert done.returncode == 0, done.stderr
    return out


def read_claims(file):
    with file.open(encoding="utf-8") as stream:
        return {(row["paper"], row["id"]): row for row in csv.DictReader(stream)}


def test_the_published_verdicts_are_those_of_the_rules_of_today(root, again):
    """But for claims on files that are not published: the sizes of data sets, and distances."""
    judge = [sys.executable, "scripts/make_verdicts.py", "--config", again / "config.json", "--results", again]
    subprocess.run(judge, cwd=root, check=True, capture_output=True)
    published, judged = read_claims(root / PUBLISHED / "claims.csv"), read_claims(again / "claims.csv")
    assert judged.keys() == published.keys()
    other = {name for name in judged if judged[name]["verdict"] != published[name]["verdict"]}
    lacking = {name for name in judged if " lacks data/" in judged[name]["detail"]}
    lacking |= {name for name in judged if " lacks distances/" in judged[name]["detail"]}
    assert other <= lacking and len(lacking) < 15
    told = {name: published[name]["measured"] for name in judged.keys() - lacking}
    assert TOLD_SINCE.keys() <= told.keys()
    assert {name: judged[name]["measured"] for name in told} == told | TOLD_SINCE


def test_further_seeds_are_added(root, tmp_path):
    """With them the tables have the paper's five seeds, as they stand beside the notes."""
    notes = root / PUBLISHED / "more-seeds"
    done = restore(root, tmp_path / "five", "--more", notes / "scores.parquet")
    assert done.returncode == 0, done.stderr
    addresses = set(pd.read_parquet(notes / "scores.parquet")["address"])
    assert addresses and all((tmp_path / "five" / address / "scores.json").is_file() for address in addresses)
    items = [f"adjust/table{number}" for number in range(2, 8)]
    command = ["--config", tmp_path / "five/config.json", "--results", tmp_path / "five", "--out", tmp_path / "made"]
    make = [sys.executable, "scripts/make_table.py", "--item", *items, *command]
    subprocess.run(make, cwd=root, check=True, capture_output=True)
    for item in items:
        made, printed = (place / f"{item}.csv" for place in (tmp_path / "made", notes / "tables"))
        # What the label was called then.
        then = printed.read_text(encoding="utf-8").replace("model pretrained here", "another model")
        assert made.read_text(encoding="utf-8") == then
        assert set(pd.read_csv(made)["n"].dropna()) == {5}


def test_what_cannot_be_laid_out_is_said(root, tmp_path):
    scores = root / PUBLISHED / "scores.parquet"
    (tmp_path / "there").mkdir()
    for out, words, published, told in (
        ("there", (), PUBLISHED, "there is such a folder already"),
        ("twice", ("--more", scores), PUBLISHED, "an earlier file has"),
        ("empty", (), str(tmp_path), "scores.parquet is not there"),
    ):
        done = restore(root, tmp_path / out, *words, published=published)
        assert done.returncode == 1 and told in done.stderr, done.stderr
    assert not (tmp_path / "twice").exists() and not (tmp_path / "empty").exists()
