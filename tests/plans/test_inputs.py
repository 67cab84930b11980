"""The files that Snakemake plans to read and write are those that the catalog and the planner name, job by job."""

import os
import re
import time
from collections import Counter

import pytest
from tests.workflow import planned as counted
from tests.workflow import snakemake

from crossalign.catalog.config import load
from crossalign.catalog.layers import merge
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import planned

TURNS = ["small", "small-2"]
JOB = re.compile(r"^(?:local)?rule (\w+):\n((?:    \S.*\n)+)", re.MULTILINE)


def dry_run(text, folder, root):
    """What a dry run says of every job, by its first output; paths of the repository are relative to it."""
    here = f"{os.path.relpath(root, folder)}/"
    jobs = {}
    for rule, body in JOB.findall(text.replace(here, "")):
        told = dict(re.findall(r"^    (\w+): (.*)$", body, re.MULTILINE))
        if "output" not in told:  # a target
            continue
        files = {name: set(told[name].split(", ")) if name in told else set() for name in ("input", "output")}
        gpus = re.search(r"\bgpu=(\d+)", told.get("resources", ""))
        benchmark = told.get("benchmark", "").partition("/benchmarks/")[2]
        jobs[min(files["output"])] = (
            *(
                rule,
                files["input"],
                files["output"],
                benchmark,
                int(told.get("threads", 1)),
                int(gpus[1] if gpus else 0),
            ),
        )
    return jobs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "targets", "changes"),
    [
        ([], ["all"], {"seeds": [1, 2]}),
        ([], ["grid", "download"], {}),
        ([], ["align_predict"], {"align-predict": {"search_per_init": True}, "seeds": [1]}),
        ([], ["anc"], {"anc": {"norm_models": "pretrain"}}),
        (["config.demo.yaml"], ["all"], {}),
        (["config.demo.yaml"], ["data", "talk"], {}),
        (["config.small.yaml"], ["all"], {"seeds": [1]}),
        (["config.small.yaml"], ["talk"], {"seeds": [1, 2], "open_text": "wikipedia", "talk": {"base": TURNS}}),
        (["config.small.yaml"], ["adjust"], {"adjust": {"seeds": [1, 2], "base": TURNS}}),
    ],
)
def test_every_job_reads_and_writes_what_the_catalog_says(root, tmp_path, monkeypatch, files, targets, changes):
    config = load([root / name for name in files])
    merge(config, changes)
    done = snakemake(root, tmp_path, "--dry-run", "--cores", "2", "--", *targets, config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    told = dry_run(done.stdout, tmp_path, root)
    monkeypatch.chdir(root)
    jobs = planned(catalog_of(config), targets).jobs.values()
    expected = {
        min(job.outputs): (job.rule, set(job.reads), set(job.outputs), job.benchmark, job.threads, job.gpus)
        for job in jobs
    }
    assert told.keys() == expected.keys()
    for name, job in expected.items():
        assert told[name] == job, name
    assert len(expected) > 20


@pytest.mark.slow
def test_what_is_left_is_what_a_dry_run_would_do(root, tmp_path, monkeypatch):
    config = load([root / "config.demo.yaml"])
    merge(config, {"items": ["align-predict/figure1", "adjust/figure1", "talk/figure3", "talk/table3", "anc/table1"]})
    monkeypatch.chdir(root)
    graph = planned(catalog_of(config), ["all"])
    # All models are scored but one. Of fine-tuned models only the account is left, and vectors are temporary.
    made_last = ("make_table", "make_figure", "gather_results", "make_verdicts", "make_report")
    done = [job for job in graph.jobs.values() if job.rule not in made_last and not job.rule.startswith("embed_")]
    still_open = next(job for job in done if job.rule == "evaluate" and "/anc-nli-" in job.name)
    kept = [output for job in done if job != still_open for output in job.outputs if "/model/" not in output]
    now = time.time()
    for file in (tmp_path / output for output in kept):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        # All of one age: what is newer than what is Snakemake's to judge.
        os.utime(file, (now, now))
    left = graph.remaining(lambda path: (tmp_path / path).exists())
    dry = snakemake(root, tmp_path, "--dry-run", "--cores", "2", "--quiet", "rules", "--", "all", config=config)
    assert Counter(graph.jobs[name].rule for name in left) == counted(dry)
    assert 0 < counted(dry)["evaluate"] < sum(job.rule == "evaluate" for job in graph.jobs.values())
