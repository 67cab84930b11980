"""Dry runs: every profile and every target plans, quickly, and asks for what the catalog says."""

import resource

import pytest
import yaml
from tests.workflow import planned, snakemake

from crossalign.catalog.addresses import Adapted, Tuned
from crossalign.papers.all_items import catalog_of

TARGETS = ["all", "align_predict", "anc", "adjust", "talk", "download"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_plans_at_paper_scale(root, tmp_path, target):
    # Processor time, which unlike the clock does not depend on what else the machine does.
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    jobs = planned(snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--quiet", "rules", "--", target))
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 30
    config = yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))
    catalog = catalog_of(config)
    paper = target.replace("_", "-")
    items = [item for item in catalog.items if target in ("all", "download") or item.startswith(f"{paper}/")]
    assert jobs["download_file"] == len(catalog.files(items))
    assert jobs["download_model"] == len(catalog.models(items))
    if target != "download":
        assert jobs.get("prepare_trees", 0) == sum(data.kind == "trees" for data in catalog.sets(items))
        runs = catalog.runs(items)
        tuned = [run for run in runs if isinstance(run, Tuned)]
        assert count(jobs, "finetune", "finetune_random", "train_bilstm") == len(tuned)
        assert count(jobs, "evaluate", "train_bilstm") == len(tuned)
        assert count(jobs, "adjust_model", "adapt_to_text") == sum(isinstance(run, Adapted) for run in runs)
        assert count(jobs, "pretrain") == sum(run.path().startswith("models/mono-") for run in runs)
        assert count(jobs, "make_table", "make_figure") == len(items)


def count(jobs, *rules):
    return sum(jobs.get(rule, 0) for rule in rules)


@pytest.mark.parametrize("profile", ["demo", "gpu", "slurm"])
def test_every_profile_plans(root, tmp_path, profile):
    # Profiles name files beside the Snakefile; the results go elsewhere.
    done = snakemake(root, tmp_path, "--dry-run", "--profile", f"profiles/{profile}", "--quiet", "rules", "--", "all")
    jobs = planned(done)
    assert ("make_world" in jobs) == (profile == "demo")
    assert sum(jobs.values()) > 200


def test_a_typo_stops_the_run_before_the_first_job(root, tmp_path):
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--", "all", config={"sedes": [1]})
    assert done.returncode != 0
    message = done.stdout + done.stderr
    assert "unknown key 'sedes'" in message
    assert "Traceback" not in message


def test_offline_says_at_once_what_is_missing(root, tmp_path):
    config = {"downloads": {"offline": True}, "items": ["align-predict/table6"]}
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--", "all", config=config)
    message = done.stdout + done.stderr
    assert done.returncode != 0
    files = catalog_of(yaml.safe_load((root / "config.yaml").read_text()) | {"items": config["items"]}).files()
    assert len(files) > 20
    assert all(path in message for path in files)
    assert "en_ewt-ud-train.conllu" in message
    assert "Traceback" not in message


def test_the_workflow_is_linted(root, tmp_path):
    done = snakemake(root, tmp_path, "--lint")
    assert done.returncode == 0, done.stdout + done.stderr
