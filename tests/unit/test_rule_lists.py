"""Lists of rules outside of `rules/` are complete: in the cluster's document and profile, in planner and progress."""

import re

import pytest
import yaml
from tests.rule_texts import rules

from crossalign.catalog.config import load, merge
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import planned
from crossalign.progress.line import USUAL
from crossalign.progress.words import WORDS


@pytest.fixture(scope="module")
def names(root):
    return {rule.name for rule in rules(root)}


@pytest.fixture(scope="module")
def on_gpus(root):
    return {rule.name for rule in rules(root) if rule.gpus}


def test_the_document_names_the_rules_that_use_gpus(root, on_gpus):
    text = (root / "docs" / "use" / "cluster.md").read_text(encoding="utf-8")
    listed = re.search(r"the rules that use GPUs \(([^)]*)\)", text)[1]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(on_gpus)


def test_the_profile_names_rules(root, names):
    text = (root / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    groups = dict(entry.split("=") for entry in yaml.safe_load(text)["groups"])
    shown = re.findall(r"^#   (\w+):", text, re.MULTILINE)
    assert {*groups, *shown} <= names
    assert "finetune" in shown
    # One submission does a whole run, whatever its layers start from.
    assert {rule for rule, group in groups.items() if group == "run"} == {"finetune", "finetune_random", "evaluate"}


def test_the_planner_asks_for_gpus_where_the_rules_do(root, on_gpus):
    """Two configs that together have jobs of all rules."""
    asked = {}
    for files, changes in (([], {"anc": {"norm_models": "pretrain"}}), ([root / "config.small.yaml"], {})):
        config = load(files)
        merge(config, changes)
        for job in planned(catalog_of(config)).jobs.values():
            asked.setdefault(job.rule, set()).add(job.gpus > 0)
    assert {rule for rule, asks in asked.items() if asks == {True}} == on_gpus
    assert all(len(asks) == 1 for asks in asked.values())


def test_the_progress_line_has_words_for_every_rule(names):
    prepared = {name for name in names if name.startswith("prepare_")}
    assert prepared | set(WORDS) == names
    assert set(USUAL) <= names
