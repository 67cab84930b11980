"""Every stage that makes, scores or looks into a model, for real, in a tiny demo world; then exact partial re-runs."""

import csv
import json
import math

import pytest
from tests.workflow import copy_project, planned, run_project

# Adjustment, continual learning, word distances; MLM adaptation, models of one language, BiLSTM, transliteration.
SMALL = {
    "items": ["adjust/table2", "adjust/figure1", "talk/figure3"],
    "adjust": {"languages": ["hi"], "tasks": ["nli"], "pairs": "20", "word_pairs": 10, "translated": ["hi"]}
    | {"further_alpha_scopes": ["both"]}
    | {"sizes": {"lang": "hi", "pairs": ["20"]}, "extended": {"base": "embert-hi", "lang": "hi", "pairs": ["20"]}},
    "mlm": {"epochs": 1},
    "pretrain": {"vocabularies": {"mono-*": {"size": 300}}, "models": {"mono-*": {"layers": 2, "epochs": 1}}},
    "bilstm": {"epochs": 1},
    "keep_models": "none",
}


@pytest.fixture(scope="module")
def project(root, tmp_path_factory):
    """A copy of the workflow whose demo world is tiny, after one complete run."""
    folder = tmp_path_factory.mktemp("models") / "a project"
    copy_project(root, folder, text={"demo": {"unseen": 80}})
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(folder, *arguments, changes=None):
    """Run the chosen items in `folder`, or with --dry-run look at what would run."""
    return run_project(folder, SMALL, ["adjust", "talk"], *arguments, changes=changes)


def would_run(folder, changes=None):
    return planned(run(folder, "--dry-run", changes=changes))


def test_every_kind_of_model_is_made(project):
    results = project / "results" / "demo"
    models = {path.name for path in (results / "models").iterdir()}
    assert models == {
        "mbert+adjust-hi-20-avg-all", "mbert+mlm-ug", "mbert+mlm-ug+latn", "mono-ug", "mono-ug.latn"
    }  # fmt: skip
    for name in ("mono-ug", "mbert+mlm-ug/seed1"):
        report = json.loads((results / "models" / name / "training.json").read_text(encoding="utf-8"))
        assert math.isfinite(report["loss"][-1][1])
    scored = {
        path.parent.relative_to(results / "tuned").as_posix() for path in results.glob("tuned/*/*/*/*/scores.json")
    }
    assert len(scored) == 11
    assert "bilstm/unseen-parsing-ug_udt/ref/seed1" in scored
    assert "mbert+adjust-hi-20-avg-all/adjust-nli-multinli_en/continual/seed1" in scored


def test_continual_learning_is_recorded(project):
    tuned = project / "results/demo/tuned/mbert+adjust-hi-20-avg-all/adjust-nli-multinli_en"
    reports = {
        scope: json.loads((tuned / init / "seed1/training.json").read_text(encoding="utf-8"))
        for scope, init in (("alignment", "continual"), ("both", "continual-both"))
    }
    for scope, report in reports.items():
        assert (report["continual"]["alpha"], report["continual"]["alpha_scope"]) == (0.01, scope)
    assert reports["alignment"]["loss"] != reports["both"]["loss"]
    assert "continual" not in json.loads((tuned / "ref/seed1/training.json").read_text(encoding="utf-8"))


def test_figures_have_all_their_data(project):
    figures = project / "results" / "demo" / "figures"
    with (figures / "adjust/figure1.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len({row["panel"] for row in rows}) == 5
    for item in ("adjust/figure1", "talk/figure3"):
        assert (figures / f"{item}.svg").stat().st_size > 1000


def test_models_that_are_not_kept_are_gone_and_not_made_again(project):
    assert not list((project / "results/demo/tuned/mbert").rglob("model.safetensors"))
    assert would_run(project) == {}


def test_another_rate_of_the_adjustment_runs_what_depends_on_it(project):
    jobs = would_run(project, {"pull": {"learning_rate": 0.002}})
    assert jobs["adjust_model"] == 1
    # The adjusted model and its three fine-tunings; the original one is left alone.
    assert jobs["finetune_and_test"] == 3 and "evaluate" not in jobs
    assert jobs["measure_distances"] == 3
    assert not {"train_bilstm", "adapt_to_text", "pretrain"} & set(jobs)


def test_another_baseline_runs_the_baseline_alone(project):
    assert would_run(project, {"bilstm": {"hidden": 48}}) == {"train_bilstm": 1, "make_figure": 1}
