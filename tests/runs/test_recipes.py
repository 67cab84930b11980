"""The recipes of docs/extend, each done to a copy of the repository: what the pages say happens does happen."""

import csv
import gzip
import json
import shutil
import subprocess
import sys

import pytest
import yaml
from tests.recipes import apply, commands, copy_repository, plan, recipes_of, run
from tests.unit.made_results import make_results
from tests.unit.world_for_tests import small_override
from tests.workflow import planned, shrink_world

from crossalign.catalog.config import load
from crossalign.catalog.layers import merge


@pytest.fixture(scope="module")
def page(root):
    return recipes_of(root)


@pytest.fixture(scope="module")
def finished(root, page, tmp_path_factory):
    """A copy of the repository in which the small run of the page is complete, with empty files for results."""
    folder = copy_repository(root, tmp_path_factory.mktemp("finished"))
    first = page["Try it on a small run first"]
    apply(first, folder)
    (command,) = commands(first)
    done = run(command, folder, stand_in=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def copy(finished, tmp_path):
    """The finished run, to be changed."""
    return shutil.copytree(finished, tmp_path / "copy", symlinks=True)


def check_plan(recipe, folder):
    """Do the steps of a recipe up to its plan, and compare the plan with what the page says."""
    place = [step.do for step in recipe].index("run")
    apply(recipe[:place], folder)
    assert planned(run(recipe[place].text, folder)) == plan(recipe)
    apply(recipe[place:], folder)


def test_a_language_is_tested_and_compared_but_nothing_is_trained(page, copy):
    check_plan(page["Add a language"], copy)
    assert not {"finetune", "finetune_and_test"} & set(plan(page["Add a language"]))


def test_a_model_is_fetched_and_compared_and_no_other(page, copy):
    check_plan(page["Add a model"], copy)
    # And the figure has room for it, under its name. The config is loaded by the copy: here the model is not known.
    config = merged(load([]), copy / "config.yaml", copy / "mine.yaml", items=["anc/figure3"])
    make_results(copy / "results" / "made", config)
    (copy / "made.json").write_text(json.dumps(config), encoding="utf-8")
    program(copy, "make_figure.py", "--item", "anc/figure3", "--config", "made.json", "--results", "results/made")
    with (copy / "anc" / "figure3.csv").open(encoding="utf-8", newline="") as stream:
        panels = {row["panel"] for row in csv.DictReader(stream)}
    assert panels == {"mBERT", "XLM-R base", "mBERT uncased"}


def test_a_labelled_set_of_the_hub_is_fetched_and_learnt_from(page, copy):
    check_plan(page["Use any labelled data set"], copy)


def test_a_model_of_ones_own_is_pretrained_and_none_is_fetched(root, page, tmp_path):
    check_plan(page["Pretrain a model"], copy_repository(root, tmp_path))
    assert "download_model" not in plan(page["Pretrain a model"])


def merged(config, *files, **changes):
    """A config under other files, unchecked."""
    for file in files:
        merge(config, yaml.safe_load(file.read_text(encoding="utf-8")))
    return config | changes


def program(folder, name, *arguments, out="."):
    """Run a program of the copy."""
    command = [sys.executable, f"scripts/{name}", *arguments, *(["--out", out] if out else [])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_task_is_learnt_in_the_demo_world(root, page, tmp_path):
    folder = copy_repository(root, tmp_path)
    # A smaller world of the same languages, and fewer of them to be tested on.
    banks = small_override()["treebanks"] | {"en_ewt": {"train": 200, "dev": 20, "test": 20}}
    shrink_world(folder, treebanks=banks)
    recipe = page["Add a task"]
    apply(recipe, folder)
    fewer = {"languages": ["en", "ru"], "sources": ["en"], "extra_targets": [], "similarity_languages": ["ru"]}
    demo = folder / "config/demo.yaml"
    config = merged({}, demo)
    merge(config, {"align-predict": fewer | {"own_treebanks": {"ru": "ru_gsd"}}})
    demo.write_text(yaml.safe_dump(config), encoding="utf-8")
    (command,) = commands(recipe)
    done = run(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("results/demo/tuned/mbert/*/ref/seed1")
    assert made.parent.parent.name == "relations-en_ewt"
    scores = json.loads((made / "scores.json").read_text(encoding="utf-8"))
    assert {"trees/en_pud/test", "trees/ru_pud/test", "trees/en_ewt/dev", "trees/en_ewt/test"} <= set(scores)
    # Far above the most frequent relation's share: it was learnt.
    assert scores["trees/en_ewt/test"]["accuracy"] > 60
    assert scores["trees/en_ewt/test"]["accuracy_low"] < scores["trees/en_ewt/test"]["accuracy"]
    with gzip.open(made / "predictions.jsonl.gz", "rt", encoding="utf-8") as stream:
        head = json.loads(stream.readline())
    assert head["task"] == "relations"
    assert {"nsubj", "root", "det"} <= set(head["labels"])


def test_a_table_is_made_from_results_that_are_there(page, copy):
    config = merged(load([]), copy / "mine.yaml")
    make_results(copy / "results" / "mine", config | {"items": ["align-predict/table8"]})
    recipe = page["Add a table or figure"]
    apply(recipe, copy)
    (command,) = commands(recipe)
    done = run(command, copy)
    assert planned(done) == {"make_table": 1}
    tables = copy / "results" / "mine" / "tables" / "align-predict"
    with (tables / "table9.csv").open(encoding="utf-8", newline="") as stream:
        rows = {(row["target"], row["metric"]): row for row in csv.DictReader(stream)}
    assert len(rows) == 2 * len(config["align-predict"]["languages"])
    scores = copy / "results" / "mine" / "tuned" / "mbert" / "ner-wikiann_en" / "ref" / "seed1" / "scores.json"
    expected = json.loads(scores.read_text(encoding="utf-8"))["ner/wikiann_ru/test"]
    for metric in ("F1", "token_F1"):
        assert float(rows["ru", metric]["mean"]) == pytest.approx(expected[metric], abs=1e-6)
        assert rows["ru", metric]["missing"] == ""
    assert "F1 of entities" in (tables / "table9.html").read_text(encoding="utf-8")
    assert "F1 of words" in (tables / "table9.tex").read_text(encoding="utf-8")


def test_a_finding_is_a_function_and_a_test(root, page, tmp_path):
    folder = copy_repository(root, tmp_path / "copy")
    config = load([folder / "config/demo.yaml"])
    make_results(folder / "results" / "demo", config)
    (folder / "results/demo/config.json").write_text(json.dumps(config), encoding="utf-8")
    recipe = page["Add a finding"]
    apply(recipe, folder)
    tested, judged = commands(recipe)
    done = run(tested, folder)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    done = run(judged, folder)
    assert done.returncode == 0, done.stderr
    assert "align-predict,parse-more-than-pos,Random layers 1-2 cost parsing more" in done.stdout


def test_a_paper_is_one_folder_and_a_section_of_the_config(page, copy):
    config = merged(load([]), copy / "mine.yaml")
    make_results(copy / "results" / "mine", config | {"items": ["align-predict/table8"]})
    recipe = page["Add a paper"]
    apply(recipe, copy)
    (command,) = commands(recipe)
    assert planned(run(command, copy)) == {"make_table": 1, "extremes": 1}
    tables = copy / "results" / "mine" / "tables" / "extremes"
    with (tables / "table1.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["which"]: row for row in csv.DictReader(stream)}
    scores = copy / "results" / "mine" / "tuned" / "mbert" / "ner-wikiann_en" / "ref" / "seed1" / "scores.json"
    found = json.loads(scores.read_text(encoding="utf-8"))
    languages = config["align-predict"]["languages"]
    best = max(languages, key=lambda lang: found[f"ner/wikiann_{lang}/test"]["F1"])
    assert rows["best"]["target"] == best
    assert float(rows["best"]["mean"]) > float(rows["worst"]["mean"])
    # The page, its verdicts know the paper, too.
    told = merged(config, copy / "extremes.yaml")
    (copy / "told.json").write_text(json.dumps(told), encoding="utf-8")
    shutil.copytree(tables, copy / "results" / "alone" / "tables" / "extremes")
    places = ("--config", "told.json", "--results", "results/alone")
    program(copy, "make_verdicts.py", *places, out=None)
    program(copy, "make_report.py", *places, out="page.html")
    shown = (copy / "page.html").read_text(encoding="utf-8")
    assert "Best and worst target languages" in shown
    assert "Best and worst target language of English models" in shown
