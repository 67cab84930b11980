"""A published run is laid out as results again, and the rules of today say of it what was published."""

import csv
import json
import subprocess
import sys

import pandas as pd
import pytest

from crossalign.results.frames import score_files

PUBLISHED = "docs/notes/small-run/outcome"

# Claims that tell more since the run was published, with what they say now. No verdict is another.
TOLD_SINCE = {
    # Counted in the tables of all tasks: the run has no parsing from Arabic.
    ("align-predict", "sources"): "3 source languages",
    # Read from the settings of all three tasks, with schedule and selection.
    ("align-predict", "warmup"): "warm-up over 10 % of the steps, then linear decay",
    ("align-predict", "epochs-pos-ner"): "best of 3 epochs (POS and NER)",
}


def restore(root, out, *words, published=PUBLISHED):
    command = [sys.executable, "tools/restore_run.py", published, "--configs", "config.small.yaml", "--out", out]
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


def test_a_table_made_again_has_the_published_numbers(root, again, tmp_path):
    command = ["--item", "adjust/table5", "--config", again / "config.json", "--results", again, "--out", tmp_path]
    subprocess.run([sys.executable, "scripts/make_table.py", *command], cwd=root, check=True, capture_output=True)
    made, printed = (
        pd.read_csv(place / "adjust/table5.csv", dtype=str) for place in (tmp_path, root / PUBLISHED / "tables")
    )
    # The config has five seeds, the published table three: the missing ones are named.
    told = ["wanted", "missing", "reason", "verdict"]
    pd.testing.assert_frame_equal(made.drop(columns=told), printed.drop(columns=told))
    assert made["missing"].dropna().str.contains("seed4").any()


def test_scores_are_those_of_the_files(root, again):
    """Whole numbers stay whole, what was not told is not there, and further models stand beside the others."""
    frame = pd.read_parquet(root / PUBLISHED / "scores.parquet")
    address = "tuned/small/adjust-nli-mix_en/ref/seed1"
    scores = json.loads((again / address / "scores.json").read_text())["nli/xnli_es/test"]
    rows = frame.query(f"address == '{address}' and set == 'nli/xnli_es/test'").set_index("metric")
    assert scores["accuracy"] == rows.loc["accuracy", "value"] and scores["accuracy_low"] == rows.loc["accuracy", "low"]
    assert scores["n"] == 5010 and isinstance(scores["n"], int)
    assert "cut_tokens" in scores and "cut_tokens_low" not in scores
    row = {"address": "a", "set": "s", "metric": "F1", "value": 5.0, "low": None, "high": float("nan"), "n": pd.NA}
    assert score_files(pd.DataFrame([row])) == {"a": {"s": {"F1": 5.0}}}


def test_further_seeds_are_added(root, tmp_path):
    """With them the tables have the paper's five seeds, as they stand beside the notes."""
    notes = root / "docs/notes/small-run/more-seeds"
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
        assert made.read_text(encoding="utf-8") == printed.read_text(encoding="utf-8")
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
