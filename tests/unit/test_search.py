"""Batch size and learning rate searched for every initialisation: which trials there are, and which of them wins."""

import json
import runpy
import sys
from dataclasses import replace

import pytest

from crossalign.catalog.addresses import Tuned, trial_init, trial_of
from crossalign.catalog.config import check, load
from crossalign.catalog.layers import merge
from crossalign.catalog.runs import count
from crossalign.catalog.targets import evaluation_sets, training_sets, trials_of
from crossalign.catalog.trainings import finetune_settings
from crossalign.engine.finetune import best_settings
from crossalign.papers.all_items import catalog_of
from crossalign.results.findings.judge import FLOORS
from crossalign.runtime.errors import UserError

REF = Tuned("mbert", "ner", "wikiann_en", "ref", 3)
LOWER = Tuned("mbert", "parsing", "ru_gsd", "random-1-2", 2)


def config_with(search, **changes):
    config = load([])
    merge(config, changes)
    config["align-predict"]["search_per_init"] = search
    return config


@pytest.mark.parametrize(
    ("init", "trial"),
    [
        ("grid-16-2.5e-5", (16, 2.5e-5, "ref")),
        ("grid-32-5e-5-random-1-2", (32, 5e-5, "random-1-2")),
        ("grid-8-1e-3-random-all", (8, 1e-3, "random-all")),
        *((init, None) for init in ("ref", "random-1-2", "continual", "grid-16", "grid-16-2.5e-5-ref")),
    ],
)
def test_the_address_of_a_trial(init, trial):
    assert trial_of(init) == trial
    assert trial is None or trial_init(*trial) == init


def test_off_changes_nothing_and_on_is_the_whole_grid_for_every_initialisation():
    plain, config = load([]), config_with(True)
    assert plain["align-predict"]["search_per_init"] is False
    assert trials_of(plain, REF) == trials_of(plain, LOWER) == []
    assert finetune_settings(plain, REF)["learning_rate"] == 3.5e-5
    trials = trials_of(config, LOWER)
    assert len(trials) == 6 and {trial.seed for trial in trials} == {1}
    assert trials[0] == Tuned("mbert", "parsing", "ru_gsd", "grid-16-1e-5-random-1-2", 1)
    # Those of the English REF models are trials of table 3 already.
    assert set(trials_of(config, REF)) <= catalog_of(config).needs("align-predict/table3").runs
    before, after = (count(catalog_of(one).runs()) for one in (plain, config))
    assert after["fine-tuning"] == before["fine-tuning"] and before["grid trial"] == 300
    # 63 of table 1, 14 of table 2, 30 of table 5; three of them are the English REF models.
    assert after["grid trial"] - before["grid trial"] == (63 + 14 + 30 - 3) * 6


@pytest.mark.parametrize(
    ("search", "settings"),
    [
        ({"learning_rate": [1e-5, 1e-4]}, {(16, 1e-5), (16, 1e-4)}),
        ({"batch": [8]}, {(8, 3.5e-5)}),
        ({"batch": [8, 16], "learning_rate": [1e-4]}, {(8, 1e-4), (16, 1e-4)}),
    ],
)
def test_lists_of_ones_own(search, settings):
    assert {trial_of(trial.init)[:2] for trial in trials_of(config_with(search), REF)} == settings


@pytest.mark.parametrize("changes", [{"preset": "adjust-ner"}, {"model": "mbert+mlm-ug"}, {"init": "grid-16-1e-5"}])
def test_other_studies_and_trials_themselves_are_not_searched(changes):
    assert trials_of(config_with(True), REF)
    assert trials_of(config_with(True), replace(REF, **changes)) == []


def test_options_of_a_trial_and_of_what_it_decides():
    config = config_with(True)
    plain, searched = finetune_settings(load([]), LOWER), finetune_settings(config, LOWER)
    assert plain.keys() - searched.keys() == {"batch", "learning_rate"}
    trial = finetune_settings(config, trials_of(config, LOWER)[-1])
    assert (trial["batch"], trial["learning_rate"], trial["init"]) == (32, 5e-5, "random-1-2")
    assert {name for name in plain if plain[name] != trial[name]} == {"seed"}
    assert [data.path() for data in evaluation_sets(config, trials_of(config, LOWER)[0])] == [
        "data/trees/ru_gsd/dev.conllu"
    ]


def test_a_trial_does_not_start_again_with_another_rate():
    config = config_with(True, finetune={"parsing": {"restart_below": 16}})
    assert finetune_settings(config, LOWER)["restart_below"] == 16
    assert "restart_below" not in finetune_settings(config, trials_of(config, LOWER)[0])


def test_a_study_starts_again_below_the_floors_of_competence(root):
    presets = load([root / "config/study.yaml"])["finetune"]
    floors = {name: FLOORS[name] for name in ("parsing", "pos", "ner")}
    floors["unseen-parsing"] = floors["parsing"]
    floors["adjust-qa"] = FLOORS["qa"]
    # Who guesses reaches the floor of NLI itself, give or take a point.
    floors["adjust-nli"] = floors["anc-nli"] = 40
    assert FLOORS["nli"] < 34
    assert {name: entry["restart_below"] for name, entry in presets.items() if "restart_below" in entry} == floors


@pytest.mark.parametrize(
    ("task", "source", "dev"),
    [("nli", "mix_en", "nli/xnli_en"), ("nli", "multinli_en", "nli/xnli_en"),
     ("qa", "squad_en", "qa/squad_en"), ("ner", "wikiann_en", "ner/wikiann_en")],
)  # fmt: skip
def test_what_may_start_again_is_given_a_dev_set(task, source, dev):
    run = Tuned("mbert", f"adjust-{task}", source, "ref", 1)
    assert training_sets(load([]), run).keys() == {"train"}
    found = training_sets(config_with(None, finetune={f"adjust-{task}": {"restart_below": 30}}), run)
    assert found["dev"].path() == f"data/{dev}/dev.jsonl"


def account(folder, name, batch, rate, scores, best, **changes):
    found = {"task": "pos", "init": "random-1", "settings": {"batch": batch, "learning_rate": rate, "seed": 1}}
    found |= {"dev": [{"accuracy": score, "loss": 9.0} for score in scores], "best_epoch": best}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(found | changes), encoding="utf-8")
    return path


def test_the_best_epoch_of_the_best_trial_decides(tmp_path):
    files = [
        account(tmp_path, "a", 16, 1e-5, [70.0, 80.0, 79.0], 2),
        account(tmp_path, "b", 32, 2e-5, [81.0, 60.0], 1),
        account(tmp_path, "c", 16, 5e-5, [81.0], 1),
    ]
    chosen, trials = best_settings(files, "pos", "random-1", "accuracy")
    # The first of equals.
    assert chosen == {"batch": 32, "learning_rate": 2e-5}
    assert [trial["dev"] for trial in trials] == [80.0, 81.0, 81.0]
    assert best_settings(files[:1], "pos", "random-1", "accuracy")[0]["batch"] == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"init": "ref"}, "not the account of a training of pos and random-1"),
        ({"best_epoch": None}, "no score on a dev set"),
    ],
)
def test_trials_that_do_not_fit(tmp_path, changes, message):
    path = account(tmp_path, "a", 16, 1e-5, [70.0], 1, **changes)
    with pytest.raises(UserError, match=message):
        best_settings([path], "pos", "random-1", "accuracy")
    with pytest.raises(UserError, match="none.json: not the account of a training"):
        best_settings([tmp_path / "none.json"], "pos", "random-1", "accuracy")


@pytest.mark.parametrize(
    ("search", "changes", "message"),
    [
        ("yes", {}, "align-predict.search_per_init: 'yes' is not allowed; expected false, true"),
        (True, {"finetune": {"pos": {"selection": "last"}}}, "finetune.pos.selection: align-predict.search_per_init"),
    ],
)
def test_mistakes_are_told(search, changes, message):
    with pytest.raises(UserError) as told:
        check(config_with(search, **changes))
    assert message in str(told.value)


def test_trials_and_settings_at_once_are_refused(tmp_path, root, monkeypatch):
    path = account(tmp_path, "a", 16, 1e-5, [70.0], 1)
    places = ["--model", str(tmp_path), "--train", str(tmp_path), "--out", str(tmp_path / "out"), "--device", "cpu"]
    both = ["--trials", str(path), "--settings", '{"batch": 8}']
    monkeypatch.setattr(sys, "argv", ["x", "--task", "pos", *places, *both])
    with pytest.raises(UserError, match="^give either --trials or the settings batch and learning_rate$"):
        runpy.run_path(str(root / "scripts/finetune.py"))["main"]()
