"""The demo's own models: two stages, the halved rate, resumption; and the rule that makes a deleted one again."""

import importlib.util
import json
import shutil
from argparse import Namespace

import pytest
import torch
import yaml
from tests.pretrain_toys import same
from tests.unit.world_for_tests import SETTINGS, small_override
from tests.workflow import copy_project, planned, snakemake

from crossalign.catalog import demo_models
from crossalign.engine.folders import load_weights
from crossalign.engine.pretrain import Pretraining
from demo_world.settings import load_settings

SHAPE = {"layers": 2, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 32, "initializer_range": 0.1}
PLAN = {
    "texts": {"all": {"wikipedia": "seen"}, "one": {"wikipedia": ["en"], "cc100": ["en"]}},
    "tokenizers": {"joint": {"size": 700, "style": "bert"}, "causal": {"size": 700, "style": "xglm"}},
    "defaults": {
        "shape": SHAPE | {"dropout": 0.0},
        "training": {"batch": 4, "block": 8, "steps": 20, "learning_rate": 1e-3, "dropout": 0.0, "seed": 1},
        "long": {"share": 0.5, "block": 32, "batch": 2, "learning_rate": 5e-4, "copy_positions": True},
    },
    "models": {
        "mbert": {"tokenizer": "joint", "texts": "all", "norm": "post", "family": "bert"},
        "further": {"init": "mbert", "texts": "one", "training": {"steps": 4}, "long": {"copy_positions": False}},
        "xglm": {
            "tokenizer": "causal", "texts": "one", "norm": "pre", "family": "xglm", "long": {"copy_positions": False},
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def program(root):
    spec = importlib.util.spec_from_file_location("make_demo_model", root / "scripts" / "make_demo_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A plan, the settings of a tiny world, and a folder for work whose texts are made once."""
    folder = tmp_path_factory.mktemp("demo")
    text = {"pretraining": {"seen": 12, "unseen": 8, "cc100": 15, "narabizi": 6}}
    small = load_settings(SETTINGS, small_override() | {"text": text, "seen": ["en", "fr"]})
    (folder / "world.yaml").write_text(yaml.safe_dump(small, sort_keys=False))
    (folder / "models.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))
    return folder


@pytest.fixture
def make(program, place, monkeypatch):
    monkeypatch.setattr(program, "stuck", lambda report: False)

    def call(name, out, work):
        options = {"plan": place / "models.yaml", "settings": place / "world.yaml", "device": "cpu"}
        asked = Namespace(model=name, out=out / name, work=work, **options)
        monkeypatch.setattr(program, "parse_args", lambda: asked)
        program.main()
        return json.loads((out / name / "training.json").read_text())["stages"]

    return call


def test_two_stages_and_models_that_go_on(make, tmp_path):
    for name in ("mbert", "further", "xglm"):
        short, long = (report["settings"] for report in make(name, tmp_path / "models", tmp_path / "work"))
        assert (short["block"], long["block"], long["batch"], long["learning_rate"]) == (8, 32, 2, 5e-4)
        assert long["steps"] == max(3, short["steps"] // 2) and long["seed"] == short["seed"] + 1000
        config = json.loads((tmp_path / "models" / name / "config.json").read_text())
        assert config.get("hidden_dropout_prob", config.get("dropout")) == 0.0
    segments = load_weights(tmp_path / "models/mbert").embeddings.segment.weight
    assert torch.equal(segments[0], segments[1])
    assert load_weights(tmp_path / "models/xglm").config.causal
    vocabularies = [(tmp_path / "models" / name / "tokenizer.json").read_bytes() for name in ("mbert", "further")]
    assert vocabularies[0] == vocabularies[1]


def test_an_interruption_in_either_stage_changes_nothing(make, tmp_path, monkeypatch):
    """Nor does what another plan has left in the folder for work."""
    make("xglm", tmp_path / "whole", tmp_path / "work2")
    plain, stops = Pretraining.step, []

    def stop(self, number):
        at = (self.settings.block, number + 1)
        if at in ((8, 5), (32, 4)) and at not in stops:
            stops.append(at)
            self.checkpoints.stop_requested = True
        plain(self, number)

    make("mbert", tmp_path / "whole", tmp_path / "work1")
    monkeypatch.setattr(Pretraining, "step", stop)
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            make("mbert", tmp_path / "parts", tmp_path / "work2")
        assert ended.value.code == 75
    reports = make("mbert", tmp_path / "parts", tmp_path / "work2")
    assert len(stops) == 2 and [report["resumed"] for report in reports] == [1, 1]
    assert same(tmp_path / "whole/mbert", tmp_path / "parts/mbert")


def test_later_positions_begin_like_the_earlier_ones(program):
    table = torch.randn(32, 16)
    before = table.clone()
    positions = Namespace(position=Namespace(weight=torch.nn.Parameter(table)))
    program.copy_positions(Namespace(embeddings=positions, config=Namespace(position_offset=0)), 8, 1)
    assert torch.equal(table[:8], before[:8])
    for number, row in enumerate(table[8:], 8):
        assert 0 < (row - table[number % 8]).std() < 0.6 * table[:8].std()


@pytest.mark.parametrize(("enough", "rate"), [(6e-4, 5e-4), (1e-5, 2.5e-4)])
def test_a_stuck_model_is_trained_again_with_half_the_rate_twice_at_most(
    program, make, tmp_path, monkeypatch, enough, rate
):
    monkeypatch.setattr(program, "stuck", lambda report: report["settings"]["learning_rate"] > enough)
    assert make("xglm", tmp_path / "models", tmp_path / "work")[0]["settings"]["learning_rate"] == rate


def test_what_is_stuck(program):
    """Of the tracked models none is."""
    assert program.stuck({"loss": [[0, 9.0], [10, 5.6]], "unigram_entropy": 6.0})
    assert not program.stuck({"loss": [[0, 9.0], [10, 5.4]], "unigram_entropy": 6.0})


def test_the_tracked_plan_fits(program):
    plan = demo_models.read_plan()
    for name, model in plan["models"].items():
        short, long, _ = program.stages(plan, name, "fp32")
        assert long.block > short.block and model["texts"] in plan["texts"]
        assert model["init"] in plan["models"] if "init" in model else model["tokenizer"] in plan["tokenizers"]


def test_a_deleted_model_is_made_again(root, tmp_path):
    folder = tmp_path / "copy"
    copy_project(root, folder)
    made = ("embeddings/models/mbert/pud", "models/embert-hi+adjust-hi-500-avg-all/seed1/model.safetensors")
    targets = [f"results/demo/{name}" for name in made]

    def wanted():
        return snakemake(folder, folder, "--profile", "profiles/demo", "--dry-run", "--quiet", "host", "--", *targets)

    before = planned(wanted())
    for name in ("mbert", "embert-hi"):
        shutil.rmtree(folder / "resources/demo/models" / name)
    done = wanted()
    assert planned(done) == before | {"make_demo_model": 2}
    # What is going to be made is read by the names that it will have.
    assert "resources/demo/models/embert-hi/tokenizer.json" in done.stdout
