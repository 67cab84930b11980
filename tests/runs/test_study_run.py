"""docs/use/study.md, done to a copy of the repository: a study of two of the demo's models from nothing to its page."""

import csv
import json
import os
import re
import shutil

import pytest
import yaml
from tests.recipes import apply, commands, copy_repository, plan, recipes, run
from tests.unit.world_for_tests import SETTINGS, small_override
from tests.workflow import planned

from crossalign.world.settings import load_settings

MODELS = ("mbert", "xglm-564m")


@pytest.fixture(scope="module")
def page(root):
    text = (root / "docs" / "use" / "study.md").read_text(encoding="utf-8")
    # What needs a network or a cluster is not run.
    return recipes(re.sub(r"```sh\n.*?```\n", "", text, flags=re.DOTALL))


def make(command, folder):
    """Run a command of the page; the environment is that of the tests."""
    assert command.startswith("make ")
    return run(command.replace("make ", "make -o environment ", 1), folder)


@pytest.fixture(scope="module")
def studied(root, page, tmp_path_factory):
    """The first command of the page, in a world of fewer sentences unless slow tests are asked for."""
    folder = copy_repository(root, tmp_path_factory.mktemp("study"))
    if not os.environ.get("CROSSALIGN_SLOW"):
        world = yaml.safe_dump(load_settings(SETTINGS, small_override()), allow_unicode=True, sort_keys=False)
        (folder / "resources" / "demo" / "world.yaml").write_text(world, encoding="utf-8")
    (command,) = commands(page["Try it"])
    done = make(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_item_of_two_models_is_on_the_page(studied):
    results = studied / "results" / "try"
    made = sorted(file.stem for kind in ("tables", "figures") for file in results.glob(f"{kind}/study/*.csv"))
    assert made == [*(f"figure{place}" for place in range(1, 8)), *(f"table{place}" for place in range(1, 6))]
    for kind in ("tables", "figures"):
        for file in results.glob(f"{kind}/study/*.csv"):
            with file.open(encoding="utf-8", newline="") as stream:
                assert not [row for row in csv.DictReader(stream) if row["missing"]], file
    shown = (results / "report" / "index.html").read_text(encoding="utf-8")
    assert "Where do languages meet in a model" in shown and "asked of mBERT, XGLM 564M" in shown
    assert "align-predict/table1" not in shown
    claims = json.loads((results / "claims.json").read_text(encoding="utf-8"))
    assert {claim["id"].removesuffix("-upper") for claim in claims if claim["id"].endswith("-upper")} == set(MODELS)
    assert all(claim["verdict"] != "not run" for claim in claims)
    models = yaml.safe_load((results / "models.yaml").read_text(encoding="utf-8"))["study"]["models"]
    assert models["xglm-564m"] == {"folder": "resources/demo/models/xglm-564m", "layers": 12, "neurons": 64}


def test_layers_start_at_random_in_encoders_and_decoders(studied):
    """RANDOM-INIT of different layers gives different models of both kinds."""
    for model in MODELS:
        scores = [
            file.read_text(encoding="utf-8")
            for file in studied.glob(f"results/try/tuned/{model}/study-pos-en_ewt/*/seed1/scores.json")
        ]
        assert len(scores) == 5 and len(set(scores)) == 5


def test_the_plan_of_the_page(page, studied, tmp_path):
    folder = shutil.copytree(studied, tmp_path / "copy", symlinks=True)
    apply(page["Your model"], folder)
    (command,) = commands(page["Your model"])
    assert planned(make(command, folder)) == plan(page["Your model"])


def test_a_model_must_be_named(studied):
    done = make("make study", studied)
    assert done.returncode and 'MODEL="folder or owner/name" is needed' in done.stderr
    done = make("make study MODEL=no/such/model/at/all", studied)
    assert done.returncode and "no/such/model/at/all: no such folder" in done.stderr
