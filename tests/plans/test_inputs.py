"""The files that Snakemake plans to read and write are those that the catalog and the planner name, job by job."""

import os
import re

import pytest
from tests.workflow import snakemake

from crossalign.catalog.config import load, merge
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import planned

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
        ([], ["anc"], {"anc": {"norm_models": "pretrain"}, "pretrain": {"models": {"defaults": {"gpus": 2}}}}),
        (["config.demo.yaml"], ["all"], {}),
        (["config.demo.yaml"], ["data", "talk"], {}),
        (["config.small.yaml"], ["all"], {"seeds": [1]}),
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
