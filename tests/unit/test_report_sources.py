"""What the page knows of a run: curves, provenance, place and time."""

import json
import os
import subprocess
from datetime import UTC, datetime

import pytest
from tests.made_report import make_run

from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.checksums import known_checksums
from crossalign.papers.all_items import catalog_of
from crossalign.report import machine
from crossalign.report.curves import gather_curves
from crossalign.report.gather import gather_readings
from crossalign.report.provenance import Sources, full_record
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    """A demo run: its config and the folder of its results."""
    folder = tmp_path_factory.mktemp("run")
    config = make_run(folder, root, ["align-predict/table6", "anc/figure1"])
    return config, folder / "results" / "demo"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def test_curves_are_means_over_seeds_and_stand_beside_those_under_controls(tmp_path):
    """What is no number is left out, and so are models and seeds of an earlier config."""
    head, old = "pair,layer,index,control,value,sampling,lead_sampling\n", "pair,layer,index,value\n"
    tuned = [Tuned("mbert", "ner", "wikiann_en", "ref", seed) for seed in (1, 2, 3)]
    for run, text in {
        tuned[0]: head + "en-ru,0,cka,none,0.2,0.01,0\nen-ru,0,cka,strangers,-0.1,,\nen-ru,2,cka,none,0.5,,\n",
        tuned[1]: head + "en-ru,0,cka,none,0.4,0.01,0\nen-ru,0,cka,strangers,-0.3,,\nen-ru,2,cka,none,nan,,\n",
        tuned[2]: old + "en-ru,0,cka,0.9\n",
        Base("mbert"): head + "en-ru,1,cka,length,0.5,,\nen-ru,1,anc,none,0.25,,\n",
        Base("plain"): old + "en-ru,0,cka,0.7\n",
        Base("dropped"): old + "en-ru,0,cka,0.9\n",
    }.items():
        write(tmp_path / "similarity" / run.path() / "pud.csv", text)
    found = gather_curves(tmp_path, {*tuned[:2], Base("mbert"), Base("plain")})
    base, plain, fine = found["corpora"][0]["models"]
    assert fine["seeds"] == 2 and fine["curves"] == {"cka": {"en-ru": [3000, None, 5000]}}
    assert fine["controls"] == {"strangers": {"cka": {"en-ru": [-2000]}}}
    assert base["curves"] == {"anc": {"en-ru": [None, 2500]}}
    assert base["controls"] == {"length": {"cka": {"en-ru": [None, 5000]}}}
    assert plain["curves"] == {"cka": {"en-ru": [7000]}} and "controls" not in plain
    assert list(found["controls"]) == ["none", "strangers", "length"]


def test_readings_are_the_points_beside_which_something_is_printed(run):
    (panel,) = gather_readings(run[1] / "figures/anc/figure1.csv")
    assert [len(series["points"]) for series in panel["series"]] == [13]
    assert panel["series"][0]["points"][0] == ["0", 0.5, 0.45, "close"]


def test_provenance_of_an_item(run):
    config, results = run
    found = Sources(catalog_of(config), results).of("align-predict/table6")
    # Two sources, four initialisations, two seeds; two of these are there, each with two seeds.
    assert (len(found.runs), len(found.made)) == (16, 4)
    assert found.seeds == [1, 2]
    assert found.devices == {"NVIDIA H200": 4}
    assert found.seconds == pytest.approx(362)
    assert found.versions == ["torch 2.13.0"]
    assert "ud/en_ewt/train.conllu" in found.data and not any("ner/" in path for path in found.data)
    assert found.settings == ["seeds", "align-predict", "finetune.defaults", "finetune.parsing"]
    assert found.inputs == [f"tuned/mbert/parsing-en_ewt/{init}/seed{seed}/scores.json"
                            for init in ("random-1-2", "ref") for seed in (1, 2)]  # fmt: skip


def test_the_record_has_the_checksum_of_every_result_behind_an_item(run):
    config, results = run
    found = [Sources(catalog_of(config), results).of("align-predict/table6")]
    record = full_record(found, results, {"ud/en_ewt/train.conllu": "sha256:00"}, "abc", config)
    assert record["data"]["ud/en_ewt/train.conllu"] == "sha256:00"
    assert all(len(digest) == 64 for digest in record["inputs"].values()) and len(record["inputs"]) == 4
    assert record["runs"]["tuned/mbert/parsing-en_ewt/ref/seed1"]["device"] == "NVIDIA H200"
    assert record["commit"] == "abc"
    assert record["config"].keys() == config.keys() - {"downloads"}
    json.dumps(record, allow_nan=False)


def test_training_facts_that_are_broken_are_named_and_those_of_the_wrong_kind_left_out(run, tmp_path):
    address = "tuned/mbert/parsing-en_ewt/ref/seed1"
    write(tmp_path / address / "training.json", '{"seconds": "long", "device": 3, "versions": []}')
    found = Sources(catalog_of(run[0]), tmp_path).of("align-predict/table6")
    assert found.made[address] == {"seed": 1}
    assert (found.devices, found.seconds, found.versions) == ({}, 0, [])
    write(tmp_path / address / "training.json", "{")
    with pytest.raises(UserError, match=r"training\.json: no JSON that can be read .* delete it and make it again"):
        Sources(catalog_of(run[0]), tmp_path).of("align-predict/table6")


def test_checksums_of_the_demo_world_of_the_lock_and_of_the_register(run, tmp_path):
    config = run[0]
    dev = "ud/en_ewt/dev.conllu"
    write(tmp_path / "results/demo/mirror/SHA256SUMS", f"11  ud/en_ewt/train.conllu\n22  {dev}\n")
    assert known_checksums(config, tmp_path) == {"ud/en_ewt/train.conllu": "sha256:11", dev: "sha256:22"}
    locked = "\t".join((dev, "2.4", "7", "3" * 64, "https://example.org/x"))
    write(tmp_path / config["downloads"]["lock"], f"path\tversion\tbytes\tsha256\turl\n{locked}\n")
    assert known_checksums(config, tmp_path)[dev] == "sha256:" + "3" * 64
    downloads = config["downloads"] | {"mirror_checksums": "register", "lock": "none.tsv"}
    found = known_checksums(config | {"downloads": downloads}, tmp_path)
    assert found and all(value.startswith(("sha256:", "git:")) for value in found.values())


def test_the_commit_is_that_of_the_code_or_unknown(tmp_path):
    assert machine.commit(tmp_path) == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert machine.commit(tmp_path) == head
    (tmp_path / "copy").mkdir()
    assert machine.commit(tmp_path / "copy") == "unknown"
    (tmp_path / "new").write_text("x", encoding="utf-8")
    subprocess.run([*git, "add", "new"], check=True)
    assert machine.commit(tmp_path) == f"{head} with changes"


def test_the_period_is_that_of_the_files(tmp_path):
    assert machine.period([]) is None
    paths = [tmp_path / name for name in "ab"]
    for hour, path in enumerate(paths, start=3):
        path.write_text("x", encoding="utf-8")
        when = datetime(2026, 1, 2, hour, 5, tzinfo=UTC).timestamp()
        os.utime(path, (when, when))
    assert machine.period(paths) == ("2026-01-02 03:05", "2026-01-02 04:05")
