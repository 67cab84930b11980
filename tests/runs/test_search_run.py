"""The search for settings per initialisation, for real, in a tiny demo world: trials, choice, partial re-runs."""

import json

import pytest
from tests.workflow import copy_project, run_project

ITEM = "align-predict/table7"
RATES = [1.0e-5, 3.0e-3]
SMALL = {
    "items": [ITEM],
    "seeds": [1, 2],
    "align-predict": {"languages": ["en", "ru"], "extra_targets": [], "sources": ["en"], "layer_pairs": ["1-2"]}
    | {"own_treebanks": {"ru": "ru_gsd"}, "similarity_languages": ["ru"], "test_treebanks": {}}
    | {"search_per_init": {"learning_rate": RATES}},
    # A handful of sentences, until they are known by heart.
    "finetune": {"pos": {"batch": 8, "epochs": 30}},
}
TUNED = "results/demo/tuned/mbert/pos-en_ewt"


@pytest.fixture(scope="module")
def project(root, tmp_path_factory):
    """A copy of the workflow whose demo world is tiny, after one complete run."""
    folder = tmp_path_factory.mktemp("search") / "project"
    copy_project(root, folder)
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(folder, *arguments, changes=None):
    """Run the chosen items in `folder`, or with --dry-run look at what would run."""
    return run_project(folder, SMALL, [f"results/demo/tables/{ITEM}.csv"], *arguments, changes=changes)


def training(project, init, seed=1):
    path = project / TUNED / init / f"seed{seed}" / "training.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("init", ["ref", "random-1-2"])
def test_every_initialisation_has_the_best_of_its_own_trials(project, init):
    suffix = "" if init == "ref" else f"-{init}"
    trials = [training(project, f"grid-8-{name}{suffix}") for name in ("1e-5", "3e-3")]
    assert [trial["settings"]["learning_rate"] for trial in trials] == RATES
    assert {trial["init"] for trial in trials} == {init}
    scores = [trial["dev"][trial["best_epoch"] - 1]["accuracy"] for trial in trials]
    # So far apart that the choice is no chance.
    assert scores[1] > scores[0] + 5
    for seed in (1, 2):
        found = training(project, init, seed)
        assert found["settings"]["learning_rate"] == RATES[1] and found["settings"]["seed"] == seed
        assert [trial["dev"] for trial in found["trials"]] == scores
    # The same training as the trial that was best.
    assert training(project, init)["loss"] == trials[1]["loss"]


def test_trials_are_scored_where_they_are_chosen_and_leave_no_weights(project):
    trials = list((project / TUNED).glob("grid-*/seed1"))
    assert len(trials) == 4
    for trial in trials:
        assert json.loads((trial / "scores.json").read_text(encoding="utf-8")).keys() == {"trees/en_ewt/dev"}
        assert not (trial / "model" / "model.safetensors").exists()
