"""The benchmark of submissions: its plans are the workflow's, and a small one runs to its end on a real SLURM."""

import json
import subprocess
import sys

from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import planned

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from slurm_scale import make_plan
print(json.dumps(make_plan(sys.argv[2])))
"""


def test_the_plan_is_the_workflow_without_downloads(root):
    command = [sys.executable, "-c", PROGRAM, str(root / "benchmarks"), "paper"]
    plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    expected: dict[str, int] = {}
    for job in planned(catalog_of(load([]))).jobs.values():
        if not job.rule.startswith("download_"):
            expected[job.rule] = expected.get(job.rule, 0) + 1
    assert {rule: len(rows) for rule, rows in plan.items()} == expected
    # Every evaluation waits for its own fine-tuning, and so is one submission with it.
    trained = [[need for need in needs if need.startswith("finetune")] for needs in plan["evaluate"]]
    assert all(len(needs) == 1 for needs in trained)
    assert len({needs[0] for needs in trained}) == len(trained)
