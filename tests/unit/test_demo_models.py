"""The demo's own models: from the plan to settings, two stages, resumption, and folders that are recognised."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from tests.pretrain_toys import make_text, make_tokenizer
from tools import demo_models
from tools.demo_models import finished, write_provenance

from crossalign.engine.checkpoints import InterruptedTraining
from crossalign.engine.folders import load_weights
from crossalign.engine.pretrain import Pretraining
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
PLAN = {
    "texts": {"all": {"wikipedia": "seen"}, "one": {"wikipedia": ["aa"], "cc100": ["aa"]}},
    "tokenizers": {
        "joint": {"texts": "all", "size": 80, "style": "bert"},
        "causal": {"texts": "one", "size": 80, "style": "xglm"},
    },
    "defaults": {
        "shape": {
            "layers": 2, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 32, "initializer_range": 0.1,
            "dropout": 0.0,
        },
        "training": {"batch": 4, "block": 8, "steps": 20, "learning_rate": 1e-3, "dropout": 0.0, "seed": 1},
        "long": {"share": 0.5, "block": 32, "batch": 2, "learning_rate": 5e-4, "copy_positions": True},
    },
    "models": {
        "further": {"init": "mbert", "texts": "one", "training": {"steps": 4}, "long": {"copy_positions": False}},
        "mbert": {"tokenizer": "joint", "texts": "all", "norm": "post", "family": "bert"},
        "xglm": {
            "tokenizer": "causal", "texts": "one", "norm": "pre", "family": "xglm", "long": {"copy_positions": False},
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    (folder / "models.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))
    (folder / "world.yaml").write_text(yaml.safe_dump({"seed": 3, "seen": ["aa", "bb"]}))
    texts = {"aa": [make_text(folder / "aa.txt", 1, 200)], "bb": [make_text(folder / "bb.txt", 2, 200)]}
    make_tokenizer(folder / "joint.json", texts, size=80)
    make_tokenizer(folder / "causal.json", {"aa": texts["aa"]}, "xglm", 80)
    return folder, demo_models.read_plan(folder / "models.yaml", folder / "world.yaml"), texts


def train(place, name, out, work):
    folder, plan, texts = place
    tokenizer = folder / f"{demo_models.vocabulary_of(plan, name)}.json"
    return demo_models.train_model(plan, name, texts, tokenizer, out, work, CPU, "fp32")


def same(left, right):
    left, right = (dict(load_weights(folder).named_parameters()) for folder in (left, right))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_the_plan(place):
    _, plan, _ = place
    assert plan["texts"] == {"all": ["wikipedia/aa", "wikipedia/bb"], "one": ["wikipedia/aa", "cc100/aa"]}
    assert demo_models.chosen_models(plan, None) == ["mbert", "further", "xglm"]
    assert demo_models.chosen_models(plan, ["further"]) == ["mbert", "further"]
    assert demo_models.vocabulary_of(plan, "further") == "joint"
    short = demo_models.short_settings(plan, plan["models"]["mbert"], "fp32", 0.5)
    long = demo_models.long_settings(plan, plan["models"]["mbert"], short)
    assert (short.steps, short.block, short.seed) == (10, 8, 1)
    assert (long.steps, long.block, long.batch, long.learning_rate, long.seed) == (5, 32, 2, 5e-4, 1001)


def test_bad_plans(place, tmp_path):
    with pytest.raises(UserError, match="--models bert: not one of further, mbert, xglm"):
        demo_models.chosen_models(place[1], ["bert"])
    for model, message in (
        ({"tokenizer": "none", "texts": "all"}, "m: tokenizer 'none' is not under tokenizers"),
        ({"init": "none", "texts": "all"}, "m: init 'none' is not under models"),
        ({"tokenizer": "joint"}, "m: texts 'None' is not under texts"),
    ):
        (tmp_path / "models.yaml").write_text(yaml.safe_dump({**PLAN, "models": {"m": model}}))
        with pytest.raises(UserError, match=message):
            demo_models.read_plan(tmp_path / "models.yaml", place[0] / "world.yaml")


def test_two_stages_and_models_that_go_on(place, tmp_path):
    for name in ("mbert", "further", "xglm"):
        reports = train(place, name, tmp_path / "models", tmp_path / "work")
        assert [report["settings"]["block"] for report in reports] == [8, 32]
        written = json.loads((tmp_path / "models" / name / "training.json").read_text())["stages"]
        assert written == json.loads(json.dumps(reports))
        config = json.loads((tmp_path / "models" / name / "config.json").read_text())
        assert config.get("hidden_dropout_prob", config.get("dropout")) == 0.0
    segments = load_weights(tmp_path / "models/mbert").embeddings.segment.weight
    assert torch.equal(segments[0], segments[1])
    assert load_weights(tmp_path / "models/xglm").config.causal


def test_a_model_that_goes_on_from_a_new_one_is_trained_anew(place, tmp_path):
    folder, plan, texts = place
    models, work = tmp_path / "models", tmp_path / "work"
    first = [train(place, name, models, work) for name in ("mbert", "further")][1][0]
    assert train(place, "further", models, work)[0]["seconds"] == first["seconds"]
    changed = {**plan, "models": {**plan["models"], "mbert": {**plan["models"]["mbert"], "training": {"seed": 2}}}}
    again = [train((folder, changed, texts), name, models, work) for name in ("mbert", "further")][1][0]
    assert again["sha256"] != first["sha256"]


def test_finished_models_are_recognised(place, tmp_path):
    plan = place[1]
    folder = tmp_path / "models/xglm"
    assert not finished(folder, "xglm", plan)
    train(place, "xglm", tmp_path / "models", tmp_path / "work")
    assert not finished(folder, "xglm", plan)
    write_provenance(folder, "xglm", plan, "a command")
    assert finished(folder, "xglm", plan)
    assert json.loads((folder / "provenance.json").read_text())["stages"][1]["settings"]["block"] == 32
    for change in (
        {"trial": {"factor": 0.5}},
        {"world": {"seed": 4, "sha256": ""}},
        {"defaults": {**plan["defaults"], "long": {}}},
        {"tokenizers": {**plan["tokenizers"], "causal": {"texts": "one", "size": 81, "style": "xglm"}}},
    ):
        assert not finished(folder, "xglm", {**plan, **change})
    with (folder / "model.safetensors").open("ab") as stream:
        stream.write(b" ")
    assert not finished(folder, "xglm", plan)


def test_the_tracked_plan_can_be_read(root: Path):
    plan = demo_models.read_plan(root / "resources/demo/models.yaml", root / "resources/demo/world.yaml")
    for name in demo_models.chosen_models(plan, None):
        short = demo_models.short_settings(plan, plan["models"][name], "fp32")
        assert demo_models.long_settings(plan, plan["models"][name], short).block > short.block


def test_the_program_lists_what_is_missing(place, tmp_path, root):
    plan = ["--plan", str(place[0] / "models.yaml"), "--settings", str(place[0] / "world.yaml"), "--list"]
    command = [sys.executable, str(root / "tools/make_demo_models.py"), "--out", str(tmp_path), *plan]
    done = subprocess.run([*command, "--models", "further"], capture_output=True, text=True, check=True)
    assert done.stdout == "mbert\tmissing\nfurther\tmissing\n"
    wrong = subprocess.run([*command, "--models", "gpt"], capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr == "error: --models gpt: not one of further, mbert, xglm\n"


def test_an_interruption_in_either_stage_changes_nothing(place, tmp_path, monkeypatch):
    train(place, "mbert", tmp_path / "whole", tmp_path / "work1")
    plain, stops = Pretraining._maybe_save, []

    def stop(self):
        at = (self.settings.block, self.progress.step)
        if at in ((8, 5), (32, 4)) and at not in stops:
            stops.append(at)
            self.saver.stop_requested = True
        plain(self)

    monkeypatch.setattr(Pretraining, "_maybe_save", stop)
    for _ in range(2):
        with pytest.raises(InterruptedTraining):
            train(place, "mbert", tmp_path / "parts", tmp_path / "work2")
    reports = train(place, "mbert", tmp_path / "parts", tmp_path / "work2")
    assert len(stops) == 2 and [report["resumed"] for report in reports] == [1, 1]
    assert same(tmp_path / "whole/mbert", tmp_path / "parts/mbert")


def test_later_positions_begin_like_the_earlier_ones(place):
    folder, plan, _ = place
    start = demo_models.begin(plan, plan["models"]["mbert"], folder / "joint.json", folder, 1)
    table = start.encoder.embeddings.position.weight.data
    before = table.clone()
    demo_models.copy_positions(start.encoder, 8, 1)
    assert torch.equal(table[:8], before[:8])
    for place_, row in enumerate(table[8:], 8):
        assert 0 < (row - table[place_ % 8]).std() < 0.6 * table[:8].std()


def test_a_stuck_model_is_trained_again_with_half_the_rate(place, tmp_path, monkeypatch):
    monkeypatch.setattr(demo_models, "stuck", lambda report: report["settings"]["learning_rate"] > 6e-4)
    plan = {
        **place[1],
        "defaults": {**place[1]["defaults"], "training": {**PLAN["defaults"]["training"], "steps": 100}},
    }
    reports = train((place[0], plan, place[2]), "mbert", tmp_path / "models", tmp_path / "work")
    assert reports[0]["settings"]["learning_rate"] == 5e-4
