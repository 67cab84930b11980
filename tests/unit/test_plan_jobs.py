"""The plan's jobs are those of the rules, and it knows what is left of them."""

import os
import time

import pytest
from tests.workflow import planned, snakemake

from crossalign.catalog.config import load, merge
from crossalign.catalog.runs import Catalog
from crossalign.plan.jobs import Job, Jobs
from crossalign.plan.targets import items_of, remaining, wanted
from crossalign.runtime.errors import UserError

SOME = {"items": ["align-predict/figure1", "adjust/figure1", "talk/figure3", "talk/table3", "anc/table1"]}


def jobs_of(files, targets, changes=None):
    config = load(files)
    merge(config, changes or {})
    jobs = Jobs(Catalog(config))
    return jobs, wanted(jobs, targets)


def by_rule(jobs):
    counts = {}
    for job in jobs:
        counts[job.rule] = counts.get(job.rule, 0) + 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "targets", "changes"),
    [
        ([], ["all"], {}),
        ([], ["grid", "download"], {}),
        ([], ["align_predict"], {"align-predict": {"search_per_init": True}}),
        ([], ["anc"], {"anc": {"norm_models": "pretrain"}}),
        (["config.demo.yaml"], ["all"], {}),
        (["config.demo.yaml"], ["data", "talk"], {}),
    ],
)
def test_jobs_are_those_of_a_dry_run(root, tmp_path, files, targets, changes):
    own = [str(root / name) for name in files]
    arguments = ["--dry-run", "--cores", "2", "--quiet", "rules"]
    if own:
        config = load([root / name for name in files])
        merge(config, changes)
    else:
        config = changes
    expected = planned(snakemake(root, tmp_path, *arguments, "--", *targets, config=config))
    jobs, _ = jobs_of([root / name for name in files], targets, changes)
    assert by_rule(jobs.found.values()) == expected


@pytest.mark.slow
def test_what_is_left_is_what_a_dry_run_would_do(root, tmp_path):
    config = load([root / "config.demo.yaml"])
    merge(config, SOME)
    jobs, targets = jobs_of([root / "config.demo.yaml"], ["all"], SOME)
    # All models are scored but one, and their vectors, which are temporary, are gone.
    done = [job for job in jobs.found.values() if job.rule in ("evaluate", "train_bilstm", "measure_distances")]
    done += [job for job in jobs.found.values() if job.rule in ("prepare_nli", "make_world", "compare_languages")]
    open_run = next(job for job in done if job.rule == "evaluate" and job.subject.recipe == "anc-nli")
    now = time.time()
    for job in done:
        for output in job.outputs if job != open_run else ():
            file = tmp_path / output
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            # All of one age: what is newer than what is Snakemake's to judge.
            os.utime(file, (now, now))
    left = remaining(jobs.found, targets, lambda path: (tmp_path / path).exists())
    arguments = ["--dry-run", "--cores", "2", "--quiet", "rules"]
    expected = planned(snakemake(root, tmp_path, *arguments, "--", "all", config=config))
    assert by_rule(jobs.found[name] for name in left) == expected
    # The open one, and those whose models start from texts, which a table of the talk counts and so asks for.
    assert expected["evaluate"] == expected["finetune"] == 7
    assert "embed_words" not in expected


def chain(**exists):
    """download -> train (temporary) -> score -> table, of which some results exist."""
    jobs = [Job("download", ("file",)), Job("train", ("model",), ("file",)), Job("score", ("scores",), ("model",))]
    found = {job.name: job for job in [*jobs, Job("table", ("table",), ("scores",))]}
    return remaining(found, ["table"], lambda path: exists.get(path, False))


def test_nothing_there_everything_left():
    assert chain() == {"file", "model", "scores", "table"}


def test_files_that_nothing_reads_any_more_are_not_missed():
    assert chain(table=True) == set()
    assert chain(scores=True) == {"table"}


def test_a_missing_target_wants_what_it_reads():
    assert chain(file=True) == {"model", "scores", "table"}
    assert chain(file=True, model=True) == {"scores", "table"}


def test_what_depends_on_a_new_result_is_made_again():
    jobs = {
        "file": Job("download", ("file",)),
        "left": Job("prepare", ("left",), ("file",)),
        "right": Job("prepare", ("right",), ("file",)),
    }
    assert remaining(jobs, ["left", "right"], lambda path: path == "right") == {"file", "left", "right"}


def test_targets_are_rules_items_or_files(root):
    jobs = Jobs(Catalog(load([])))
    assert items_of(jobs, "anc/figure4") == ["anc/figure4"]
    assert items_of(jobs, "results/paper/tables/adjust/table2.csv") == ["adjust/table2"]
    assert len(items_of(jobs, "talk")) == 10
    assert items_of(jobs, "grid") == ["align-predict/table3"]


@pytest.mark.parametrize("target", ["everything", "anc/figure99", "results/demo/tables/adjust/table2.csv", "anc/"])
def test_an_unknown_target_is_told(target):
    with pytest.raises(UserError, match=f"unknown target '{target}'.*align_predict"):
        items_of(Jobs(Catalog(load([]))), target)
