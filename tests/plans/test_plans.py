"""Dry runs: every profile and every target plans, quickly, and asks for what the catalog says."""

import re
import resource

import pytest
import yaml
from tests.reruns import make_outputs, project
from tests.workflow import planned, snakemake

from crossalign.papers.all_items import catalog_of

TARGETS = ["all", "download"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_plans_quickly_at_paper_scale(root, tmp_path, target):
    """What jobs read stands in the sheets (tests/unit/test_sheets.py)."""
    # Processor time, which unlike the clock does not depend on what else the machine does.
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    jobs = planned(snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--quiet", "rules", "--", target))
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 30
    catalog = catalog_of(yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8")))
    assert (jobs["download_file"], jobs["download_model"]) == (len(catalog.files()), len(catalog.models()))
    assert jobs.get("make_table", 0) + jobs.get("make_figure", 0) == (target != "download") * len(catalog.items)


@pytest.mark.parametrize("profile", ["demo", "gpu", "slurm"])
def test_every_profile_plans(root, tmp_path, profile):
    # Profiles name files beside the Snakefile; the results go elsewhere. One paper, as all of them take half a minute.
    flags, config = ("--dry-run", "--profile", f"profiles/{profile}", "--quiet", "rules"), {"papers": ["anc"]}
    jobs = planned(snakemake(root, tmp_path, *flags, "--", "all", config=config if profile != "demo" else None))
    assert ("make_world" in jobs) == (profile == "demo")
    assert sum(jobs.values()) > 80


def test_results_of_an_earlier_version_are_not_made_again_in_silence(root, tmp_path):
    config = tmp_path / "results" / "paper" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text("{}")
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--", "results/paper/config.json")
    assert done.returncode and "results/paper was made by an earlier version" in done.stdout + done.stderr
    assert "snakemake --profile profiles/gpu --touch" in done.stdout + done.stderr
    done = snakemake(root, tmp_path, "--touch", "--cores", "1", "--", "results/paper/config.json")
    assert done.returncode == 0 and (config.parent / "plan" / "trainings.tsv").is_file(), done.stderr
    assert planned(snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--", "results/paper/config.json")) == {}


def test_a_config_that_extends_the_demo_is_one(root, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("extends: demo\nitems: [adjust/table2]\nadjust: {languages: [es, ru, hi]}\n")
    settings = ("--profile", "profiles/demo", "--configfile", str(file), "--quiet", "rules")
    jobs = planned(snakemake(root, tmp_path, "--dry-run", *settings, "--", "adjust"))
    assert jobs["make_world"] == 1 and "download_model" not in jobs


def test_a_typo_stops_the_run_before_the_first_job(root, tmp_path):
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--", "all", config={"sedes": [1]})
    assert done.returncode != 0
    message = done.stdout + done.stderr
    assert "unknown key 'sedes'" in message
    assert "Traceback" not in message


def test_offline_says_at_once_what_the_targets_lack(root, tmp_path):
    config, table = {"downloads": {"offline": True}}, "results/paper/tables/align-predict/table6.csv"
    config["items"] = ["align-predict/table6", "adjust/table1", "adjust/table2"]
    done = snakemake(root, tmp_path, "--cores", "1", "--", table, config=config)
    message = done.stdout + done.stderr
    assert done.returncode != 0
    whole = yaml.safe_load((root / "config.yaml").read_text())
    files = catalog_of(whole | {"items": ["align-predict/table6"]}).files()
    assert len(files) > 20
    assert all(path in message for path in files)
    assert "en_ewt-ud-train.conllu" in message and "WikiMatrix" not in message
    assert "Traceback" not in message
    # A list of languages reads no data.
    for arguments in (["--", "results/paper/tables/adjust/table1.csv"], ["--unlock"]):
        done = snakemake(root, tmp_path, "--cores", "1", *arguments, config=config)
        assert done.returncode == 0, done.stdout + done.stderr
    # A mirror may have them all.
    config["downloads"]["mirror"] = "file:///nowhere"
    done = snakemake(root, tmp_path, "--cores", "1", "--", table, config=config)
    assert done.returncode != 0 and "files that are needed are missing" not in done.stdout + done.stderr


def test_the_workflow_is_linted(root, tmp_path):
    done = snakemake(root, tmp_path, "--lint")
    assert done.returncode == 0, done.stdout + done.stderr


def test_norm_schemes_can_be_pretrained(root, tmp_path):
    config = {"items": ["anc/figure4", "anc/figure7"], "anc": {"norm_models": "pretrain"}}
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "1", "--printshellcmds", config=config)
    jobs = planned(done)
    assert jobs["pretrain"] == 4
    # Only the vocabulary comes from outside.
    assert jobs["download_model"] == 1
    commands = [line for line in done.stdout.splitlines() if '"$SCRIPTS"/pretrain.py' in line]
    norms = sorted(re.search(r'"norm": "(\w+)"', line)[1] for line in commands)
    assert norms == ["normformer", "normformer", "post", "pre"]
    seeds = {re.search(r'"seed": (\d+)', line)[1] for line in commands if '"norm": "normformer"' in line}
    assert len(seeds) == 2


def test_another_order_of_a_mixture_prepares_it_again(root, tmp_path):
    """Trainings may read its first examples only, and Snakemake sees that other files are read, not their order."""
    folder = project(root, tmp_path / "project", {})
    sets = ["results/study/data/nli/mix_en/train.jsonl", "results/study/data/nli/xnli_es/test.jsonl"]

    def run(*arguments):
        settings = ["--cores", "1", "--quiet", "rules", "--configfile", str(folder / "config/study.yaml")]
        return snakemake(folder, folder, *settings, *arguments, "--", *sets)

    assert planned(run("--touch"))["prepare_nli"] == 2
    make_outputs(folder)
    assert planned(run("--dry-run")) == {}
    register = folder / "resources/mixtures.tsv"
    lines = register.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("nli/mix_en\t"))
    assert lines[first + 1].startswith("nli/mix_en\t")
    lines[first : first + 2] = reversed(lines[first : first + 2])
    register.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert planned(run("--dry-run")) == {"prepare_nli": 1}
