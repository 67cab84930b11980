"""A labelled set of the hub through the workflow: fetched, prepared, learnt from and tested on in two languages."""

import json
import re

import pyarrow
import pyarrow.parquet
from tests.workflow import planned, snakemake

from crossalign.fetch.lock import read_lock

pytest_plugins = ("tests.http_server",)

COMMIT = "1" * 40
HUB = "own/kinds"


def table(words, count):
    """Sentences of some words; those that begin with b are entities."""
    rows = [[words[(i + j) % len(words)] for j in range(4)] for i in range(count)]
    sink = pyarrow.BufferOutputStream()
    tags = [["B-KIND" if word[0] == "b" else "O" for word in row] for row in rows]
    pyarrow.parquet.write_table(pyarrow.table({"words": rows, "kinds": tags}), sink)
    return sink.getvalue().to_pybytes()


def told(done):
    """The licences, each with its number of files, of what a run says that it is going to fetch."""
    found = re.search(
        r"Licences of what is going to be downloaded:\nlicence.*\n((?:\S+ +\d+ .*\n?)+)", done.stdout + done.stderr
    )
    return found and " ".join(" ".join(line.split()[:2]) for line in found[1].splitlines())


def test_a_set_of_the_hub_is_a_source_and_a_target(web, root, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    files = {
        "data/en/train-0.parquet": table(["ba", "bo", "bu", "da", "do"], 60),
        "data/en/test-0.parquet": table(["ba", "bo", "da"], 10),
        "data/de/test-0.parquet": table(["bu", "do", "bo"], 10),
        "kinds.py": b"raise SystemExit('a loading script')",
    }
    web.publish("datasets", HUB, COMMIT, files, ("main",))
    entry = {"hub": HUB, "revision": "main", "task": "ner", "languages": ["en", "de"], "licence": "CC0-1.0"}
    entry |= {"splits": {split: f"data/{{lang}}/{split}-*" for split in ("train", "test")}}
    entry |= {"columns": {"tokens": "words", "tags": "kinds"}, "labels": ["O", "B-KIND"]}
    config = {
        "run": "mine",
        "models": "resources/demo/models",
        "downloads": {"folder": str(tmp_path / "downloads"), "lock": str(tmp_path / "lock.tsv")},
        "datasets": {"kinds": entry},
        "finetune": {"ner": {"batch": 8, "learning_rate": 2e-3, "epochs": 2, "selection": "last", "max_length": 32}},
    }
    target = "results/mine/tuned/mbert/ner-kinds_en/ref/seed1/scores.json"
    flags = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--show-failed-logs"]
    done = snakemake(root, tmp_path, *flags, "--", target, config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    scores = json.loads((tmp_path / target).read_text())
    assert sorted(scores) == ["ner/kinds_de/test", "ner/kinds_en/test"]
    assert all(values["F1"] > 90 and values["n"] == 10 for values in scores.values())
    # What is told is what this target needs, and not all of the papers.
    assert told(done) == "CC0-1.0 3"
    assert {row.version for row in read_lock(tmp_path / "lock.tsv").values()} == {f"main@{COMMIT}"}
    # Only the download stage asked the hub, and for tables only.
    asked = {asked.path for asked in web.asked if not asked.path.startswith(f"/api/datasets/{HUB}/revision/")}
    assert asked == {f"/datasets/{HUB}/resolve/{COMMIT}/{name}" for name in files if name.endswith(".parquet")}
    # Nothing is fetched again because it is gone, and so nothing is told.
    (tmp_path / "downloads").rename(tmp_path / "away")
    (tmp_path / target).unlink()
    done = snakemake(root, tmp_path, *flags, "--", target, config=config)
    assert done.returncode == 0 and (tmp_path / target).exists() and told(done) is None
    (tmp_path / "away").rename(tmp_path / "downloads")
    # Other names of the labels prepare all again, and train; nothing is fetched.
    config["datasets"]["kinds"]["labels"] = {"O": "O", "B-KIND": "B-THING"}
    again = planned(
        snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--quiet", "rules", "--", target, config=config)
    )
    assert again == {"prepare_ner": 3, "finetune": 1, "evaluate": 1}
    # A split that the set lacks is told.
    dev = "results/mine/data/ner/kinds_de/dev.jsonl"
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--", dev, config=config)
    assert (
        done.returncode and "datasets.kinds.splits: no 'dev', which is needed of kinds_de" in done.stdout + done.stderr
    )
