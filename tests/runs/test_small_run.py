"""The small run: planned whole, and carried from real data to the page in a pinch: tiny models, few sentences."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from tests.workflow import planned, snakemake

from crossalign.catalog.config import load

# One item of each paper.
ITEMS = ["align-predict/table7", "anc/figure4", "adjust/figure1", "talk/figure2"]
TINY = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "batch": 4, "block": 32, "steps": 5}
TINY |= {"stages": [{"text": ["mix", "open"], "block": 32, "batch": 4, "steps": 3}]}
NORMS = ("scale-post", "scale-pre", "scale-normformer", "scale-normformer-v2")
FEW = {"size": 1000, "languages": ["fr", "wo"], "letters": {"text": "open", "languages": ["wo"]}}
PINCH = {
    "items": ITEMS,
    "seeds": [1],
    "align-predict": {"languages": ["en", "fr"], "sources": ["en"], "layer_pairs": ["1-2"], "layer_sets": ["1-2"]}
    | {"similarity_languages": ["fr"], "extra_targets": [], "search_per_init": False},
    "anc": {"norm_languages": ["fr"], "sentences": 100, "seeds": [1]},
    "adjust": {"languages": ["hi"], "tasks": ["nli"], "pairs": "200", "word_pairs": 50, "pool": 400}
    | {"translated": ["hi"], "sizes": {"lang": "hi", "pairs": ["200"]}}
    | {"aggregations": {"lang": "hi", "values": ["avg"]}}
    | {"extended": {"base": "small", "lang": "hi", "pairs": ["200"]}},
    "talk": {"profile_languages": ["wo"], "languages": ["wo"]},
    "pretrain": {
        "vocabularies": {"small": FEW | {"lines": 300}, "small-roberta": FEW | {"lines": 300}, "mono-*": {"size": 500}},
        "models": {name: TINY | {"languages": ["fr", "wo"]} for name in ("small", *NORMS)}
        | {"mono-*": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "block": 32, "epochs": 1}
            | {"stages": [{"block": 32, "epochs": 1}]}},
    },
    "finetune": {
        "defaults": {"max_length": 64},
        "pos": {"epochs": 1, "examples": 100, "selection": "last", "restart_below": None},
        "unseen-parsing": {"epochs": 1, "patience": 0},
        "adjust-nli": {"epochs": 1, "examples": 100, "max_length": 64},
    },
    "mlm": {"block": 32, "epochs": 1},
    "bilstm": {"layers": 1, "hidden": 16, "characters": 8, "words": 8, "epochs": 1, "patience": 0},
}  # fmt: skip


def test_the_pinch_is_a_config(root, tmp_path):
    """What is run seldom is checked always."""
    (tmp_path / "pinch.yaml").write_text(yaml.safe_dump(PINCH), encoding="utf-8")
    assert load([root / "config.small.yaml", tmp_path / "pinch.yaml"])["items"] == ITEMS


@pytest.fixture(scope="module")
def pinch(root, shared, tmp_path_factory):
    """The pinch, run to its end from a mirror of real samples."""
    if not os.environ.get("CROSSALIGN_SLOW"):
        pytest.skip("takes minutes: CROSSALIGN_SLOW=1 runs it")
    folder = tmp_path_factory.mktemp("pinch")
    mirror = {"downloads": {"mirror": f"file://{folder / 'mirror'}", "mirror_checksums": "mirror"}}
    (folder / "pinch.yaml").write_text(yaml.safe_dump(PINCH | mirror), encoding="utf-8")
    configs = [str(root / "config.small.yaml"), str(folder / "pinch.yaml")]
    program = [sys.executable, str(root / "tools/make_mirror.py"), str(shared / "data")]
    subprocess.run([*program, "--out", str(folder / "mirror"), "--config", *configs], check=True)
    done = run(root, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(root, folder, *options):
    configs = [str(root / "config.small.yaml"), str(folder / "pinch.yaml")]
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--show-failed-logs", "--configfile"]
    return snakemake(root, folder, *options, *settings, *configs, "--", "all", warm=True)


def test_one_item_of_each_paper_from_data_to_page(pinch):
    results = pinch / "results" / "small"
    page = (results / "report" / "index.html").read_text(encoding="utf-8")
    for item in ITEMS:
        kind = "tables" if "/table" in item else "figures"
        assert (results / kind / f"{item}.csv").stat().st_size > 0
        assert f'id="{item.replace("/", "-")}"' in page
    assert "Not part of this run: a search over 300 trials" in page
    made = {path.name for path in (results / "models").iterdir()}
    assert made >= {"small", "scale-post", "scale-pre", "scale-normformer", "small+adjust-hi-200-avg-all", "mono-wo"}
    report = json.loads((results / "data/bitext/mix_hi/pool.report.json").read_text(encoding="utf-8"))
    assert report["kept"] == 400


def test_prepared_sets_can_move_alone(pinch, root, tmp_path):
    """Another machine gets sets, links and vocabularies, with their times, and neither downloads nor Snakemake's notes:
    nothing of the data stage is made again there."""
    packed = tmp_path / "data.tar"
    names = [f"results/small/{name}" for name in ("data", "links", "vocabularies")]
    subprocess.run(["tar", "-C", str(pinch), "-cf", str(packed), *names], check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["tar", "-C", str(elsewhere), "-xf", str(packed)], check=True)
    shutil.copy(pinch / "pinch.yaml", elsewhere)
    left = planned(run(root, elsewhere, "--dry-run"))
    assert left["pretrain"] == 10  # five models in two stages
    moved = ("download_", "prepare_", "align_", "train_vocabulary")
    assert not [rule for rule in left if rule.startswith(moved)]
